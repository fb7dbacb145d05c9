"""Housekeeping: what is due is pruned, within a bound, and trouble with the store is nobody's trouble."""

from __future__ import annotations

import asyncio

import pytest

from quintet.domain.errors import StorageFull
from quintet.domain.ports import PruneReport
from quintet.engine.housekeeping import Housekeeping


class Store:
    def __init__(self, *, fails: bool = False, hangs: bool = False) -> None:
        self.asked: list[tuple[int, float]] = []
        self._fails, self._hangs = fails, hangs

    async def prune(self, *, now_ms: int, grace_s: float) -> PruneReport:
        self.asked.append((now_ms, grace_s))
        if self._fails:
            raise StorageFull("no room")
        if self._hangs:
            await asyncio.Event().wait()
        return PruneReport(0, 0, 0, 0)


class Clock:
    def now_ms(self) -> int:
        return 1_000


async def test_it_prunes_with_the_configured_grace() -> None:
    store = Store()
    await Housekeeping(store, Clock(), 900.0).tidy(1.0)  # type: ignore[arg-type]
    assert store.asked == [(1_000, 900.0)]


@pytest.mark.parametrize("store", [Store(fails=True), Store(hangs=True)], ids=["fails", "hangs"])
async def test_a_store_that_fails_or_hangs_keeps_nobody(store: Store) -> None:
    async with asyncio.timeout(5):
        await Housekeeping(store, Clock(), 900.0).tidy(0.01)  # type: ignore[arg-type]
    assert store.asked
