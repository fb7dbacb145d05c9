"""Publisher: hands committed events to this process's listeners, strictly by seq, each once. Knows no database.

`mark` is the newest number published; None while nobody listens, so that such a process pays for nothing. It is moved
by whoever writes, after the commit, and set by `listen`; the lock covers only those few words.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence

from quintet.domain.event import Event
from quintet.domain.ports import Listener
from quintet.journal.reading import decoded
from quintet.journal.rows import Reads

PAGE = 500


class Publisher:
    def __init__(self) -> None:
        self._listeners: dict[int, Listener] = {}
        self._count = 0
        self._lock = threading.Lock()
        self.mark: int | None = None

    def listen(self, listener: Listener, newest: Callable[[], int]) -> Callable[[], None]:
        """`newest` reads the last committed number now: whatever is committed after this call will be published."""
        with self._lock:
            if self.mark is None:
                self.mark = newest()
        self._count += 1
        key = self._count
        self._listeners[key] = listener

        def stop() -> None:
            self._listeners.pop(key, None)
            if not self._listeners:
                with self._lock:
                    self.mark = None

        return stop

    def due(self, rows: Reads, own: Sequence[Event], through: int) -> Iterator[list[Event]]:
        """What to deliver up to number `through`, in pages: rows of other processes, and `own` in their place."""
        mark = self.mark
        if mark is None:
            return
        first = own[0].seq if own else through + 1
        while mark < first - 1:
            found = [row for row in rows.events(mark, "", PAGE) if row.seq < first]
            if not found:
                break
            mark = found[-1].seq
            yield decoded(rows, found)
            self.skip_to(mark)
        fresh = [e for e in own if e.seq > mark] if own and own[0].seq <= mark else list(own)
        if fresh:
            yield fresh
        self.skip_to(max(mark, through))

    def skip_to(self, mark: int) -> None:
        with self._lock:
            if self.mark is not None:
                self.mark = max(self.mark, mark)

    def deliver(self, events: Sequence[Event]) -> None:
        """On the event loop. A listener that fails harms neither the others nor the writer."""
        for listener in tuple(self._listeners.values()):
            try:
                listener(events)
            except Exception as error:
                context = {"message": "a listener of the journal failed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
