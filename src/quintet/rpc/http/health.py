"""Health: the one route that needs no credential. Says whether the event loop keeps up, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec

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

    def answer(self) -> tuple[int, bytes]:
        wedged = self.worst_s > WEDGED_S
        body: dict[str, Any] = {"status": "lagging" if wedged else "ok", "loop_lag_ms": round(self.worst_s * 1000, 1)}
        return (503 if wedged else 200), msgspec.json.encode(body)
