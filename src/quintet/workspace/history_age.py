"""Which files are surely younger than a moment, made since and not moved there, and which may be. Blocking.

A file that is moved keeps the time it was written, and its inode the time it was made. Only when both are young can
nothing be lost by removing it; in doubt it is old. Where a later change would not be the call's, it is in doubt late.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator

from quintet.domain.checkpoint import FileChange, FileKind
from quintet.workspace.history_modes import directories_above
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


def later_ones(directory: str, changes: Iterable[FileChange], since_ns: int) -> list[str]:
    """Of the changed paths those where something stands that came there, or was changed, after the moment. By the
    system's own stamp, which nobody can set back. What is gone is not among them: to bring it back takes nothing."""
    found: list[str] = []
    with Tree(directory) as tree:
        for change in changes:
            seen = tree.look(change.path)
            if seen is not None and (seen.st_ctime_ns > since_ns or _room_came(tree, change, since_ns)):
                found.append(change.path)
    return found


def _room_came(tree: Tree, change: FileChange, since_ns: int) -> bool:
    """Whether a directory above may have been moved here since, with all it holds: that leaves no trace in the file.
    One that was there before gives itself away while it was renamed and nothing in it changed afterwards."""
    for depth, room in enumerate(directories_above(change.path)):
        seen = tree.look(room)
        if seen is not None and seen.st_ctime_ns > since_ns:
            was_there = change.before.kind is not FileKind.ABSENT or depth >= change.before.bare
            if not was_there or seen.st_mtime_ns != seen.st_ctime_ns:
                return True
    return False


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
