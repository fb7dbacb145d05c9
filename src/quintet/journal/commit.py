"""One commit: numbers within the ceiling, every job and push of a batch, all or nothing. Runs on the writer's thread.

Most jobs either succeed or are refused before they change anything, so savepoints are taken only in a second attempt,
after a job was refused half way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw

from quintet.domain.errors import VersionMismatch
from quintet.domain.ports import Clock
from quintet.domain.thread import Thread
from quintet.journal import failpoints
from quintet.journal.appending import Push, write_pushes
from quintet.journal.faults import as_storage_error
from quintet.journal.jobs import Job, Outcome, Work
from quintet.journal.sqlite_rows import SqliteRows
from quintet.journal.statements import SQL
from quintet.journal.transaction import NumbersSpent, Transaction

CEILING_STEP = 65_536
JUMP = 1_048_576  # how far numbers go on where nobody knows how many were given
_KNOWN_THREADS = 512
_HEADROOM = 4_096  # numbers one commit may use without asking for more first


class HalfDone(Exception):
    """A job was refused after it had changed something: the transaction is begun anew, with savepoints."""


class Committer:
    def __init__(
        self,
        connection: apsw.Connection,
        *,
        clock: Clock,
        owner: str,
        alive: Callable[[str], bool],
        version: int,
    ) -> None:
        self.rows = SqliteRows(connection)
        self._connection = connection
        self._run_sql = connection.execute
        self._clock = clock
        self._owner = owner
        self._alive = alive
        self._version = version
        self._synced: bool | None = None
        self._known: dict[str, Thread] = {}  # as of our last commit; true while nobody else has taken a number
        self._left_at = -1

    def attempt(self, batch: Sequence[Work], *, guarded: bool = False) -> tuple[Outcome, int]:
        """The whole batch in one transaction: what came of it, and the newest number. Raises when the transaction as
        such fails; nothing is kept then."""
        outcome = Outcome()
        self._synchronous(full=any(isinstance(w, Job) for w in batch))
        first, limit = self._begin()
        if first != self._left_at or len(self._known) > _KNOWN_THREADS:
            self._known.clear()
        if first != self._left_at:
            self.rows.audit_head = None  # another process may have gone on with the chain
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
        return outcome, following - 1

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
        self.raise_ceiling(CEILING_STEP)
        return self._begin()

    def raise_ceiling(self, by: int) -> None:
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
        changes, waiting = self._connection.total_changes(), len(self.rows.waiting)
        first, written = tx.next, len(tx.events)
        try:
            job.error = None
            job.result = job.work(tx)
            tx.flush()
        except (NumbersSpent, apsw.Error):
            raise
        except Exception as error:
            if (
                len(tx.events) != written
                or len(self.rows.waiting) != waiting
                or self._connection.total_changes() != changes
            ):
                raise HalfDone from error
            tx.forget()
            tx.next = first
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


def _pass(batch: Sequence[Work], when: str) -> None:
    for work in batch:
        failpoints.passing(f"{'push' if isinstance(work, tuple) else work.name}.{when}")
