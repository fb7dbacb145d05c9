"""The journal in memory: the same rules over dictionaries, for tests and for work that need not last.

One `MemoryStore` holds the rows; every `MemorySeat` on it plays a process with its own owner that a test can kill.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from quintet.domain.errors import Invalid, QuintetError, StorageReadOnly
from quintet.domain.event import Draft, Event
from quintet.domain.ids import new_id
from quintet.domain.ports import Clock, Listener
from quintet.domain.turn import Lease
from quintet.journal.appending import write_pushes
from quintet.journal.clock import SystemClock
from quintet.journal.codec import UNPAIRED
from quintet.journal.memory_rows import MemoryRows
from quintet.journal.publisher import Publisher
from quintet.journal.rows import Reads
from quintet.journal.store import OpenReport
from quintet.journal.stored import StoredJournal
from quintet.journal.transaction import Transaction

T = TypeVar("T")
NO_LIMIT = 1 << 62


class MemoryStore:
    def __init__(self) -> None:
        self.rows = MemoryRows()
        self.living: set[str] = set()


class MemorySeat:
    """One process's place at a shared MemoryStore. Writes happen at once; listeners hear of them on the loop."""

    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        self.shared = store
        self.owner = new_id("own")
        self.clock = clock
        self.report = OpenReport()
        self._publisher = Publisher()
        self._failed: dict[Lease, QuintetError] = {}
        self._seen = 0
        self._closed = False
        store.living.add(self.owner)

    def _transact(self, work: Callable[[Transaction], T]) -> tuple[T, list[Event]]:
        if self._closed:
            raise StorageReadOnly("This journal is closed.")
        rows = self.shared.rows
        first, now = rows.next, self.clock.now_ms()
        tx = Transaction(rows, owner=self.owner, now_ms=now, first=first, limit=NO_LIMIT, probe=self.alive)
        rows.begin()
        try:
            result = work(tx)
            tx.flush()
        except UnicodeError:
            rows.rollback()
            raise Invalid(UNPAIRED) from None
        except BaseException:
            rows.rollback()
            raise
        rows.next = tx.next
        rows.commit()
        return result, tx.events

    def _publish(self, own: Sequence[Event]) -> None:
        if self._publisher.mark is None:
            return
        loop = asyncio.get_running_loop()
        for page in self._publisher.due(self.shared.rows, own, self.shared.rows.next - 1):
            loop.call_soon(self._publisher.deliver, page)

    def push(self, drafts: Sequence[Draft], lease: Lease) -> None:
        failed, events = self._transact(lambda tx: write_pushes(tx, [(drafts, lease)]))
        for lost, error in failed:
            self._failed.setdefault(lost, error)
        self._publish(events)

    async def room(self, lease: Lease | None) -> None:
        self.raise_failed_push(lease)

    def raise_failed_push(self, lease: Lease | None) -> None:
        key = next(iter(self._failed), None) if lease is None else lease
        error = self._failed.pop(key, None) if key is not None else None
        if error is not None:
            raise error

    async def write(self, name: str, work: Callable[[Transaction], T], *, settling: bool = False) -> T:
        result, events = self._transact(work)
        self._publish(events)
        await asyncio.sleep(0)  # listeners hear of it before the caller goes on, as with a real store
        return result

    async def read(self, work: Callable[[Reads], T]) -> T:
        return work(self.shared.rows)

    def alive(self, owner: str) -> bool:
        return owner in self.shared.living

    def kill(self) -> None:
        """As if the process had died: its owner is dead and it never writes again."""
        self.shared.living.discard(self.owner)
        self._closed = True

    def listen(self, listener: Listener) -> Callable[[], None]:
        return self._publisher.listen(listener, lambda: self.shared.rows.next - 1)

    def changed_elsewhere(self) -> bool:
        newest = self.shared.rows.next - 1
        mark = self._publisher.mark
        changed = newest > max(self._seen, mark or 0)
        self._seen = newest
        return changed

    async def tail(self) -> None:
        self._publish(())

    async def tidy(self) -> int:
        return 0

    async def close(self) -> None:
        self.kill()


def memory_journal(store: MemoryStore | None = None, *, clock: Clock | None = None) -> StoredJournal:
    """A journal in memory; given a store, one more process on it."""
    return StoredJournal(MemorySeat(store or MemoryStore(), clock or SystemClock()))
