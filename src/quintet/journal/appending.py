"""Who may write what: the lease, the kinds it guards, and plain appends. Knows no particular store."""

from __future__ import annotations

from collections.abc import Sequence

from quintet.domain import event as ev
from quintet.domain.errors import Busy, Invalid, LeaseLost, QuintetError
from quintet.domain.event import KIND_OF, Draft, Event
from quintet.domain.thread import Thread
from quintet.domain.turn import Lease
from quintet.journal.codec import UNPAIRED, encode, event_sum
from quintet.journal.emitting import emit
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


def check_lease(tx: Transaction, lease: Lease) -> Thread:
    """The leased thread. LeaseLost unless this owner, epoch and turn still hold it."""
    thread = tx.any_thread(lease.thread)
    if thread is None or not _holds(thread, lease):
        raise LeaseLost(f"The turn {lease.turn} is no longer run by this process.", turn=lease.turn)
    return thread


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
        if thread:
            tx.thread(thread)  # a deleted one takes nothing any more
        if isinstance(draft.payload, ev.ViewChanged | ev.FilesRestored) and (lease is None or thread != lease.thread):
            _need_idle(tx, thread)
        events.append(emit(tx, draft.payload, thread, turn))
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
    now, events = tx.now_ms, tx.events
    for drafts, lease in pushes:
        held = checked.get(lease)
        if held is None:
            found = tx.any_thread(lease.thread)
            lost = LeaseLost(f"The turn {lease.turn} is no longer run by this process.", turn=lease.turn)
            held = checked[lease] = found if found is not None and _holds(found, lease) else lost
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
            kind, seq = KIND_OF[type(payload)].name, tx.number()
            rows.append(
                EventRow(seq, kind, now, thread, root, turn, body, event_sum(seq, kind, now, thread, turn, body))
            )
            events.append(Event(seq, kind, now, payload, thread, root, turn))
    if rows:
        tx.rows.insert_events(rows)
    return failed
