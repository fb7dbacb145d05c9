"""Tailing: how closely this process looks for what other processes committed to the same store.

Fast while somebody here waits for another process, slow while somebody merely watches, not at all otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib

from quintet.domain.errors import QuintetError
from quintet.domain.ports import Journal

FAST_S = 0.010
SLOW_S = 0.250


class Tailing:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._hurried = 0
        self._watchers = 0
        self._task: asyncio.Task[None] | None = None
        self._nudge = asyncio.Event()
        self._due = False  # others have committed something that is not published here yet

    def hurry(self) -> None:
        """Someone waits for another process: a turn runs here, an answer is open, a foreign thread is followed."""
        self._hurried += 1
        self._wake()

    def relax(self) -> None:
        self._hurried -= 1

    def watch(self) -> None:
        self._watchers += 1
        self._wake()

    def unwatch(self) -> None:
        self._watchers -= 1

    def interval_s(self) -> float | None:
        if self._hurried:
            return FAST_S
        return SLOW_S if self._watchers else None

    def _wake(self) -> None:
        self._nudge.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while (interval := self.interval_s()) is not None:
            try:
                self._due = self._journal.changed_elsewhere() or self._due
                if self._due:
                    await self._journal.tail()
                    self._due = False
            except QuintetError:
                self._due = True  # a store that cannot be read now is reported to whoever reads it; tailing tries again
            if interval == FAST_S:
                await asyncio.sleep(FAST_S)
                continue
            self._nudge.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._nudge.wait(), interval)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
