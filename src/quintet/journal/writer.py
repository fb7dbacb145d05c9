"""The writer thread: takes whatever waits when it is free, commits it as one transaction, then hands results and
publications to the event loop in one call. Each job has a savepoint, so that one refusal does not hurt the others.
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
from quintet.domain.thread import Thread
from quintet.journal import failpoints
from quintet.journal.appending import Push, write_pushes
from quintet.journal.faults import as_storage_error
from quintet.journal.home import Home
from quintet.journal.jobs import Errand, Job, Outcome, Waiting, Work, size_of
from quintet.journal.publisher import Publisher
from quintet.journal.sqlite_rows import SqliteRows
from quintet.journal.statements import SQL, number
from quintet.journal.transaction import NumbersSpent, Transaction

BATCH_ROWS = 256
BUSY_MS = 10_000
CEILING_STEP = 65_536
_TIDY_WAIT_MS = 100
_KNOWN_THREADS = 512
_HEADROOM = 4_096  # numbers one commit may use without asking for more first


class _HalfDone(Exception):
    """A job was refused after it had changed something: the transaction is begun anew, with savepoints."""


class Writer(threading.Thread):
    def __init__(
        self,
        connection: apsw.Connection,
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
        self.queue: queue.SimpleQueue[Waiting] = queue.SimpleQueue()
        self.rows = SqliteRows(connection)
        self.full = not home.has_reserve()  # who starts without one may settle, not begin, until there is room
        self._connection = connection
        self._run_sql = connection.execute
        self._home = home
        self._publisher = publisher
        self._clock = clock
        self._owner = owner
        self._alive = alive
        self._version = version
        self._loop = loop
        self._deliver = deliver
        self._synced: bool | None = None
        self._known: dict[str, Thread] = {}  # as of our last commit; true while nobody else has taken a number
        self._left_at = -1

    # --- the thread ----------------------------------------------------------------------------------------------
    def run(self) -> None:
        going = True
        while going:
            batch: list[Work] = []
            for waiting in self._take():
                if isinstance(waiting, tuple | Job):
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
        taken = [self.queue.get()]
        rows = size_of(taken[0])
        while rows < BATCH_ROWS:
            try:
                taken.append(self.queue.get_nowait())
            except queue.Empty:
                break
            rows += size_of(taken[-1])
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
            self._attempt(batch)
        except _HalfDone:
            self._retry_guarded(batch)
        except NumbersSpent:
            self._retry_with_more_numbers(batch)
        except Exception as error:
            self._after_failure(batch, error)

    def _attempt(self, batch: Sequence[Work], *, guarded: bool = False) -> None:
        """The whole batch in one transaction. Raises when the transaction as such fails; nothing is kept then.

        Most jobs either succeed or are refused before they change anything, so savepoints are taken only in a second
        attempt, after a job was refused half way.
        """
        outcome = Outcome()
        self._synchronous(full=any(isinstance(w, Job) for w in batch))
        first, limit = self._begin()
        if first != self._left_at or len(self._known) > _KNOWN_THREADS:
            self._known.clear()
        try:
            following = self._write_all(batch, outcome, first, limit, guarded=guarded)
            self.rows.write_out()
            if following != first:
                self._run_sql(SQL["set_next"], (following,))
            if failpoints.armed:
                _pass(batch, "before_commit")
            self._run_sql("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        self._left_at = following
        if failpoints.armed:
            _pass(batch, "after_commit")
        self._publish(outcome, following - 1)

    def _synchronous(self, *, full: bool) -> None:
        # A commit that holds a fact is synced before anybody hears of it; deltas alone wait for the next such commit.
        if self._synced is not full:
            self._run_sql("PRAGMA synchronous = FULL" if full else "PRAGMA synchronous = NORMAL")
            self._synced = full

    def _begin(self) -> tuple[int, int]:
        """Begin, and the range of numbers this transaction may use."""
        self._run_sql("BEGIN IMMEDIATE")
        try:
            for (version,) in self._run_sql(SQL["user_version"]):
                if version != self._version:
                    raise VersionMismatch("Another Quintet has changed the journal's format meanwhile.", found=version)
            for first, ceiling, *_ in self._run_sql(SQL["counter"]):
                if ceiling - first >= _HEADROOM:
                    return first, ceiling
        except BaseException:
            self._roll_back()
            raise
        self._run_sql("ROLLBACK")
        self._raise_ceiling(CEILING_STEP)
        return self._begin()

    def _raise_ceiling(self, by: int) -> None:
        """In a synced commit of its own, before any number above the old ceiling is used."""
        self._synchronous(full=True)
        self._run_sql("BEGIN IMMEDIATE")
        try:
            ceiling = self.rows.counter().ceiling
            self._run_sql(SQL["raise_ceiling"], (ceiling + by,))
            if failpoints.armed:
                failpoints.passing("ceiling.before_commit")
            self._run_sql("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        if failpoints.armed:
            failpoints.passing("ceiling.after_commit")

    def _write_all(self, batch: Sequence[Work], outcome: Outcome, first: int, limit: int, *, guarded: bool) -> int:
        tx = Transaction(
            self.rows,
            owner=self._owner,
            now_ms=self._clock.now_ms(),
            first=first,
            limit=limit,
            probe=self._alive,
            known=self._known,
        )
        write_job = self._write_guarded if guarded else self._write_job
        pushes: list[Push] = []
        for work in batch:
            if isinstance(work, tuple):
                pushes.append(work)
                continue
            if pushes:  # in the order they came: deltas before the fact that completes their item
                self._write_pushes(pushes, tx, outcome)
                pushes = []
            write_job(work, tx)
            outcome.jobs.append(work)
        if pushes:
            self._write_pushes(pushes, tx, outcome)
        outcome.events = tx.events
        return tx.next

    def _write_pushes(self, pushes: list[Push], tx: Transaction, outcome: Outcome) -> None:
        outcome.failed_pushes += write_pushes(tx, pushes)
        outcome.pushed += sum(len(drafts) for drafts, _ in pushes)

    def _write_job(self, job: Job, tx: Transaction) -> None:
        changes, written = self._connection.total_changes(), len(tx.events)
        try:
            job.error = None
            job.result = job.work(tx)
            tx.flush()
        except (NumbersSpent, apsw.Error):
            raise
        except Exception as error:
            if len(tx.events) != written or self._connection.total_changes() != changes:
                raise _HalfDone from error
            tx.forget()
            job.result, job.error = None, as_storage_error(error)

    def _write_guarded(self, job: Job, tx: Transaction) -> None:
        first, written = tx.next, len(tx.events)
        self.rows.write_out()  # what earlier jobs wrote must not be undone with this one
        self._run_sql("SAVEPOINT job")
        try:
            job.error = None
            job.result = job.work(tx)
            tx.flush()
        except (NumbersSpent, apsw.Error) as error:
            if not isinstance(error, apsw.ConstraintError):
                raise
            self._undo_job(job, tx, first, written, error)
        except Exception as error:
            self._undo_job(job, tx, first, written, error)
        self._run_sql("RELEASE job")

    def _undo_job(self, job: Job, tx: Transaction, first: int, written: int, error: Exception) -> None:
        self._run_sql("ROLLBACK TO job")
        self.rows.forget()
        tx.forget()
        tx.next = first
        del tx.events[written:]
        job.result, job.error = None, as_storage_error(error)

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._run_sql("ROLLBACK")
        self.rows.forget()
        self._known.clear()

    # --- when a transaction fails ----------------------------------------------------------------------------------
    def _retry_guarded(self, batch: Sequence[Work]) -> None:
        try:
            self._attempt(batch, guarded=True)
        except NumbersSpent:
            self._retry_with_more_numbers(batch)
        except Exception as error:
            self._after_failure(batch, error)

    def _retry_with_more_numbers(self, batch: Sequence[Work]) -> None:
        try:
            self._raise_ceiling(CEILING_STEP * 16)
            self._attempt(batch, guarded=True)
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
            # Rows of others that cannot be read are no reason to keep back what was just committed.
            outcome.events = own
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


def _pass(batch: Sequence[Work], when: str) -> None:
    for work in batch:
        failpoints.passing(f"{'push' if isinstance(work, tuple) else work.name}.{when}")
