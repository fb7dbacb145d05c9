"""Opening, listing and replacing what stands at a Place. Blocking; callers go through `on_disk`.

Every way is gone name by name from the workspace's root (handles.py), never following a symlink: a Place has none, so
one that is met was put there after the path was judged. The root itself lies outside of what a command can move.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ParamSpec, TypeVar

from quintet.domain.errors import Invalid
from quintet.workspace.handles import open_below, open_file, replace, write_new
from quintet.workspace.paths import Place

TEXT_LIMIT = 4 * 1024 * 1024  # what can be edited or written as a whole
P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


async def on_disk(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run in a thread, so that a slow disk does not stop the event loop. A cancel, and each one after it, waits until
    the function has ended: nothing may change after its call was reported as over."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it as lost
        raise


async def together(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """Both at once. When one fails the other is ended before the failure goes on."""
    try:
        async with asyncio.TaskGroup() as both:
            one, other = both.create_task(first), both.create_task(second)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    return one.result(), other.result()


def open_regular(place: Place) -> int:
    """A descriptor of a regular file."""
    with _above(place) as (directory, name):
        handle = open_file(directory, name)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise Invalid(f"{place.shown} is a directory.", next_step="Use `list` to see what is in it.")
    raise Invalid(f"{place.shown} is not a regular file.")


def open_directory(place: Place) -> int:
    """A descriptor of a directory, for os.scandir and names relative to it."""
    return open_below(place.root, place.names, readable=True)


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
        replace(directory, name, lambda passing: write_new(directory, passing, data, mode))


@contextmanager
def _above(place: Place, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """A handle of the directory that holds the place, and the place's name in it."""
    *way, name = place.names or (os.curdir,)
    handle = open_below(place.root, way, make=make)
    try:
        yield handle, name
    finally:
        os.close(handle)


def _mode(place: Place, name: str, directory: int) -> int | None:
    """The permissions to keep; None for a new file."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise Invalid(f"{place.shown} is not a regular file.")
    return stat.S_IMODE(found) & 0o777
