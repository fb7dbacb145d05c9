"""One run as a stream: the frames of /events for its thread, from run.started on, then the final object, then the end.

A client that leaves has only stopped looking: the run goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from quintet.domain.thread import Thread
from quintet.engine.fanout import Numbered
from quintet.protocols.knp import models as knp
from quintet.protocols.knp.frames import NAMESPACE, Frame
from quintet.protocols.knp.house import House
from quintet.protocols.knp.watching import Picked, Wanted, Watcher
from quintet.rpc.http.sse import Stream

BEGUN, ENDED = "run.started", "run.finished"


class RunStream:
    def __init__(self, house: House, thread: Thread, run: str, after: int, namespace: str) -> None:
        self._house, self._thread, self._run, self._after = house, thread, run, after
        self._wanted = Wanted(NAMESPACE, namespace, thread.id)
        self._first = self._last = 0  # the numbers of its first and last frame, once they were seen
        self._over = asyncio.Event()

    def pick(self, frames: Numbered[Frame]) -> Picked | None:
        """Also called for pages that hold what came live before: what a frame is goes by its number alone."""
        chunks = [(number, frame.encoded(number, NAMESPACE)) for number, frame in frames if self._mine(number, frame)]
        return Picked(chunks) if chunks else None

    def _mine(self, number: int, frame: Frame) -> bool:
        if frame.tid != self._thread.id:
            return False
        if frame.kind == BEGUN and frame.data["runId"] == self._run:
            self._first = number
        if frame.kind == ENDED and frame.data["runId"] == self._run:
            self._last = number
            self._over.set()
        return bool(self._first) and self._first <= number and (not self._last or number <= self._last)

    async def fill(self, stream: Stream, result: Callable[[], Awaitable[knp.Run]]) -> None:
        watcher = Watcher(self._house, stream, self._wanted, self._after, pick=self.pick)
        leave = self._house.fanout.join(self, self.pick, watcher.deliver, stream.close)
        ending = asyncio.get_running_loop().create_task(self._end(stream, watcher, result))
        try:
            await watcher.catch_up(self._thread.root)
            watcher.go_live()
            await stream.pump()
        finally:
            leave()
            ending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await ending

    async def _end(self, stream: Stream, watcher: Watcher, result: Callable[[], Awaitable[knp.Run]]) -> None:
        """Behind the last frame: once that is in the stream, so is all before it."""
        await self._over.wait()
        final = await result()
        await watcher.caught_up.wait()
        stream.offer(watcher.word("run.result", final))
        stream.close()
