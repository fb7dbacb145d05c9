"""Permissions that nobody could guess when a file or its directory has to be made again. Blocking.

Git keeps of a file's permissions whether it may be run, and of a directory's nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping

from quintet.workspace.handles import open_below
from quintet.workspace.tree import Tree

LOOK_LIMIT = 5_000  # files, and directories: in a larger tree permissions are guessed
_USUAL = 0o755


def file_modes(directory: str, paths: Iterable[str], usual: int) -> dict[str, int]:
    """Of the files that have others than the usual ones."""
    found: dict[str, int] = {}
    with Tree(directory) as tree:
        for path in paths:
            seen = tree.look(path)
            if seen is not None and stat.S_ISREG(seen.st_mode) and stat.S_IMODE(seen.st_mode) != usual:
                found[path] = stat.S_IMODE(seen.st_mode)
    return found


def room_modes(directory: str, paths: Iterable[str], rooms: Iterable[str]) -> dict[str, int]:
    """Of these directories and those above these paths, where they are not the usual ones."""
    every = set(rooms)
    for path in paths:
        for above in directories_above(path):
            if above in every:
                break
            every.add(above)
        if len(every) > LOOK_LIMIT:
            break
    found: dict[str, int] = {}
    with Tree(directory) as tree:
        for room in sorted(every)[:LOOK_LIMIT]:
            seen = tree.look(room)
            if seen is not None and stat.S_ISDIR(seen.st_mode) and stat.S_IMODE(seen.st_mode) != _USUAL:
                found[room] = stat.S_IMODE(seen.st_mode)
    return found


def modes_above(path: str, rooms: Mapping[str, int]) -> tuple[int, ...]:
    """As a state carries them: nearest first, 0 for the usual ones, nothing when all are."""
    modes = tuple(rooms.get(above, 0) for above in directories_above(path))
    return modes if any(modes) else ()


def directories_above(path: str) -> Iterable[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def make_directories(directory: str, path: str, modes: tuple[int, ...]) -> None:
    """Those above a path that are not there and had permissions of their own, never through a link. The others are
    made by whoever puts the file there."""
    names = path.split("/")[:-1]
    if len(modes) != len(names):
        return
    handle = open_below(directory, ())
    try:
        for name, mode in zip(names, reversed(modes), strict=True):
            made = _make(name, handle)
            below = open_below(handle, (name,), readable=True)
            os.close(handle)
            handle = below
            if made and mode:
                os.fchmod(handle, mode & 0o7777 | stat.S_IRWXU)  # a file is to be put into it
    except OSError:
        return  # whoever puts the file there says what is in the way
    finally:
        os.close(handle)


def _make(name: str, handle: int) -> bool:
    try:
        os.mkdir(name, dir_fd=handle)
    except FileExistsError:
        return False
    return True
