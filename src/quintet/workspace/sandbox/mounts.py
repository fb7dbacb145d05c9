"""What a command sees at which place, and in which order that has to be built. Pure.

A place is an absolute path without symlinks. Parents are built before what lies in them, and what hides a place is
left out where the place cannot be seen anyway.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec


class Kind(StrEnum):
    HIDE = "hide"  # an empty directory nobody can write into
    BLANK = "blank"  # an empty file nobody can write
    PRIVATE = "private"  # an empty directory of the command's own
    READ = "read"  # as it is, but not to be written
    WRITE = "write"
    SHOW = "show"  # like READ, and also where something around it is hidden


class Mount(msgspec.Struct, frozen=True):
    place: str
    kind: Kind
    source: str = ""  # where it is outside; the same place unless said

    @property
    def covers(self) -> bool:
        """Whether what is at this place outside is not to be seen inside."""
        return self.kind in (Kind.HIDE, Kind.PRIVATE) or self.source not in ("", self.place)


def in_order(mounts: Iterable[Mount]) -> list[Mount]:
    """Outermost first. Of two for one place the first given counts."""
    chosen: dict[tuple[str, ...], Mount] = {}
    for mount in mounts:
        chosen.setdefault(parts(mount.place), mount)
    kept: dict[tuple[str, ...], Mount] = {}
    for key in sorted(chosen):
        mount = chosen[key]
        around = _around(key, kept)
        if around is None or not around.covers or mount.kind in (Kind.WRITE, Kind.SHOW, Kind.PRIVATE):
            kept[key] = mount
    return list(kept.values())


def seen(mounts: Iterable[Mount], path: str) -> bool:
    """Whether what is at this path outside is what is there inside."""
    around = _around((*parts(path), ""), {parts(mount.place): mount for mount in in_order(mounts)})
    return around is None or not (around.covers or around.kind is Kind.BLANK)


def _around(key: tuple[str, ...], kept: dict[tuple[str, ...], Mount]) -> Mount | None:
    """The innermost mount a place lies in."""
    for length in range(len(key) - 1, -1, -1):
        if key[:length] in kept:
            return kept[key[:length]]
    return None


def parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def lies_in(path: str, directory: str) -> bool:
    """Whether a path is the directory or lies in it; both absolute and resolved."""
    outer = parts(directory)
    return parts(path)[: len(outer)] == outer
