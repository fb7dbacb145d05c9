"""Opening, reading and replacing the files behind Places. Blocking; callers go through `on_disk`.

Nothing here follows a symlink in the last name: a Place has none, so one that appeared later is an intruder.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from quintet.domain.errors import Invalid
from quintet.workspace.paths import Place

TEXT_LIMIT = 4 * 1024 * 1024  # what can be edited or written as a whole
P = ParamSpec("P")
T = TypeVar("T")


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
    """A descriptor of a regular file. O_NONBLOCK: a named pipe must not hold us forever."""
    handle = os.open(place.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise Invalid(f"{place.shown} is a directory.", next_step="Use `list` to see what is in it.")
    raise Invalid(f"{place.shown} is not a regular file.")


def read_text(place: Place) -> str | None:
    """The whole text of a file, line ends untouched; None when there is none. Invalid for what is no text."""
    try:
        handle = open_regular(place)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        data = file.read(TEXT_LIMIT + 1)
    if len(data) > TEXT_LIMIT:
        raise Invalid(f"{place.shown} is larger than {TEXT_LIMIT // 1024 // 1024} MiB.")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"{place.shown} is not UTF-8 text.") from error
    if "\0" in text:
        raise Invalid(f"{place.shown} is a binary file.")
    return text


def replace_text(place: Place, text: str) -> None:
    """Put the text in the file's place in one move, keeping its mode; directories above it are made."""
    directory = os.path.dirname(place.path)
    os.makedirs(directory, exist_ok=True)
    old = _mode(place)
    passing = os.path.join(directory, f".quintet-{os.urandom(6).hex()}.tmp")
    handle = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            if old is not None:
                os.fchmod(file.fileno(), old)
            file.write(text.encode())
        os.replace(passing, place.path)
    except BaseException:
        os.unlink(passing)
        raise


def _mode(place: Place) -> int | None:
    try:
        return stat.S_IMODE(os.lstat(place.path).st_mode) & 0o777
    except FileNotFoundError:
        return None
