"""Health: whether the event loop keeps up."""

from __future__ import annotations

import asyncio
import contextlib

TICK_S = 0.1
WEDGED_S = 1.0


class LoopLag:
    """How late the event loop is: a port that is open tells nothing about a loop that is stuck."""

    def __init__(self) -> None:
        self.worst_s = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._measure())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _measure(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            late = max(0.0, loop.time() - due)
            self.worst_s = max(late, self.worst_s * 0.9)  # a bad moment fades within a few seconds

    @property
    def wedged(self) -> bool:
        return self.worst_s > WEDGED_S
