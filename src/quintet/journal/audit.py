"""The audit chain: one row for each event that says who asked, decided, ran, granted, restored or deleted something.

A row carries a digest of its event and never its words, so erasing a thread leaves the chain whole. Each row's link
covers the row before it, so that an edit, a removal or another order breaks the chain from there on. Whoever can write
the file could still forge the whole of it: its head is printed, to be noted elsewhere and asked for later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from quintet.domain.audit import BEGUN, AuditRow, Flaw, Verified
from quintet.domain.event import Event
from quintet.journal import chain, reading
from quintet.journal.codec import encode, event_text
from quintet.journal.rows import EventRow, Reads

MOST_FLAWS = 20  # listed; the rest is counted
_PAGE = 2_000
Progress = Callable[[str, int, int], None]


def verify(rows: Reads, expected: str, progress: Progress) -> Verified:
    """The whole chain, and the chain against the events that are still there; `expected` names a row that must be in
    it as it was noted. Changes nothing."""
    flaws = _Flaws()
    through = rows.counter().next - 1  # what is written meanwhile is left to the next look
    last: AuditRow | None = None
    count, begun, noted = 0, 0, not expected
    erased = _Erased()
    for row in _all(rows):
        flaws.add(_against(last, row))
        flaws.add(_against_event(rows, row, erased))
        begun = row.seq if row.number == 1 else begun
        count, last = count + 1, row
        noted = noted or row.name == expected
        progress("verifying", row.seq, through)
    flaws.add(erased.flaws())
    if last is None:
        flaws.add([Flaw(0, "the chain is gone: it has not even its first row")])
    missing = rows.unaudited_events(begun, through)
    flaws.add(Flaw(0, f"event {seq} should be in the chain and is not") for seq in missing)
    first = [] if noted else [Flaw(0, f"the chain does not hold the row that was noted as {expected}")]
    listed = [*first, *flaws.listed]
    return Verified(count, last, tuple(listed[:MOST_FLAWS]), max(0, len(first) + flaws.count - MOST_FLAWS))


class _Flaws:
    """The first of them, and how many there are: of a chain of millions everything may be wrong."""

    def __init__(self) -> None:
        self.listed: list[Flaw] = []
        self.count = 0

    def add(self, found: Iterable[Flaw]) -> None:
        for flaw in found:
            self.count += 1
            if self.count <= MOST_FLAWS:
                self.listed.append(flaw)


class _Erased:
    """Events that are gone with their thread. Only the chain itself can say that the thread was deleted: the row of a
    thread can be changed or removed like any other."""

    def __init__(self) -> None:
        self._deleted: set[str] = set()
        self._gone: dict[str, list[int]] = {}  # by thread: the first row without its event, and how many

    def note_deletion(self, thread: str) -> None:
        self._deleted.add(thread)
        self._gone.pop(thread, None)

    def note_gone(self, row: AuditRow) -> None:
        if row.thread not in self._deleted:
            self._gone.setdefault(row.thread, [row.number, 0])[1] += 1

    def flaws(self) -> Iterator[Flaw]:
        for thread, (number, count) in self._gone.items():
            events = f"the event of row {number} was" if count == 1 else f"{count} events from row {number} on were"
            yield Flaw(number, f"{events} removed with the thread {thread}, whose deletion is not in the chain")


def _all(rows: Reads) -> Iterator[AuditRow]:
    after = 0
    while page := rows.audit(after, _PAGE):
        yield from page
        after = page[-1].number


def _against(last: AuditRow | None, row: AuditRow) -> Iterator[Flaw]:
    expected = (last.number if last else 0) + 1
    if row.number != expected:
        missing = f"row {expected} is" if row.number == expected + 1 else f"rows {expected} to {row.number - 1} are"
        yield Flaw(row.number, f"{missing} missing before row {row.number}")
    elif row.number == 1:
        if row.kind != BEGUN:
            yield Flaw(1, "the chain's first row was replaced")
    elif row.link != chain.link(last, row):
        yield Flaw(row.number, f"row {row.number} or the one before it was changed")
    if last is not None and row.seq <= last.seq:
        yield Flaw(row.number, f"row {row.number} is out of order")


def _against_event(rows: Reads, row: AuditRow, erased: _Erased) -> Iterator[Flaw]:
    if row.kind == BEGUN:
        return
    stored = rows.event(row.seq)
    if row.kind == "thread.deleted" and stored is not None:
        erased.note_deletion(row.thread)
    if stored is None:
        thread = rows.thread(row.thread) if row.thread else None
        if row.thread and (thread is None or thread.deleted_ms):
            erased.note_gone(row)
        else:  # nothing takes it away but somebody's hand
            yield Flaw(row.number, f"the event of row {row.number} ({row.kind}) was removed")
        return
    (event,) = reading.decoded(rows, (stored,))
    if event.payload is None or chain.digest(_text(event, stored)) != row.digest:
        yield Flaw(row.number, f"the event of row {row.number} ({row.kind}) was changed")


def _text(event: Event, stored: EventRow) -> bytes:
    said = encode(event.payload) if stored.kind in reading.ELSEWHERE else stored.body
    return event_text(stored.seq, stored.kind, stored.at_ms, stored.thread, stored.turn, said)
