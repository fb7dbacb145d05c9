"""Which protected places a failed command ran into, by what it wrote. Pure.

A guess that only adds a note: nothing is decided by it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from quintet.workspace.sandbox.mounts import lies_in

_SIGNS = ("Read-only file system", "Device or resource busy", "Permission denied", "Is a directory")
_BETWEEN = re.compile(r"[\s'\"`\u2018\u2019:,;()\[\]]+")
_LINES = 2_000  # looked at, from the end: what a command failed by comes last


def runs_into_something(text: str) -> bool:
    """Whether it is worth looking closer."""
    return any(sign in text for sign in _SIGNS)


def protected_in(text: str, cwd: str, root: str, places: Iterable[str]) -> list[str]:
    """The places, as seen from the root, that stand in a line together with a refusal; each once."""
    places = list(places)
    found: dict[str, None] = {}
    for line in text.splitlines()[-_LINES:]:
        if runs_into_something(line):
            for word in filter(None, _BETWEEN.split(line)):
                path = os.path.normpath(os.path.join(cwd, word))
                found |= {os.path.relpath(place, root): None for place in places if lies_in(path, place)}
    return list(found)
