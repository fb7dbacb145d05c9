"""Both stores behind one fixture: `processes` opens any number of journals on one store and can let one die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from quintet.journal import StoredJournal, open_journal
from quintet.journal.memory import MemorySeat, MemoryStore, memory_journal
from quintet.journal.sqlite import SqliteStore
from tests.fakes.memory_disk import in_memory
from tests.unit.journal.nouns import Clock


class Processes:
    def __init__(self, home: Path | None) -> None:
        self.home = home
        self.clock = Clock()
        self._memory = MemoryStore()
        self._open: list[StoredJournal] = []

    async def another(self) -> StoredJournal:
        if self.home is None:
            journal = memory_journal(self._memory, clock=self.clock)
        else:
            journal = await open_journal(self.home, protocol="test", clock=self.clock)
        self._open.append(journal)
        return journal

    @staticmethod
    def die(journal: StoredJournal) -> None:
        """Its owner lock is gone, as after SIGKILL; what it still writes is what a zombie would write."""
        store = journal.store
        if isinstance(store, MemorySeat):
            store.shared.living.discard(store.owner)
        else:
            assert isinstance(store, SqliteStore)
            assert store._lock is not None
            store._lock.release()

    async def close(self) -> None:
        for journal in self._open:
            await asyncio.wait_for(journal.close(), 10)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """What the journal syncs need not wait for a disk, of which nothing here is told."""
    with in_memory() as place:
        yield place


@pytest.fixture(params=["sqlite", "memory"])
async def processes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Processes]:
    made = Processes(tmp_path / "home" if request.param == "sqlite" else None)
    yield made
    await made.close()


@pytest.fixture
async def journal(processes: Processes) -> StoredJournal:
    return await processes.another()


@pytest.fixture
def clock(processes: Processes) -> Clock:
    return processes.clock


@pytest.fixture
async def files(tmp_path: Path) -> AsyncIterator[Processes]:
    """SQLite alone."""
    made = Processes(tmp_path / "home")
    yield made
    await made.close()
