"""SqliteStore: one process's seat at the file that several processes share. A writer thread, readers, and one
connection of the event loop that only asks whether others have written.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NoReturn, TypeVar

import apsw

from quintet.domain.errors import QuintetError, StorageFull, StorageReadOnly
from quintet.domain.event import Draft, Event
from quintet.domain.ports import Clock, Listener
from quintet.domain.turn import Lease
from quintet.journal import owners
from quintet.journal.faults import as_storage_error
from quintet.journal.home import Home
from quintet.journal.jobs import Errand, Job, Outcome, Waiting
from quintet.journal.publisher import Publisher
from quintet.journal.reader import Asked, Reader, settle_future
from quintet.journal.rows import Reads
from quintet.journal.statements import SQL, number
from quintet.journal.store import OpenReport
from quintet.journal.transaction import Transaction
from quintet.journal.writer import Writer

T = TypeVar("T")
READERS = 2
GATHERED = 64  # a few of these make one commit
PENDING_DELTAS = 512  # pushes beyond this make `room` wait; well below what a reader's queue takes at once


class SqliteStore:
    def __init__(
        self,
        home: Home,
        *,
        clock: Clock,
        report: OpenReport,
        lock: owners.OwnerLock | None,
        owner: str,
        version: int,
        writing: apsw.Connection | None,
        connect: Callable[[], apsw.Connection],
    ) -> None:
        self.home, self.clock, self.report, self.owner = home, clock, report, owner
        self._lock = lock
        self._loop = asyncio.get_running_loop()
        self._publisher = Publisher()
        self._failed: dict[Lease, QuintetError] = {}
        self._pending = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._closed = False
        self._asked: queue.SimpleQueue[Asked | None] = queue.SimpleQueue()
        self._readers = [Reader(connect, self._asked, self._loop) for _ in range(READERS)]
        self._watch = connect()
        self._data_version = self._read_data_version()
        self._writing = writing
        self._writer: Writer | None = None
        self._queue: queue.SimpleQueue[Waiting] = queue.SimpleQueue()  # to the writer
        self._gathered: list[Draft] = []  # deltas of one turn, pushed since the loop's last breath
        self._gathering: Lease | None = None
        if writing is not None:
            self._writer = Writer(
                writing,
                self._queue,
                home=home,
                publisher=self._publisher,
                clock=clock,
                owner=owner,
                alive=self.alive,
                version=version,
                loop=self._loop,
                deliver=self._deliver,
            )
            self._writer.start()
        for reader in self._readers:
            reader.start()

    # --- writing -------------------------------------------------------------------------------------------------
    def _to_writer(self, work: Waiting) -> None:
        if self._closed or self._writer is None:
            self._refuse()
        if self._gathering is not None:
            self._pass_on()
        self._queue.put(work)

    def _refuse(self) -> NoReturn:
        if self._closed:
            raise StorageReadOnly("The journal is closed.", next_step="")
        if self.report.full:
            raise StorageFull("The disk is full, so the journal was opened for reading only.")
        raise StorageReadOnly("The journal was opened for reading only.")

    def push(self, drafts: Sequence[Draft], lease: Lease) -> None:
        """Those of a turn within one breath of the loop are passed on together: nobody would hear of the first before
        the loop draws its next one, and every hand-over costs."""
        if self._closed or self._writer is None:
            self._refuse()
        if lease is not self._gathering or len(self._gathered) >= GATHERED:
            self._pass_on()
            self._gathering = lease
            self._loop.call_soon(self._pass_on)
        self._gathered += drafts
        self._pending += len(drafts)

    def _pass_on(self) -> None:
        """To the writer; before anything that is written after them."""
        if self._gathering is not None:
            self._queue.put((self._gathered, self._gathering))
            self._gathered, self._gathering = [], None

    async def room(self, lease: Lease | None) -> None:
        while self._pending > PENDING_DELTAS and not self._closed:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter
        self.raise_failed_push(lease)

    def raise_failed_push(self, lease: Lease | None) -> None:
        if not self._failed:  # nearly always, and a lease is dear to look up
            return
        error = self._failed.pop(next(iter(self._failed)) if lease is None else lease, None)
        if error is not None:
            raise error

    def write(self, name: str, work: Callable[[Transaction], T], *, settling: bool = False) -> Awaitable[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        self._to_writer(Job(name, work, future, settling=settling))
        return future

    def _deliver(self, outcome: Outcome) -> None:
        """On the loop, once per commit: listeners first, since whoever awaits a result resumes after this anyway."""
        if outcome.pushed:
            self._pending -= outcome.pushed
            if self._waiters and self._pending <= PENDING_DELTAS:
                waiters, self._waiters = self._waiters, []
                for waiter in waiters:
                    settle_future(waiter, None, None)
        for lease, error in outcome.failed_pushes:
            self._failed.setdefault(lease, error)
        if outcome.missed:
            self._publisher.deliver(())  # "look for yourself"
        if outcome.events:
            self._publisher.deliver(outcome.events)
        for job in outcome.jobs:
            settle_future(job.future, job.result, job.error)

    def _errand(self, work: Callable[[], T]) -> Awaitable[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        self._to_writer(Errand(work, future))
        return future

    async def tail(self) -> None:
        if self._writer is not None:
            await self._errand(self._writer.tail)
            return
        pages: list[list[Event]] = []

        def look(rows: Reads) -> None:
            pages.extend(self._publisher.due(rows, (), rows.counter().next - 1))

        try:
            await self.read(look)
        finally:  # also what was read before something could not be
            for page in pages:
                self._publisher.deliver(page)

    async def tidy(self) -> int:
        assert self._writer is not None
        return await self._errand(self._writer.tidy)

    # --- reading -------------------------------------------------------------------------------------------------
    async def read(self, work: Callable[[Reads], T]) -> T:
        if self._closed:
            raise StorageReadOnly("The journal is closed.", next_step="")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._asked.put((work, future))
        result: T = await future
        return result

    def alive(self, owner: str) -> bool:
        return owners.alive(self.home.run, owner)

    def listen(self, listener: Listener) -> Callable[[], None]:
        return self._publisher.listen(listener, self._newest)

    def _newest(self) -> int:
        return self._ask(SQL["counter"]) - 1

    def _read_data_version(self) -> int:
        return self._ask("PRAGMA data_version")

    def _ask(self, sql: str) -> int:
        try:
            return number(self._watch, sql)
        except apsw.Error as error:
            raise as_storage_error(error) from error

    def changed_elsewhere(self) -> bool:
        version = self._read_data_version()
        if version == self._data_version:
            return False
        # Our own writer changes it too; what is published already is no news.
        mark = self._publisher.mark
        news = mark is None or self._newest() > mark
        self._data_version = version  # last: a look that failed is taken again
        return news

    async def close(self) -> None:
        if self._closed:
            return
        if self._writer is not None:
            self._to_writer(None)
        self._closed = True
        for _ in self._readers:
            self._asked.put(None)
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        for reader in self._readers:
            reader.join()
        self._watch.close()
        if self._writer is not None:
            self._writer.join()
        if self._writing is not None:
            self._writing.close()  # the last one out folds the log into the file
        if self._lock is not None:
            self._lock.release()
