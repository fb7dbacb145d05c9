"""The audit chain: one row for each event that says who asked, decided, ran, granted, restored or deleted something.

A row carries a digest of its event and never its words, so erasing a thread leaves the chain whole. Each row's link
covers the row before it, so that an edit, a removal or another order breaks the chain from there on. Whoever can write
the file could still forge the whole of it: its head is printed, to be noted elsewhere and asked for later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256

from msgspec.structs import replace

from quintet.domain.audit import AuditRow, Flaw, Verified
from quintet.domain.event import Event
from quintet.journal import reading
from quintet.journal.codec import encode
from quintet.journal.rows import EventRow, Reads, Rows

BEGUN = "chain.begun"  # the first row of each journal; events before its number were never part of the chain
MOST_FLAWS = 20  # listed; the rest is counted
_PAGE = 2_000
Progress = Callable[[str, int, int], None]


def record(rows: Rows, event: EventRow, said: bytes) -> None:
    """One more row, in the event's own transaction."""
    last = rows.audit_head()
    number = (last.number if last else 0) + 1
    new = AuditRow(number, event.seq, event.kind, event.at_ms, event.thread, _digest(event, said), b"")
    rows.insert_audit(replace(new, link=link(last, new)))


def link(last: AuditRow | None, row: AuditRow) -> bytes:
    before = _fields(last) + last.link if last else b""
    return sha256(before + _fields(row)).digest()


def _digest(event: EventRow, said: bytes) -> bytes:
    head = f"{event.seq} {event.at_ms} {event.kind} {event.thread} {event.turn}\n".encode()
    return sha256(head + said).digest()


def _fields(row: AuditRow) -> bytes:
    return f"{row.number} {row.seq} {row.kind} {row.at_ms} {row.thread}\n".encode() + row.digest


def verify(rows: Reads, expected: str, progress: Progress) -> Verified:
    """The whole chain, and the chain against the events that are still there; `expected` names a row that must be in
    it as it was noted. Changes nothing."""
    flaws: list[Flaw] = []
    through = rows.counter().next - 1  # what is written meanwhile is left to the next look
    last: AuditRow | None = None
    count, begun, noted = 0, 0, not expected
    seen: set[int] = set()
    for row in _all(rows):
        flaws += _against(last, row)
        flaws += _against_event(rows, row)
        begun = row.seq if row.number == 1 else begun
        count, last = count + 1, row
        seen.add(row.seq)
        noted = noted or row.name == expected
        progress("verifying", row.seq, through)
    if last is None:
        flaws.append(Flaw(0, "the chain is gone: it has not even its first row"))
    for seq in rows.audited_events(begun, through):
        if seq not in seen:
            flaws.append(Flaw(0, f"event {seq} should be in the chain and is not"))
    if not noted:
        flaws.insert(0, Flaw(0, f"the chain does not hold the row that was noted as {expected}"))
    return Verified(count, last, tuple(flaws[:MOST_FLAWS]), max(0, len(flaws) - MOST_FLAWS))


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
    elif row.link != link(last, row):
        yield Flaw(row.number, f"row {row.number} or the one before it was changed")
    if last is not None and row.seq <= last.seq:
        yield Flaw(row.number, f"row {row.number} is out of order")


def _against_event(rows: Reads, row: AuditRow) -> Iterator[Flaw]:
    if row.kind == BEGUN:
        return
    stored = rows.event(row.seq)
    if stored is None:
        thread = rows.thread(row.thread) if row.thread else None
        if thread is not None and not thread.deleted_ms:
            yield Flaw(row.number, f"the event of row {row.number} ({row.kind}) was removed")
        return
    (event,) = reading.decoded(rows, (stored,))
    if event.payload is None or _digest(stored, _said(event, stored)) != row.digest:
        yield Flaw(row.number, f"the event of row {row.number} ({row.kind}) was changed")


def _said(event: Event, stored: EventRow) -> bytes:
    return encode(event.payload) if stored.kind in reading.ELSEWHERE else stored.body
