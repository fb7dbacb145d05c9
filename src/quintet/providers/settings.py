"""What a person says about a provider and a model. Plain values; where they were written is not known here."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=1)]
Price = Annotated[float, msgspec.Meta(ge=0)]


class ProviderKind(StrEnum):
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    OFFLINE = "offline"
    SCRIPTED = "scripted"


class ProviderSettings(msgspec.Struct, frozen=True):
    kind: ProviderKind
    base_url: str = ""
    api_key: str = ""
    api_key_env: str = ""
    headers: dict[str, str] = {}
    timeout_s: float = 600.0
    idle_timeout_s: float = 60.0
    max_retries: int = 3
    script: str = ""  # of a scripted provider: the path of its script

    def __repr__(self) -> str:
        # The key must not reach a log or an error by way of a printed struct.
        return f"ProviderSettings(kind={self.kind.value!r}, base_url={self.base_url!r})"


class ModelSettings(msgspec.Struct, frozen=True):
    """None: nobody said, so what the catalog knows counts."""

    context_window: Count | None = None
    max_output: Count | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    thoughts_in_limit: bool | None = None  # `max_output` counts thoughts too, as OpenAI's own models want it said
    input_price: Price | None = None  # US dollars per million tokens
    output_price: Price | None = None
    cached_price: Price | None = None  # of input read from the provider's cache
    cache_write_price: Price | None = None  # of input written to it, where that costs extra
    fallback: str | tuple[str, ...] = ()  # references to try in this order when it cannot answer
    audio: bool | None = None  # counts where the provider's wire has a form for it: openai-chat
    video: bool | None = None
