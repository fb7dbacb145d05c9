"""One run as a stream: the frames of /events for its thread, from run.started on, then the final object, then the end.

A client that leaves has only stopped looking: the run goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from quintet.engine.fanout import Numbered
from quintet.protocols.knp import models as knp
from quintet.protocols.knp.frames import Frame
from quintet.protocols.knp.house import House
from quintet.protocols.knp.watching import Picked, Wanted, Watcher, Where
from quintet.rpc.http.sse import Stream

BEGUN, ENDED = "run.started", "run.finished"


class RunWatcher(Watcher):
    """Sends what lies between the run's first frame and its last. Frames are seen twice, live and in pages from the
    store, so where the run begins and ends is noted whenever it is seen, and asked when something is sent."""

    def __init__(self, house: House, stream: Stream, wanted: Wanted, position: int, run: str) -> None:
        super().__init__(house, stream, wanted, position)
        self._run = run
        self._first = self._last = 0  # numbers; 0: not seen yet
        self._ended = asyncio.Event()
        self._caught_up = asyncio.Event()

    def pick(self, frames: Numbered[Frame]) -> Picked | None:
        for number, frame in frames:
            if frame.kind in (BEGUN, ENDED) and frame.data["runId"] == self._run:
                if frame.kind == BEGUN:
                    self._first = number
                else:
                    self._last = number
                    self._ended.set()
        return super().pick(frames)

    def _left(self, picked: Picked) -> Picked | None:
        left = super()._left(picked)
        if left is None or not self._first:
            return None  # what comes before it began
        return left.between(self._first, self._last or left.last)

    def go_live(self) -> None:
        super().go_live()
        self._caught_up.set()

    async def ended(self) -> None:
        """The run has ended, and all its frames are in the stream."""
        await self._ended.wait()
        await self._caught_up.wait()

    @property
    def told_all(self) -> bool:
        return bool(self._last) and self.position >= self._last


async def stream_run(
    house: House,
    stream: Stream,
    wanted: Wanted,
    *,
    run: str,
    root: str,
    after: int,
    result: Callable[[], Awaitable[knp.Run]],
) -> None:
    """`after` lies before the run's beginning; `result` gives the final object once it has ended."""
    watcher = RunWatcher(house, stream, wanted, after, run)

    async def end() -> None:
        await watcher.ended()
        stream.close()

    leave = house.fanout.join(watcher, watcher.pick, watcher.deliver, stream.close)
    ending = asyncio.get_running_loop().create_task(end())
    try:
        await watcher.catch_up(Where(root=root))
        watcher.go_live()
        await stream.pump()
        # Also where somebody else closed the stream: a server that stops ends its runs first.
        if watcher.told_all and not stream.lost:
            await stream.send(watcher.word("run.result", await result()))
    finally:
        leave()
        ending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ending
