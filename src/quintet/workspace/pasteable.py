"""Words that a person can paste into a public place: no keys, no name, and their own directory as `~`. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from quintet.domain.shapes import mask_shapes

USER = "USER"
_HOMES = re.compile(r"(/(?:home|Users)/)[^/\s'\",:;)]+")


class Pasteable:
    """`mask` takes away known secrets; what only looks like one goes as well."""

    def __init__(self, environment: Mapping[str, str], mask: Callable[[str], str]) -> None:
        self._mask = mask
        own = environment.get("HOME", "").rstrip("/")
        places = {own, os.path.realpath(own)} if len(own) > 1 else set()
        self._own = [re.compile(re.escape(p) + r"(?=/|$|[\s'\",:;)`])") for p in sorted(places, key=len, reverse=True)]
        names = {environment.get("USER", ""), environment.get("LOGNAME", ""), os.path.basename(own)} - {"", "root"}
        # Only as a part of a path: elsewhere a user called `git` would turn git's own row into nonsense.
        self._names = [re.compile(rf"(?<=/){re.escape(name)}(?=/|$|[\s'\",:;)`])") for name in sorted(names)]

    def text(self, words: str) -> str:
        said = mask_shapes(self._mask(words))
        for place in self._own:
            said = place.sub("~", said)
        for name in self._names:
            said = name.sub(USER, said)
        return _HOMES.sub(rf"\1{USER}", said)
