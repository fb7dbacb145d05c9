"""The ordered way out of one connection: a bounded queue and one task that empties it. Knows bytes only.

Two policies, chosen per frame: `send` waits for room, in order; `offer` never waits and says no instead.
After a no, all further offers are refused until `cut` has put a marker in their place: a reader never sees a
gap it was not told of.
"""

import asyncio
from collections import deque
from typing import Protocol

from quintet.rpc.faults import Ended

MAX_BYTES = 1024 * 1024
MAX_FRAMES = 1000
# One write takes at most this much of the queue, so that room comes back in steps while a slow reader reads.
_BATCH = 256 * 1024


class Sink(Protocol):
    async def write(self, data: bytes) -> None:
        """Return when the operating system has taken all of it; OSError when nobody can read it any more."""

    async def close(self) -> None: ...


class Writer:
    def __init__(self, sink: Sink, *, max_bytes: int = MAX_BYTES, max_frames: int = MAX_FRAMES) -> None:
        self._sink = sink
        self._max_bytes, self._max_frames = max_bytes, max_frames
        self._queue: deque[tuple[bytes, int]] = deque()  # frames that lie side by side, and how many they are
        self._waiting: deque[tuple[bytes, int, asyncio.Future[None]]] = deque()
        # Frames on their way through the sink still count: the bound is on all that is held for this reader.
        self._held_bytes = self._held_frames = 0
        self._task: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self.lagging = False
        self.closed = False
        self.broken = asyncio.Event()

    @property
    def held(self) -> tuple[int, int]:
        """Bytes and frames not yet taken by the operating system."""
        return self._held_bytes, self._held_frames

    async def send(self, frame: bytes, frames: int = 1) -> None:
        """Return once the frame has its place: whatever is sent or offered afterwards comes after it. Several of them,
        side by side, take their places together."""
        if self.closed:
            raise Ended("the writer is closed")
        if self.try_send(frame, frames):
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (frame, frames, place)
        self._waiting.append(entry)
        try:
            await place
        except asyncio.CancelledError:
            # A frame whose sender went away before it had a place is not sent, and holds nobody up.
            if entry in self._waiting:
                self._waiting.remove(entry)
                self._admit()
            raise

    def try_send(self, frame: bytes, frames: int = 1) -> bool:
        """`send` for whoever cannot wait; False changes nothing, the caller still owes the frame."""
        if self.closed or self._waiting or not self._has_room(frame, frames):
            return False
        self._accept(frame, frames)
        return True

    def offer(self, frame: bytes) -> bool:
        """Queue the frame if there is room now; False (and lagging) if not, or if a gap is still unmarked."""
        if self.closed or self.lagging:
            return False
        self.lagging = not self.try_send(frame)
        return not self.lagging

    async def cut(self, marker: bytes) -> None:
        """Put the marker where the refused offers would have been; then offers are taken again."""
        await self.send(marker)
        self.lagging = False

    async def drain(self) -> None:
        """Wait until the operating system has taken all that is queued; Ended if it never will."""
        await self._idle.wait()
        if self.broken.is_set():
            raise Ended("the reader is gone")

    async def close(self, timeout_s: float = 1.0) -> bool:
        """Take nothing new, let what is queued out within the bound, then end. True if all went out."""
        self.closed = True
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            pass
        whole = self._held_frames == 0 and not self._waiting and not self.broken.is_set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._fail_waiting()
        await self._sink.close()
        return whole

    def _has_room(self, frame: bytes, frames: int) -> bool:
        if self._held_frames == 0:
            return True  # what is larger than the bound is still sent, alone
        return self._held_frames + frames <= self._max_frames and self._held_bytes + len(frame) <= self._max_bytes

    def _accept(self, frame: bytes, frames: int) -> None:
        self._queue.append((frame, frames))
        self._held_bytes += len(frame)
        self._held_frames += frames
        if self._task is None:
            self._idle.clear()
            self._task = asyncio.get_running_loop().create_task(self._run())

    def _admit(self) -> None:
        while self._waiting and self._has_room(*self._waiting[0][:2]):
            frame, frames, place = self._waiting.popleft()
            if not place.done():
                self._accept(frame, frames)
                place.set_result(None)

    async def _run(self) -> None:
        try:
            while self._queue:
                batch, frames = self._take()
                await self._sink.write(batch)
                self._held_bytes -= len(batch)
                self._held_frames -= frames
                self._admit()
        except OSError:
            self.closed = True
            self.broken.set()
            self._queue.clear()
            self._held_bytes = self._held_frames = 0
            self._fail_waiting()
        finally:
            self._task = None
            self._idle.set()

    def _take(self) -> tuple[bytes, int]:
        """All that is queued, up to one batch, as one write."""
        part, frames = self._queue.popleft()
        parts, size = [part], len(part)
        while self._queue and size + len(self._queue[0][0]) <= _BATCH:
            part, more = self._queue.popleft()
            parts.append(part)
            size, frames = size + len(part), frames + more
        return (b"".join(parts) if len(parts) > 1 else part), frames

    def _fail_waiting(self) -> None:
        while self._waiting:
            _, _, place = self._waiting.popleft()
            if not place.done():
                place.set_exception(Ended("the reader is gone"))
