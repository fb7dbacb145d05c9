"""Files that other programs read and write too: read whole, appended to, replaced in one move, under a lock of ours.

The locks lie in the home's run directory, never beside the files. Knows nothing of what the files say.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import os
import re
import stat
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, ParamSpec, TypeVar

from quintet.workspace.handles import replace, write_new

LOCKED_WITHIN_S = 1.5
_TRY_AGAIN_S = 0.005
HEAD = 8_192  # bytes
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

P = ParamSpec("P")
T = TypeVar("T")


class DiskMirrorFiles:
    def __init__(self, run: str, *, patience_s: float = LOCKED_WITHIN_S) -> None:
        self._run = run
        self._patience_s = patience_s
        self._left: set[asyncio.Future[Any]] = set()  # at work still, though whoever asked for it was cancelled

    @asynccontextmanager
    async def hold(self, path: str) -> AsyncIterator[None]:
        name = hashlib.sha256(path.encode()).hexdigest()[:32]
        os.makedirs(self._run, mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(self._run, f"{name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = time.monotonic() + self._patience_s
            while not _locked(lock):
                if time.monotonic() > end:
                    raise TimeoutError(f"another process holds {path}")
                await asyncio.sleep(_TRY_AGAIN_S)
            yield
        finally:
            self._let_go(lock)

    def _let_go(self, lock: int) -> None:
        """Now, or when what a cancelled holder began has ended: it must not come after what the next one writes."""
        left = set(self._left)

        def ended(one: asyncio.Future[Any]) -> None:
            left.discard(one)
            if not left:
                os.close(lock)

        if not left:
            os.close(lock)
        for one in tuple(left):
            one.add_done_callback(ended)

    async def _done(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """In a thread, which a cancel does not stop; nor is it waited for then, since it may hang."""
        work = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            if not work.done():
                self._left.add(work)
                work.add_done_callback(self._forget)
            raise

    def _forget(self, work: asyncio.Future[Any]) -> None:
        self._left.discard(work)
        if not work.cancelled():
            work.exception()  # looked at, so that asyncio does not report it as lost

    async def read(self, path: str) -> bytes | None:
        return await asyncio.to_thread(_read, path)

    async def head(self, path: str) -> bytes:
        return await asyncio.to_thread(_read, path, HEAD) or b""

    async def append(self, path: str, data: bytes) -> None:
        await self._done(_append, path, data)

    async def write(self, path: str, data: bytes) -> None:
        await self._done(_write, path, data)

    async def set_aside(self, path: str) -> str:
        return await self._done(_set_aside, path)

    async def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            await self._done(os.unlink, path)

    async def remove_empty(self, directory: str) -> None:
        def remove() -> None:
            with suppress(OSError):
                os.rmdir(directory)

        await self._done(remove)


def make_private(directory: str) -> None:
    """The directory, and what is missing above it, for its owner alone. What is there is left as it is."""
    directory, missing = os.path.abspath(directory), []
    while not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for path in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            os.mkdir(path, 0o700)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(path: str, most: int = -1) -> bytes | None:
    try:
        handle = os.open(path, _READ)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):  # a device would never end
        os.close(handle)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    with os.fdopen(handle, "rb") as file:
        return file.read(most)


def _append(path: str, data: bytes) -> None:
    make_private(os.path.dirname(path))
    with os.fdopen(os.open(path, _APPEND, 0o600), "ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _write(path: str, data: bytes) -> None:
    directory, name = os.path.split(path)
    make_private(directory)
    handle = os.open(directory, _DIRECTORY)
    try:
        replace(handle, name, lambda passing: write_new(handle, passing, data, 0o600))
        os.fsync(handle)  # its name as well: what was forgotten must not be back after a power cut
    finally:
        os.close(handle)


def _set_aside(path: str) -> str:
    directory, name = os.path.split(path)
    stem, dot, ending = name.rpartition(".")
    taken = [re.fullmatch(rf"{re.escape(stem)}_(\d+){re.escape(dot + ending)}", n) for n in os.listdir(directory)]
    free = 1 + max((int(found[1]) for found in taken if found), default=0)
    aside = os.path.join(directory, f"{stem}_{free}{dot}{ending}")
    os.rename(path, aside)
    return aside
