"""Rooms: the directories of a work tree that hold something tracked, and the names in them that are not. Blocking.

A directory that was not touched holds the names it held, so it need not be listed again: whatever is made, removed or
renamed in it moves its ctime, which nobody can set. Knows nothing of ignore rules: what the names mean is git's to say.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from quintet.workspace.tree import Seen

_SURE_NS = 5_000_000_000  # more than any file system's clock takes for one step: two seconds, on the slowest
_TREES = 4  # remembered
_MOUNTS = "/proc/self/mountinfo"
# Paths one behind the other in the same directory, found as one: they are many, and their directories few. A path whose
# last name is empty matches for itself and without the group, so that no line is ever looked at twice.
_NEIGHBOURS = re.compile(rb"([^\0]*/|)[^\0/]+\0(?:\1[^\0/]+\0)*|[^\0]*\0")
_ESCAPED = re.compile(rb"\\([0-7]{3})")
_NOT_THERE = (FileNotFoundError, NotADirectoryError, PermissionError)  # for us as for git: others are failures
# File systems that are known to stamp a directory for whatever happens in it. On others nothing is remembered.
_STAMPING = frozenset({b"ext2", b"ext3", b"ext4", b"xfs", b"btrfs", b"tmpfs", b"overlay", b"f2fs", b"zfs", b"bcachefs"})

Rooms = Mapping[bytes, bytes]  # directory -> the tracked names in it, files and directories, each followed by NUL


class _Known(NamedTuple):
    seen: Seen
    tracked: bytes
    untracked: tuple[bytes, ...]


class RoomMemory:
    """What was found in each directory of the last few trees. Each look replaces what it knew of its tree as a whole,
    so looks at the same time do not disturb each other."""

    def __init__(self) -> None:
        self._trees: dict[str, dict[bytes, _Known]] = {}
        self._lock = threading.Lock()

    def untracked(self, top: str, rooms: Rooms, *, fresh: bool) -> list[bytes]:
        """Paths that stand in these directories and are not tracked. `fresh`: whatever is remembered, look."""
        old = {} if fresh else self._trees.get(top, {})
        look = _Look(top, old, time.time_ns() - _SURE_NS)
        for room, tracked in rooms.items():
            look.enter(room, tracked)
        with self._lock:
            self._trees.pop(top, None)
            self._trees[top] = look.known
            while len(self._trees) > _TREES:
                del self._trees[next(iter(self._trees))]
        return look.found


class _Look:
    """One look at a tree. Directories come with those above them first."""

    def __init__(self, top: str, old: Mapping[bytes, _Known], sure_ns: int) -> None:
        self.found: list[bytes] = []
        self.known: dict[bytes, _Known] = {}
        self._top = os.fsencode(top)
        self._old = old
        self._sure_ns = sure_ns
        self._closed: set[bytes] = set()  # gone, or no directories: nothing of this tree lies below
        self._device = _device_that_stamps(self._top)

    def enter(self, room: bytes, tracked: bytes) -> None:
        place = os.path.join(self._top, room)
        if room and room.rpartition(b"/")[0] in self._closed:
            self._closed.add(room)
            return
        try:
            now = os.lstat(place)
        except _NOT_THERE:
            self._closed.add(room)
            return
        if not stat.S_ISDIR(now.st_mode):
            self._closed.add(room)
            self.found.append(room)  # tracked is only what was in the directory
            return
        seen, known = Seen.of(now), self._old.get(room)
        if known is None or known.seen != seen or known.tracked != tracked:
            known = _Known(seen, tracked, _untracked(place, tracked))  # seen first: what comes later moves the time
        if now.st_dev == self._device and now.st_ctime_ns < self._sure_ns:
            self.known[room] = known
        self.found += [room + b"/" + name for name in known.untracked] if room else known.untracked


def _untracked(place: bytes, tracked: bytes) -> tuple[bytes, ...]:
    try:
        names = {*os.listdir(place)}
    except _NOT_THERE:
        return ()
    names.difference_update(tracked.split(b"\0"))
    names.discard(b".git")
    return tuple(sorted(names))


def _device_that_stamps(top: bytes) -> int | None:
    """The device a tree lies on, where it is of a kind that can be relied upon."""
    kind, longest = b"", -1
    try:
        with open(_MOUNTS, "rb") as file:
            for words in map(bytes.split, file):
                point = _ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), words[4]).rstrip(b"/") + b"/"
                if len(point) >= longest and (top + b"/").startswith(point):  # the later lies over the earlier
                    kind, longest = words[words.index(b"-") + 1], len(point)
        return os.stat(top).st_dev if kind in _STAMPING else None
    except (OSError, ValueError, IndexError):
        return None


def rooms_of(listing: bytes) -> dict[bytes, bytes]:
    """Tracked paths, each followed by NUL, put into their directories; each directory stands behind those above it."""
    inside: dict[bytes, list[bytes]] = {b"": []}
    for found in _NEIGHBOURS.finditer(listing):
        paths, above = found[0], found[1]
        if above is None:
            above = paths[: paths.rfind(b"/") + 1]
        room = above[:-1]
        _open_room(inside, room)
        # No name holds a slash, so what leads to the directory stands nowhere but before each of them.
        inside[room].append(paths.replace(above, b"") if above else paths)
    return {room: b"".join(names) for room, names in inside.items()}


def _open_room(inside: dict[bytes, list[bytes]], room: bytes) -> None:
    missing: list[bytes] = []
    while room not in inside:
        missing.append(room)
        room = room.rpartition(b"/")[0]
    for below in reversed(missing):
        above, _, name = below.rpartition(b"/")
        inside[above].append(name + b"\0")
        inside[below] = []
