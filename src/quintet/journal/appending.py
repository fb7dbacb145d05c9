"""Who may write what: the lease, the kinds it guards, and plain appends. Knows no particular store."""

from __future__ import annotations

from collections.abc import Sequence

from quintet.domain import event as ev
from quintet.domain.errors import Busy, Invalid, LeaseLost, QuintetError
from quintet.domain.event import KIND_OF, Draft, Event
from quintet.domain.thread import Thread
from quintet.domain.turn import Lease
from quintet.journal.codec import UNPAIRED, delta_sum, encode, event_place
from quintet.journal.emitting import emit_in
from quintet.journal.recovery import end_dead
from quintet.journal.rows import EventRow
from quintet.journal.transaction import Transaction

# These come about by a request of their own, which keeps the rows behind them true.
_NOT_BY_APPEND = {
    ev.ThreadCreated,
    ev.ThreadDeleted,
    ev.TurnQueued,
    ev.TurnStarted,
    ev.TurnFinished,
    ev.InteractionResolved,
    ev.CommandPosted,
    ev.CommandSettled,
}
_WHEN_IDLE = {ev.ViewChanged, ev.FilesRestored}


def check_lease(tx: Transaction, lease: Lease) -> Thread:
    """The leased thread. LeaseLost unless this owner, epoch and turn still hold it."""
    held = _held(tx, lease)
    if isinstance(held, LeaseLost):
        raise held
    return held


def _holds(thread: Thread, lease: Lease) -> bool:
    return thread.owner == lease.owner and thread.epoch == lease.epoch and thread.active_turn == lease.turn


def append(tx: Transaction, drafts: Sequence[Draft], lease: Lease | None) -> list[Event]:
    for draft in drafts:
        if type(draft.payload) in _NOT_BY_APPEND:
            raise Invalid(f"{KIND_OF[type(draft.payload)].name} is not written by a plain append.")
    return write(tx, drafts, lease)


def write(tx: Transaction, drafts: Sequence[Draft], lease: Lease | None) -> list[Event]:
    if lease is not None:
        check_lease(tx, lease)
    events = []
    for draft in drafts:
        kind, thread, turn = KIND_OF[type(draft.payload)], draft.thread, draft.turn
        if lease is not None and thread in ("", lease.thread):
            thread, turn = lease.thread, turn or lease.turn
        elif kind.leased:
            raise LeaseLost(f"{kind.name} needs the lease of its thread.", thread=thread)
        if type(draft.payload) in _WHEN_IDLE and (lease is None or thread != lease.thread):
            _need_idle(tx, thread)
        # A deleted one takes nothing any more.
        events.append(emit_in(tx, draft.payload, tx.thread(thread) if thread else None, turn))
    return events


def _need_idle(tx: Transaction, thread: str) -> None:
    end_dead(tx, thread)
    here = tx.thread(thread)
    if here.owner:
        raise Busy("A turn is running in this thread.", owner=here.owner, turn=here.active_turn)


Push = tuple[Sequence[Draft], Lease]


def write_pushes(tx: Transaction, pushes: Sequence[Push]) -> list[tuple[Lease, QuintetError]]:
    """Deltas of many turns at once: no projection, one insert. Returns what failed; the others are written."""
    rows: list[EventRow] = []
    failed: list[tuple[Lease, QuintetError]] = []
    checked: dict[Lease, Thread | LeaseLost] = {}
    now, events, number = tx.now_ms, tx.events, tx.number
    last: Lease | None = None  # most follow one of the same turn and kind: what they share is made once
    form: type | None = None
    for drafts, lease in pushes:
        if lease is not last:
            held = checked.get(lease) or checked.setdefault(lease, _held(tx, lease))
            last, form = lease, None
        if isinstance(held, LeaseLost):
            failed.append((lease, held))
            continue
        thread, root, turn = held.id, held.root, lease.turn
        for draft in drafts:
            payload = draft.payload
            try:
                body = encode(payload)
            except UnicodeError:
                failed.append((lease, Invalid(UNPAIRED)))
                continue
            if type(payload) is not form:
                form, kind = type(payload), KIND_OF[type(payload)].name
                place = event_place(kind, now, thread, turn)
            seq = number()
            rows.append(EventRow(seq, kind, now, thread, root, turn, body, delta_sum(seq, place, body)))
            events.append(Event(seq, kind, now, payload, thread, root, turn))
    if rows:
        tx.rows.insert_events(rows)
    return failed


def _held(tx: Transaction, lease: Lease) -> Thread | LeaseLost:
    found = tx.any_thread(lease.thread)
    if found is not None and _holds(found, lease):
        return found
    return LeaseLost(f"The turn {lease.turn} is no longer run by this process.", turn=lease.turn)
