"""Reading and writing one file descriptor without ever stopping the loop: pipes, terminals, sockets, files.

O_NONBLOCK belongs to the open file *description*, which stdin and stdout share with the parent, the shell and
often stderr; setting it there breaks their reads and prints. So: sockets use MSG_DONTWAIT, which is per call;
pipes and terminals are opened anew through /proc, which gives a description of our own; whatever allows
neither gets a thread that may block.
"""

import asyncio
import errno
import os
import queue
import socket
import stat
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")
CHUNK = 64 * 1024
_NOT_NOW = (BlockingIOError, InterruptedError)


class PolledSource:
    """`take` reads without blocking or raises BlockingIOError; `release` gives the descriptor up."""

    def __init__(self, fd: int, take: Callable[[int], bytes], release: Callable[[], None]) -> None:
        self._fd, self._take, self._release = fd, take, release

    async def read(self) -> bytes:
        while True:
            try:
                return self._take(CHUNK)
            except _NOT_NOW:
                await readable(self._fd)
            except OSError as why:
                # A reset peer or a terminal that hung up has nothing more to say: an end like any other.
                if why.errno in (errno.ECONNRESET, errno.EIO, errno.ENOTCONN):
                    return b""
                raise

    async def close(self) -> None:
        self._release()


class PolledSink:
    def __init__(self, fd: int, give: Callable[[memoryview], int], release: Callable[[], None]) -> None:
        self._fd, self._give, self._release = fd, give, release

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._give(view) :]
            except _NOT_NOW:
                await writable(self._fd)

    async def close(self) -> None:
        self._release()


async def readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    await _until(loop.add_reader, loop.remove_reader, fd)


async def writable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    await _until(loop.add_writer, loop.remove_writer, fd)


async def _until(add: Callable[..., object], remove: Callable[[int], object], fd: int) -> None:
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    add(fd, wake)
    try:
        await ready
    finally:
        remove(fd)


class _Thread:
    """Blocking steps in order on a daemon thread: one stuck in a read does not hold up the exit."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="quintet-descriptor").start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    async def run(self, step: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()

        def settle(value: T | None, failure: OSError | None) -> None:
            if outcome.done():
                return
            if failure is not None:
                outcome.set_exception(failure)
            else:
                outcome.set_result(value)  # type: ignore[arg-type]

        def job() -> None:
            value: T | None = None
            failure: OSError | None = None
            try:
                value = step()
            except OSError as why:
                failure = why
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, value, failure)

        self._jobs.put(job)
        return await outcome

    def finish(self, last: Callable[[], object]) -> None:
        self._jobs.put(last)
        self._jobs.put(None)


class BlockingSource:
    def __init__(self, fd: int) -> None:
        self._fd, self._thread = fd, _Thread()

    async def read(self) -> bytes:
        return await self._thread.run(lambda: os.read(self._fd, CHUNK))

    async def close(self) -> None:
        # By the thread itself: closing under a blocked read would let the number be reused beneath it.
        self._thread.finish(lambda: os.close(self._fd))


class BlockingSink:
    def __init__(self, fd: int) -> None:
        self._fd, self._thread = fd, _Thread()

    async def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[await self._thread.run(partial(os.write, self._fd, view)) :]

    async def close(self) -> None:
        self._thread.finish(lambda: os.close(self._fd))


def source_of(fd: int) -> PolledSource | BlockingSource:
    """A source for this descriptor, which it now owns."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        return socket_source(socket.socket(fileno=fd), owned=True)
    if (own := _own_description(fd, mode, os.O_RDONLY)) is not None:
        return PolledSource(own, lambda size: os.read(own, size), lambda: os.close(own))
    return BlockingSource(fd)


def sink_of(fd: int) -> PolledSink | BlockingSink:
    """A sink for this descriptor, which it now owns."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        return socket_sink(socket.socket(fileno=fd), owned=True)
    if (own := _own_description(fd, mode, os.O_WRONLY)) is not None:
        return PolledSink(own, lambda view: os.write(own, view), lambda: os.close(own))
    return BlockingSink(fd)


def socket_source(sock: socket.socket, *, owned: bool = False) -> PolledSource:
    return PolledSource(
        sock.fileno(),
        lambda size: sock.recv(size, socket.MSG_DONTWAIT),
        sock.close if owned else lambda: None,
    )


def socket_sink(sock: socket.socket, *, owned: bool = False) -> PolledSink:
    flags = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
    return PolledSink(sock.fileno(), lambda view: sock.send(view, flags), sock.close if owned else lambda: None)


def _own_description(fd: int, mode: int, way: int) -> int | None:
    if not (stat.S_ISFIFO(mode) or os.isatty(fd)):
        return None  # files and devices like /dev/null cannot be polled
    try:
        own = os.open(f"/proc/self/fd/{fd}", way | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return None  # no /proc, another user's pipe, or nobody at the other end: the thread will find out
    os.close(fd)
    return own
