"""Handles of directories and what can be done by them alone: go further down without following a link, open a file,
put something in another's place in one move. Blocking. Knows no workspace and no rule; errors are the system's.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from quintet.workspace.kernel import rename_new

_READABLE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A directory on the way needs to be passed, not read.
_PASSED = _READABLE | getattr(os, "O_PATH", 0)
# O_NONBLOCK: a named pipe must not hold us forever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def open_below(root: str | int, names: Sequence[str], *, make: bool = False, readable: bool = False) -> int:
    """The directory that these names lead to, one after the other, from the root (a path without links, or a handle).
    OSError if one of them is a link or no directory. `make`: missing ones are made. `readable`: to be listed; without
    it the handle serves only to reach what lies in the directory."""
    handle = os.dup(root) if isinstance(root, int) else os.open(root, _PASSED)
    *way, last = names or (os.curdir,)
    try:
        for name in way:
            below = _step(handle, name, _PASSED, make=make)
            os.close(handle)
            handle = below
        return _step(handle, last, _READABLE if readable else _PASSED, make=make)
    finally:
        os.close(handle)


def _step(handle: int, name: str, flags: int, *, make: bool) -> int:
    try:
        return os.open(name, flags, dir_fd=handle)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # somebody else made it; whether it is a directory is seen next
        os.mkdir(name, dir_fd=handle)
    return os.open(name, flags, dir_fd=handle)


def open_file(directory: int, name: str) -> int:
    """Whatever stands there and is no link, to be read. Whether it is a regular file is for the caller to look at."""
    return os.open(name, _FILE, dir_fd=directory)


def open_plain(path: str) -> int:
    """A regular file by its whole path, to be read; OSError for a link and for anything else. Never waits."""
    handle = os.open(path, _FILE)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "not a regular file", path)


def write_new(directory: int, name: str, data: bytes | Iterable[bytes], mode: int | None) -> None:
    """A file that was not there, on the disk when this returns; None: with the mode that new files get."""
    handle = os.open(name, _NEW, 0o666 if mode is None else 0o600, dir_fd=directory)
    with os.fdopen(handle, "wb") as file:
        file.writelines((data,) if isinstance(data, bytes) else data)
        file.flush()
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def replace(directory: int, name: str, make: Callable[[str], None], *, only_new: bool = False) -> None:
    """Let something be made under a passing name, then put it in the place of what stands at `name`, in one move. When
    either fails, what stood there still does, and nothing stays under the passing name. `only_new`: FileExistsError
    when anything stands there."""
    passing = f".quintet-{os.urandom(6).hex()}.tmp"
    try:
        make(passing)
        if only_new:
            _name_new(directory, passing, name)
        else:
            os.replace(passing, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(passing, dir_fd=directory)
        raise


def _name_new(directory: int, passing: str, name: str) -> None:
    if rename_new(directory, passing, name):
        return
    os.link(passing, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    os.unlink(passing, dir_fd=directory)
