"""What a rule works with: rows, numbers, the time, who asks and who is alive. Knows no store in particular."""

from __future__ import annotations

from collections.abc import Callable

from quintet.domain.errors import NotFound
from quintet.domain.event import Event
from quintet.domain.thread import Thread
from quintet.journal.rows import Rows


class NumbersSpent(Exception):
    """More numbers are needed than the synced ceiling allows: raise it first, then run the work again."""


class Transaction:
    """One commit, job after job. Threads are read once, changed in memory and written back by `flush`.

    `known` are threads the store still knows from before.
    """

    __slots__ = ("_alive", "_changed", "_limit", "_probe", "_threads", "events", "next", "now_ms", "owner", "rows")

    def __init__(
        self,
        rows: Rows,
        *,
        owner: str,
        now_ms: int,
        first: int,
        limit: int,
        probe: Callable[[str], bool],
        known: dict[str, Thread] | None = None,
    ) -> None:
        self.rows = rows
        self.owner = owner
        self.now_ms = now_ms
        self.next = first
        self.events: list[Event] = []
        self._limit = limit
        self._probe = probe
        self._alive: dict[str, bool] = {}
        self._threads: dict[str, Thread] = {} if known is None else known
        self._changed: set[str] = set()

    def number(self) -> int:
        """The next seq."""
        seq = self.next
        if seq >= self._limit:
            raise NumbersSpent
        self.next = seq + 1
        return seq

    def alive(self, owner: str) -> bool:
        """Asked once per owner: an answer must not change between two looks of one transaction."""
        known = self._alive.get(owner)
        if known is None:
            known = self._alive[owner] = owner == self.owner or self._probe(owner)
        return known

    def any_thread(self, thread: str) -> Thread | None:
        """Also a deleted one."""
        known = self._threads.get(thread)
        if known is None:
            known = self.rows.thread(thread)
            if known is not None:
                self._threads[thread] = known
        return known

    def thread(self, thread: str) -> Thread:
        found = self.any_thread(thread)
        if found is None or found.deleted_ms:
            raise NotFound(f"There is no thread {thread}.", thread=thread)
        return found

    def put_thread(self, thread: Thread) -> None:
        self._threads[thread.id] = thread
        self._changed.add(thread.id)

    def forget(self) -> None:
        """A job was undone: what it read or changed is read anew."""
        self._threads.clear()
        self._changed.clear()

    def flush(self) -> None:
        if not self._changed:
            return
        for thread in self._changed:
            self.rows.save_thread(self._threads[thread])
        self._changed.clear()
