"""The same directory at a second place: a file system that is mounted twice shows what is hidden in one of its places
in the other. Reads the kernel's table of mounts; knows nothing of what is hidden or why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

import msgspec

from quintet.workspace.sandbox.mounts import lies_in, parts

TABLE = "/proc/self/mountinfo"


class _Mounted(msgspec.Struct, frozen=True):
    device: str
    root: str  # the directory of the file system that is shown
    place: str


def aliases(places: Iterable[str], table: str = TABLE) -> Iterator[str]:
    """Where else these can be seen."""
    mounted = _read(table)
    devices = [mount.device for mount in mounted]
    twice = {device for device in devices if devices.count(device) > 1}
    if not twice:
        return
    for place in places:
        here = _mount_of(place, mounted)
        if here is None or here.device not in twice:
            continue
        inner = "/".join(("", *parts(here.root), *parts(place)[len(parts(here.place)) :]))
        for other in mounted:
            if other.device == here.device and other != here and lies_in(inner, other.root):
                alias = "/".join(("", *parts(other.place), *parts(inner)[len(parts(other.root)) :]))
                if alias != place and _same(alias, place):
                    yield alias


def _mount_of(place: str, mounted: list[_Mounted]) -> _Mounted | None:
    """The innermost one; of several at one place the last covers the others."""
    around = [mount for mount in mounted if lies_in(place, mount.place)]
    return max(reversed(around), key=lambda mount: len(parts(mount.place)), default=None)


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samestat(os.stat(one), os.stat(other))
    except OSError:
        return False


def _read(table: str) -> list[_Mounted]:
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.split() for line in file]
    except OSError:
        return []
    return [_Mounted(row[2], _plain(row[3]), _plain(row[4])) for row in rows if len(row) > 4]


def _plain(word: str) -> str:
    """Blanks and the like stand there as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), word)
