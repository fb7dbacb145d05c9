"""Opening, listing and replacing what stands at a Place. Blocking; callers go through `on_disk`.

Every way is gone name by name from a handle of the workspace's root, never following a symlink: a Place has none, so
one that is met was put there after the path was judged. The root itself lies outside of what a command can move.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import ParamSpec, TypeVar

from quintet.domain.errors import Invalid
from quintet.workspace.paths import Place

TEXT_LIMIT = 4 * 1024 * 1024  # what can be edited or written as a whole
P = ParamSpec("P")
T = TypeVar("T")

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A directory on the way needs to be passed, not read.
_PASSED = _DIRECTORY | getattr(os, "O_PATH", 0)
# O_NONBLOCK: a named pipe must not hold us forever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


async def on_disk(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run in a thread, so that a slow disk does not stop the event loop. A cancel waits until the function has ended:
    nothing may change after its call was reported as over."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it as lost
        raise


def open_regular(place: Place) -> int:
    """A descriptor of a regular file."""
    with _above(place) as (directory, name):
        handle = os.open(name, _FILE, dir_fd=directory)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise Invalid(f"{place.shown} is a directory.", next_step="Use `list` to see what is in it.")
    raise Invalid(f"{place.shown} is not a regular file.")


def open_directory(place: Place) -> int:
    """A descriptor of a directory, for os.scandir and names relative to it."""
    with _above(place) as (directory, name):
        return os.open(name, _DIRECTORY, dir_fd=directory)


def read_bytes(place: Place) -> bytes | None:
    """Everything in a file that can be changed as a whole; None when there is no file."""
    try:
        handle = open_regular(place)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        data = file.read(TEXT_LIMIT + 1)
    if len(data) > TEXT_LIMIT:
        raise Invalid(f"{place.shown} is larger than {TEXT_LIMIT // 1024 // 1024} MiB.")
    return data


def as_text(place: Place, data: bytes) -> str:
    """The bytes of a place as text, line ends untouched. Invalid for what is no text."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"{place.shown} is not UTF-8 text.") from error
    if "\0" in text:
        raise Invalid(f"{place.shown} is a binary file.")
    return text


def read_text(place: Place) -> str | None:
    """The whole text of a file; None when there is none."""
    data = read_bytes(place)
    return None if data is None else as_text(place, data)


def replace_bytes(place: Place, data: bytes) -> None:
    """Put the bytes in the file's place in one move, keeping its mode; directories above it are made. Other names of
    the old file (hard links) keep what they had."""
    with _above(place, make=True) as (directory, name):
        mode = _mode(place, name, directory)
        passing = f".quintet-{os.urandom(6).hex()}.tmp"
        handle = os.open(passing, _NEW, 0o666, dir_fd=directory)
        try:
            with os.fdopen(handle, "wb") as file:
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                file.write(data)
            os.replace(passing, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            os.unlink(passing, dir_fd=directory)
            raise


@contextmanager
def _above(place: Place, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """A handle of the directory that holds the place, and the place's name in it."""
    *way, name = place.names or (os.curdir,)
    handle = os.open(place.root, _PASSED)
    try:
        for step in way:
            below = _step(handle, step, make=make)
            os.close(handle)
            handle = below
        yield handle, name
    finally:
        os.close(handle)


def _step(handle: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _PASSED, dir_fd=handle)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # somebody else made it; whether it is a directory is seen next
        os.mkdir(name, dir_fd=handle)
    return os.open(name, _PASSED, dir_fd=handle)


def _mode(place: Place, name: str, directory: int) -> int | None:
    """The permissions to keep; None for a new file."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise Invalid(f"{place.shown} is not a regular file.")
    return stat.S_IMODE(found) & 0o777
