"""Housekeeping: deltas nobody can need any more are pruned without being asked, a little at a time.

Short-lived processes do it on their way out, long-lived ones now and then; each within a bound.
"""

from __future__ import annotations

import asyncio
import contextlib

from quintet.domain.errors import QuintetError
from quintet.domain.ports import Clock, Journal

EVERY_S = 300.0
ON_THE_WAY_OUT_S = 0.5


class Housekeeping:
    def __init__(self, journal: Journal, clock: Clock, grace_s: float) -> None:
        self._journal = journal
        self._clock = clock
        self._grace_s = grace_s

    async def tidy(self, within_s: float) -> None:
        """Prune what is due. Cut off when time is up: every step is a commit of its own, the rest is done next time."""
        with contextlib.suppress(TimeoutError, QuintetError):  # a full or read-only store has other cares
            async with asyncio.timeout(within_s):
                await self._journal.prune(now_ms=self._clock.now_ms(), grace_s=self._grace_s)

    async def run(self) -> None:
        """For as long as the process lives."""
        while True:
            await asyncio.sleep(EVERY_S)
            await self.tidy(EVERY_S)
