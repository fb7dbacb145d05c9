"""Tasks: what a conversation does at the same time. The first defect of any of them ends the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    def __init__(self, failed: Callable[[], None]) -> None:
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()
        self.failure: BaseException | None = None

    def keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    async def close(self) -> None:
        """End them all, and raise what one of them failed with."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.failure is not None:
            raise self.failure

    def _over(self, task: asyncio.Task[None]) -> None:
        """It must not go on with half of what it shows."""
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.failure = self.failure or task.exception()
            self._failed()
