"""The writer thread: takes whatever waits when it is free, has it committed as one transaction, then hands results and
publications to the event loop in one call. What to do when a transaction fails is decided here.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence

import apsw

from quintet.domain.errors import QuintetError, StorageFull, VersionMismatch
from quintet.domain.event import Event
from quintet.domain.ports import Clock
from quintet.journal import failpoints
from quintet.journal.commit import CEILING_STEP, Committer, HalfDone
from quintet.journal.faults import as_storage_error
from quintet.journal.home import Home
from quintet.journal.jobs import Errand, Job, Outcome, Waiting, Work, size_of
from quintet.journal.publisher import Publisher
from quintet.journal.statements import number
from quintet.journal.transaction import NumbersSpent

BATCH_ROWS = 256
BUSY_MS = 10_000
_TIDY_WAIT_MS = 100


class Writer(threading.Thread):
    def __init__(
        self,
        connection: apsw.Connection,
        waiting: queue.SimpleQueue[Waiting],
        *,
        home: Home,
        publisher: Publisher,
        clock: Clock,
        owner: str,
        alive: Callable[[str], bool],
        version: int,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[Outcome], None],
    ) -> None:
        super().__init__(name="quintet-journal-writer", daemon=True)
        self._queue = waiting
        self._committer = Committer(connection, clock=clock, owner=owner, alive=alive, version=version)
        self.rows = self._committer.rows
        self.full = not home.has_reserve()  # who starts without one may settle, not begin, until there is room
        self._connection = connection
        self._run_sql = connection.execute
        self._home = home
        self._publisher = publisher
        self._loop = loop
        self._deliver = deliver

    # --- the thread ----------------------------------------------------------------------------------------------
    def run(self) -> None:
        going = True
        while going:
            batch: list[Work] = []
            for waiting in self._take():
                if waiting is not None and not isinstance(waiting, Errand):
                    batch.append(waiting)
                    continue
                self._commit(batch)
                batch = []
                if waiting is None:
                    going = False
                else:
                    self._do(waiting)
            self._commit(batch)

    def _take(self) -> list[Waiting]:
        waiting = self._queue.get()
        taken = [waiting]
        rows = size_of(waiting)
        try:
            while rows < BATCH_ROWS:
                waiting = self._queue.get_nowait()
                taken.append(waiting)
                rows += size_of(waiting)
        except queue.Empty:
            pass
        return taken

    def _do(self, errand: Errand) -> None:
        try:
            errand.result = errand.work()
        except Exception as error:
            errand.error = as_storage_error(error)
        outcome = Outcome()
        outcome.jobs.append(errand)
        self._hand_over(outcome)

    # --- one commit ----------------------------------------------------------------------------------------------
    def _commit(self, batch: Sequence[Work]) -> None:
        if not batch:
            return
        if self.full and not all(_settles(w) for w in batch):
            if self._home.room_again():
                self.full = False
            else:
                batch = self._refuse_unsettling(batch)
                if not batch:
                    return
        try:
            self._publish(*self._committer.attempt(batch))
        except HalfDone:
            self._retry_guarded(batch)
        except NumbersSpent:
            self._retry_with_more_numbers(batch)
        except Exception as error:
            self._after_failure(batch, error)

    # --- when a transaction fails ----------------------------------------------------------------------------------
    def _retry_guarded(self, batch: Sequence[Work]) -> None:
        try:
            self._publish(*self._committer.attempt(batch, guarded=True))
        except NumbersSpent:
            self._retry_with_more_numbers(batch)
        except Exception as error:
            self._after_failure(batch, error)

    def _retry_with_more_numbers(self, batch: Sequence[Work]) -> None:
        try:
            self._committer.raise_ceiling(CEILING_STEP * 16)
            self._publish(*self._committer.attempt(batch, guarded=True))
        except Exception as error:
            self._after_failure(batch, error)

    def _after_failure(self, batch: Sequence[Work], error: Exception) -> None:
        known = self._named(error)
        if isinstance(known, StorageFull) and not self.full:
            # The reserve is for what settles: the end of turns, and answers the engine gives itself.
            self.full = True
            self._home.free_reserve()
            batch = self._refuse_unsettling(batch)
            if batch:
                self._commit(batch)
        elif len(batch) > 1 and not isinstance(known, VersionMismatch):
            for work in batch:
                self._commit([work])
        else:
            self._fail(batch, known)

    def _named(self, error: Exception) -> QuintetError:
        if isinstance(error, apsw.IOError | apsw.CantOpenError) and self._home.free_bytes() < 64 * 1024:
            return StorageFull("The disk is full: nothing was written.")
        return as_storage_error(error)

    def _refuse_unsettling(self, batch: Sequence[Work]) -> list[Work]:
        self._fail([w for w in batch if not _settles(w)], StorageFull("The disk is full: nothing was written."))
        return [w for w in batch if _settles(w)]

    def _fail(self, batch: Sequence[Work], error: QuintetError) -> None:
        outcome = Outcome()
        for work in batch:
            if isinstance(work, tuple):
                outcome.pushed += len(work[0])
                outcome.failed_pushes.append((work[1], error))
            else:
                work.result, work.error = None, error
                outcome.jobs.append(work)
        if batch:
            self._hand_over(outcome)

    # --- after the commit --------------------------------------------------------------------------------------------
    def _publish(self, outcome: Outcome, through: int) -> None:
        if failpoints.armed:
            failpoints.passing("publish.before")
        own, outcome.events = outcome.events, []
        try:
            for page in self._publisher.due(self.rows, own, through):
                if outcome.events:
                    self._hand_over_events(outcome.events)
                outcome.events = page
        except Exception:
            # Rows of others that cannot be read are no reason to keep back what was just committed, nor what was read
            # before them; of the rest listeners are told that it is missing.
            if outcome.events:
                self._hand_over_events(outcome.events)
            outcome.events, outcome.missed = own, True
            self._publisher.skip_to(through)
        self._hand_over(outcome)

    def tail(self) -> None:
        """Errand: publish what others committed."""
        if self._publisher.mark is not None:
            for page in self._publisher.due(self.rows, (), self.rows.counter().next - 1):
                self._hand_over_events(page)

    def tidy(self) -> int:
        """Errand: give free pages back, in bounded steps, and fold the log into the file."""
        before = number(self._connection, "PRAGMA page_count")
        for _ in range(0, number(self._connection, "PRAGMA freelist_count"), 1000):
            self._run_sql("PRAGMA incremental_vacuum(1000)").fetchall()
        # Waiting for readers of other processes here would make their writers wait too: try, do not insist.
        self._connection.set_busy_timeout(_TIDY_WAIT_MS)
        try:
            self._run_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self._connection.set_busy_timeout(BUSY_MS)
        gone = before - number(self._connection, "PRAGMA page_count")
        return gone * number(self._connection, "PRAGMA page_size")

    def _hand_over_events(self, events: list[Event]) -> None:
        outcome = Outcome()
        outcome.events = events
        self._hand_over(outcome)

    def _hand_over(self, outcome: Outcome) -> None:
        try:
            self._loop.call_soon_threadsafe(self._deliver, outcome)
        except RuntimeError:
            return  # the loop is gone; so is everybody who waited


def _settles(work: Work) -> bool:
    return isinstance(work, Job) and work.settling
