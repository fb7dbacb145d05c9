"""What a person says about where to search: one endpoint, one key. Plain values; their file is not known here."""

from __future__ import annotations

from typing import Literal

import msgspec


class SearchSettings(msgspec.Struct, frozen=True):
    provider: Literal["searxng", "brave", "tavily", "exa"]
    url: str = ""
    api_key_env: str = ""  # the variable that holds the key
    credential: str = ""  # or the name of a stored one

    @property
    def keyed(self) -> bool:
        return bool(self.api_key_env or self.credential)
