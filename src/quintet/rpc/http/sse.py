"""Server-Sent Events to one client: a bounded queue, a writer, a heartbeat. Knows bytes; what they say is the face's.

Nobody waits for a slow client: what is offered goes into its queue, and a client whose queue is full is cut off after
last words that it may or may not get. It comes back with its cursor.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

MOST_FRAMES = 1_000
MOST_BYTES = 1024 * 1024
AT_ONCE = 64 * 1024  # written in one piece; what waits behind it stays in the bounded queue
LAST_WORDS_S = 1.0  # how long a client that was cut off has to take them
LINK = "quintet.link"  # where a request's scope holds its connection
HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}


def sse_frame(data: bytes, number: int | None = None) -> bytes:
    """One frame. Without a number it does not move a client's Last-Event-ID. JSON has no line ends of its own."""
    head = b"" if number is None else b"id: %d\n" % number
    return b"%bdata: %b\n\n" % (head, data)


class Link(Protocol):
    """The connection below a stream."""

    def on_lost(self, callback: Callable[[], object]) -> Callable[[], None]: ...
    def write_at_once(self, chunk: bytes) -> bool: ...
    def abort(self) -> None: ...


class Stream:
    def __init__(self, write: Callable[[bytes], Awaitable[None]], link: Link, *, beat_s: float) -> None:
        self._write, self._link, self._beat_s = write, link, beat_s
        self._queue: deque[tuple[bytes, int]] = deque()
        self._frames = self._bytes = 0
        self.sent = 0  # frames that were offered and have gone out
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._writing_since = 0.0
        self.closed = False  # nothing more is taken; what is queued still goes out
        self.lost = False  # nobody is there any more
        self.heartbeat: Callable[[], bytes] | None = None
        self.overflow: Callable[[], bytes] | None = None
        link.on_lost(self._lose)

    def offer(self, chunk: bytes, frames: int = 1) -> bool:
        """Write or queue it, without waiting. False when the stream is over, or has just been cut off because its
        client is too slow."""
        if self.closed:
            return False
        # While the writer rests and the client keeps up, nobody has to be woken for it.
        if self._waiter is not None and not self._queue and self._link.write_at_once(chunk):
            self.sent += frames
            return True
        if self._queue and (self._frames + frames > MOST_FRAMES or self._bytes + len(chunk) > MOST_BYTES):
            self._cut()
            return False
        self._queue.append((chunk, frames))
        self._frames += frames
        self._bytes += len(chunk)
        self._wake()
        return True

    async def send(self, chunk: bytes) -> None:
        """Write it at the client's own pace, for what is read from the store: when this returns, it has taken nearly
        all of it, and no more than a piece ever waits for it here."""
        for at in range(0, len(chunk), AT_ONCE):
            await self._put(chunk[at : at + AT_ONCE])
        await self._put(b"")

    async def _put(self, chunk: bytes) -> None:
        if not self.lost:
            self._writing_since = asyncio.get_running_loop().time()
            await self._write(chunk)  # waits for room before it writes
            self._writing_since = 0.0

    async def pump(self) -> None:
        """Write what is offered until the stream is closed or its client is gone."""
        while not self.lost:
            while self._queue and not self.lost:
                chunk, frames = self._take()
                await self._put(chunk)
                self.sent += frames
            if self.closed or self.lost:
                return
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            self._waiter = None

    def start(self) -> None:
        """From now on the client hears from us at least once per heartbeat."""
        self._timer = asyncio.get_running_loop().call_later(self._beat_s, self._beat)

    def close(self) -> None:
        """Let it end: what is queued goes out, then the answer is over."""
        self.closed = True
        self._wake()

    def stop(self) -> None:
        """The answer is over; nothing of this is needed any more."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _take(self) -> tuple[bytes, int]:
        chunk, frames = self._queue.popleft()
        if not self._queue or len(chunk) >= AT_ONCE:
            self._frames -= frames
            self._bytes -= len(chunk)
            return chunk, frames
        chunks, size = [chunk], len(chunk)
        while self._queue and size < AT_ONCE:
            chunk, more = self._queue.popleft()
            chunks.append(chunk)
            frames += more
            size += len(chunk)
        self._frames -= frames
        self._bytes -= size
        return b"".join(chunks), frames

    def _cut(self) -> None:
        self._queue.clear()
        self._frames = self._bytes = 0
        if self.overflow is not None:
            self._queue.append((self.overflow(), 0))
        self.close()
        # A client that reads nothing would never take them.
        asyncio.get_running_loop().call_later(LAST_WORDS_S, self._give_up)

    def _give_up(self) -> None:
        if self._timer is not None and not self.lost:
            self._link.abort()

    def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._beat_s, self._beat)
        if self._writing_since and loop.time() - self._writing_since > self._beat_s:
            self._link.abort()  # nothing was taken since the last heartbeat: dead, or as good as that
        elif self.heartbeat is not None and not self.closed:
            self.offer(self.heartbeat())

    def _lose(self) -> None:
        self.closed = self.lost = True
        self._queue.clear()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
