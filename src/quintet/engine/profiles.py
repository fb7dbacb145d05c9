"""Profiles: which assistant's home a thread belongs to. A profile is a directory outside the journal, with a name.

Names only; what is kept in the directory belongs to the rooms that keep it.
"""

from __future__ import annotations

import os
import re

from quintet.domain.errors import Invalid
from quintet.domain.project import Profile

DEFAULT = "default"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?")


class Profiles:
    def __init__(self, home: str, given: dict[str, Profile] | None = None) -> None:
        self._home = home
        self._given = dict(given or {})  # profiles that live elsewhere, e.g. an older program's own directory

    def named(self, name: str = DEFAULT) -> Profile:
        """The profile of that name; its directory is made by whoever first keeps something there."""
        if name in self._given:
            return self._given[name]
        if not _NAME.fullmatch(name):
            raise Invalid(
                f"{name!r} is not a profile's name.", next_step="Use lower-case letters, digits and dashes, at most 48."
            )
        return Profile(name, os.path.join(self._home, "profiles", name))
