"""Mirrors in a check-up: whether the files that clients read themselves can still be written. A mirror that cannot be
written fails no turn, so this is where a person learns of it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from quintet.domain.checkup import Row, ok, warn

_NAMED = 3


def look_at_mirrors(sizes: Mapping[str, int]) -> list[Row]:
    """By path, how large each was when it was last written. Nothing to say where there are none."""
    if not sizes:
        return []
    shut = sorted(path for path in sizes if not _writable(path))
    if shut:
        more = f" and {len(shut) - _NAMED} more" if len(shut) > _NAMED else ""
        words = (
            f"{len(shut)} of {len(sizes)} files that clients read cannot be written: {', '.join(shut[:_NAMED])}{more}"
        )
        return [warn("mirrors", words, f"Give yourself the right to write there, as with `chmod u+w {shut[0]}`")]
    foreign = sum(_size(path) not in (None, size) for path, size in sizes.items())
    others = f"; {foreign} written by others since, and taken over when their thread is next opened" if foreign else ""
    return [ok("mirrors", f"{len(sizes)} files that clients read can be written{others}")]


def _writable(path: str) -> bool:
    """Of a missing one: whether it could be made. Directories above that are missing are made, too."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return os.access(path, os.W_OK)


def _size(path: str) -> int | None:
    try:
        return os.path.getsize(path)
    except OSError:
        return None
