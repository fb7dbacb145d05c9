"""Which files are surely younger than a moment: made since, not moved there. Blocking.

A file that is moved keeps the time it was written, and its inode the time it was made. Only when both are young can
nothing be lost by removing it; in doubt it is old.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator

from quintet.workspace.kernel import born_ns
from quintet.workspace.tree import Tree

_COARSE = 5  # CLOCK_REALTIME_COARSE: it goes in steps of some milliseconds, so it lies a little behind the exact clock
_STEP_S = 0.0005
_STEPS = 100
_LOOK_LIMIT = 5_000


def now_ns() -> int:
    """A moment between everything written until now and everything written after `pass_by(moment)`.

    Linux stamps files by the coarse clock, or by the exact one where somebody has just looked. So the moment is taken
    from the exact one, and what comes after waits until the coarse one has come by: at most one of its steps.
    """
    return time.time_ns() + 1


def pass_by(moment_ns: int) -> None:
    try:
        for _ in range(_STEPS):
            if time.clock_gettime_ns(_COARSE) >= moment_ns:
                break
            time.sleep(_STEP_S)
    except (OSError, AttributeError):
        pass  # no such clock: files are stamped by the exact one


def old_ones(directory: str, paths: Iterable[str], since_ns: int) -> dict[str, int]:
    """Those that are not surely younger than the moment, each with its inode; 0 for one of another device, where the
    number says nothing."""
    device = os.stat(directory).st_dev
    found: dict[str, int] = {}
    with Tree(directory) as tree:
        for path in paths:
            seen = tree.look(path)
            if seen is not None and not _is_new(os.path.join(directory, path), seen, since_ns):
                found[path] = seen.st_ino if seen.st_dev == device else 0
    return found


def old_ones_below(directory: str, rooms: Iterable[str], told: Collection[str], since_ns: int) -> list[str]:
    """Files in these directories that nobody told of (they are ignored) and that are old."""
    untold: list[str] = []
    for path in _below(directory, rooms):
        if len(untold) >= _LOOK_LIMIT:
            break
        if path not in told:
            untold.append(path)
    return list(old_ones(directory, untold, since_ns))


def _below(directory: str, rooms: Iterable[str]) -> Iterator[str]:
    for room in rooms:
        for above, _, names in os.walk(os.path.join(directory, room)):
            inner = os.path.relpath(above, directory)
            yield from (f"{inner}/{name}" for name in names)


def _is_new(path: str, seen: os.stat_result, since_ns: int) -> bool:
    if stat.S_ISDIR(seen.st_mode):
        return True  # no file: nothing is told of it
    if seen.st_mtime_ns < since_ns:
        return False
    born = born_ns(path, seen)
    return born is None or born >= since_ns
