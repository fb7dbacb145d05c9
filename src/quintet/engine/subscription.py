"""Subscription: one reader of the feed. It reads pages from the store until it has caught up, then live events.

A reader that falls behind loses its live queue, not its place: it goes back to reading pages. So the memory for a
reader is bounded, nobody waits for it, and nothing is skipped; pruned deltas are told once as a Gap.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing

from quintet.domain.event import Delta, Event, Gap, Marks, TurnFinished, TurnStarted
from quintet.domain.ports import Journal
from quintet.engine.tailing import Tailing

QUEUE_LIMIT = 1_000
PAGE = 500
BATCH = 256


def gap_after(cursor: int, marks: Marks, root: str) -> Gap | None:
    """What a reader at this cursor can no longer get. Facts are never part of it; signals belong to no thread."""
    signals = not root and cursor < marks.signals_through
    through = max(marks.pruned_through, marks.signals_through if signals else 0)
    return Gap(cursor + 1, through, signals) if cursor < through else None


async def replay(journal: Journal, after: int, root: str = "") -> AsyncIterator[Event | Gap]:
    """Everything kept after the cursor until now, then the end."""
    last = (await journal.marks()).last
    told = 0
    while page := await journal.events(after, root=root, limit=PAGE):
        # Looked up after the page: what was pruned while it was read is told too.
        gap = gap_after(after, await journal.marks(), root)
        if gap is not None and gap.to_seq > told:
            told = gap.to_seq
            yield gap
        for event in page:
            if event.seq > last:
                return
            yield event
        after = page[-1].seq


async def facts(journal: Journal, after: int, root: str) -> AsyncIterator[Event]:
    """The facts of a root thread after the cursor until now, without the deltas between them, which may be many."""
    last = (await journal.marks()).last
    while page := await journal.facts(root, after, limit=PAGE):
        for event in page:
            if event.seq > last:
                return
            yield event
        after = page[-1].seq


class Subscription:
    def __init__(
        self,
        journal: Journal,
        root: str,
        after: int | None,
        tailing: Tailing,
        forget: Callable[[Subscription], None],
        since: int = 0,
    ) -> None:
        """`since`: the newest number that was published before, as far as that is known."""
        self._journal = journal
        self._since = since
        self.root = root
        self._cursor = after
        self._tailing = tailing
        self._forget = forget
        self._queue: deque[Event] = deque()
        self._behind = after is not None  # reading pages, not the live queue
        self._lost = False  # the live queue overflowed since the last page was begun
        self._told_gap_to = 0
        self._wake = asyncio.Event()
        self._closed = False
        self._foreign = False
        self._owner_told = False  # by an event
        tailing.watch()
        if not root:
            self._set_foreign(foreign=True)  # everything, so also what other processes do

    @property
    def cursor(self) -> int:
        """The seq of the last event handed out."""
        return self._cursor or 0

    def offer(self, events: Sequence[Event]) -> None:
        """Called by the feed for every published batch; keeps what this reader wants, within its bound."""
        wanted = [e for e in events if e.root == self.root] if self.root else events
        if not wanted:
            return
        if self.root:
            self._note_owner(wanted)
        if len(self._queue) + len(wanted) > QUEUE_LIMIT:
            self._fall_behind((self._queue or wanted)[0].seq)
        else:
            self._queue.extend(wanted)
        self._wake.set()

    def look_again(self) -> None:
        """Something was published that did not reach the queue; it is in the store, after what was handed out."""
        if self._cursor is not None or self._queue or self._since:
            self._fall_behind(self._queue[0].seq if self._queue else (self.cursor or self._since) + 1)
            self._wake.set()

    async def __aiter__(self) -> AsyncIterator[Event | Gap]:
        try:
            async with aclosing(self.batches()) as batches:
                async for batch in batches:
                    for entry in batch:
                        if isinstance(entry, Event):
                            self._cursor = entry.seq
                        yield entry
        finally:
            self.close()

    async def batches(self) -> AsyncGenerator[list[Event | Gap]]:
        """The same, as many at a time as there are, within a bound: for whoever passes many small ones on. All of a
        batch counts as handed out."""
        try:
            await self._look_for_foreign_owner()
            while not self._closed:
                if batch := await (self._page() if self._behind else self._live()):
                    yield batch
        finally:
            self.close()

    async def _page(self) -> list[Event | Gap]:
        self._queue.clear()  # what was published until now is in the store, so it will be in the pages
        self._lost = False
        events = await self._journal.events(self.cursor, root=self.root, limit=PAGE)
        batch: list[Event | Gap] = [*events]
        # Looked up after the page: what was pruned while it was read is told too.
        gap = gap_after(self.cursor, await self._journal.marks(), self.root)
        if gap is not None and gap.to_seq > self._told_gap_to:
            self._told_gap_to = gap.to_seq
            batch.insert(0, gap)
        if events:
            self._cursor = events[-1].seq
        self._behind = len(events) == PAGE or self._lost
        return batch

    async def _live(self) -> list[Event | Gap]:
        if not self._queue:
            self._wake.clear()
            await self._wake.wait()
        if self._behind:  # what the queue holds comes after what was lost: the store is next
            return []
        while self._queue and self._queue[0].seq <= self.cursor:
            self._queue.popleft()  # was in a page
        batch: list[Event | Gap] = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH))]
        if batch and isinstance(batch[-1], Event):
            self._cursor = batch[-1].seq
        return batch

    def _fall_behind(self, first_lost: int) -> None:
        if self._cursor is None:
            self._cursor = first_lost - 1
        self._queue.clear()
        self._behind = self._lost = True

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._wake.set()
            self._set_foreign(foreign=False)
            self._tailing.unwatch()
            self._forget(self)

    # --- whose thread is it: a foreign owner's events are looked for more often --------------------------------------
    async def _look_for_foreign_owner(self) -> None:
        if self.root:
            owner = (await self._journal.thread(self.root)).owner
            if not self._owner_told:  # events that came meanwhile know better
                self._set_foreign(foreign=bool(owner) and owner != self._journal.owner)

    def _note_owner(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event.payload, Delta):
                continue
            if isinstance(event.payload, TurnStarted):
                self._owner_told = True
                self._set_foreign(foreign=event.payload.owner != self._journal.owner)
            elif isinstance(event.payload, TurnFinished):
                self._owner_told = True
                self._set_foreign(foreign=False)

    def _set_foreign(self, *, foreign: bool) -> None:
        if foreign != self._foreign and not (self._closed and foreign):
            self._foreign = foreign
            if foreign:
                self._tailing.hurry()
            else:
                self._tailing.relax()
