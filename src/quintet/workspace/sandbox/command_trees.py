"""Trees in which commands do as they like: entered and removed by handles alone, never by a path. Blocking.

A command that runs can put a link in any name's place between two looks, take the rights from its own directories, and
nest them deeper than a path can be long. Knows nothing of what the trees are for.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from quintet.workspace.handles import open_below


@contextlib.contextmanager
def entered(above: int, name: str) -> Iterator[int]:
    """A handle to list a directory by and to reach what is in it; OSError where a link, or no directory, stands there.
    Rights that were taken from it are there as long as this lasts."""
    passed = open_below(above, (name,))
    try:
        mode, by_handle = stat.S_IMODE(os.fstat(passed).st_mode), f"/proc/self/fd/{passed}"
        lacks = mode & stat.S_IRWXU != stat.S_IRWXU
        if lacks:
            os.chmod(by_handle, mode | stat.S_IRWXU)
        try:
            handle = open_below(passed, (), readable=True)
            try:
                yield handle
            finally:
                os.close(handle)
        finally:
            if lacks:
                os.chmod(by_handle, mode)
    finally:
        os.close(passed)


@contextlib.contextmanager
def beside(place: str) -> Iterator[tuple[int, str]]:
    """A handle of the directory that a tree lies in, which is ours, and the tree's name there."""
    above, name = os.path.split(place)
    handle = open_below(above, ())
    try:
        yield handle, name
    finally:
        os.close(handle)


def remove(tree: str) -> None:
    """Whole, however deep and whatever rights were taken from it. What cannot be removed stays."""
    with contextlib.suppress(OSError), beside(tree) as (above, name):
        with entered(above, name) as top:
            _clear(top)
        os.rmdir(name, dir_fd=above)


def _clear(top: int) -> None:
    """Directories are moved up before they are gone through, so that none is deep."""
    rooms = _emptied(top, None)
    for room in rooms:  # grows on the way
        with contextlib.suppress(OSError):
            with entered(top, room) as inside:
                rooms += _emptied(inside, top)
            os.rmdir(room, dir_fd=top)


def _emptied(directory: int, top: int | None) -> list[str]:
    """Remove the files in it; the directories in it, under the names they have in `top` now."""
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    rooms: list[str] = []
    for name, is_room in found:
        with contextlib.suppress(OSError):  # it stays, and so does what it is in
            if not is_room:
                os.unlink(name, dir_fd=directory)
            else:
                rooms.append(name if top is None else _moved_up(directory, name, top))
    return rooms


def _moved_up(directory: int, name: str, top: int) -> str:
    passing = f".quintet-{os.urandom(8).hex()}"
    with entered(directory, name):  # to get another parent a directory must be writable itself
        os.rename(name, passing, src_dir_fd=directory, dst_dir_fd=top)
    return passing
