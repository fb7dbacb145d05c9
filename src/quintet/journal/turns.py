"""The life of a turn: queued, claimed, finished. Each rule here is one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from quintet.domain import event as ev
from quintet.domain.command import Outcome
from quintet.domain.errors import Busy, NotFound, TurnOver
from quintet.domain.event import Draft, Event
from quintet.domain.ids import new_id
from quintet.domain.item import Item, UserMessage, text_of, typed
from quintet.domain.ports import Enqueued
from quintet.domain.thread import title_from
from quintet.domain.turn import ClientKey, Lease, Mode, Turn, TurnState
from quintet.journal.appending import check_lease, write
from quintet.journal.emitting import emit, turn_row
from quintet.journal.ending import end_turn
from quintet.journal.keys import keep_key, known_key
from quintet.journal.reading import as_queued, whole_turn
from quintet.journal.recovery import deny_holding, end_dead, settle_pending
from quintet.journal.rows import TurnRow
from quintet.journal.transaction import Transaction


def enqueue(tx: Transaction, turn: Turn, *, only_idle: bool, key: ClientKey | None) -> Enqueued:
    known = _folded(tx, key) if key is not None else None
    if known is not None:
        return Enqueued(known, folded=True)
    end_dead(tx, turn.thread)
    if only_idle:
        for row in tx.rows.turns(turn.thread, live=True):
            raise Busy("The thread has a turn already.", owner=row.turn.runner, turn=row.turn.id)
    fresh = replace(as_queued(turn), queued_ms=turn.queued_ms or tx.now_ms, runner=turn.runner or tx.owner)
    emit(tx, ev.TurnQueued(fresh), turn.thread, turn.id)
    if key is not None:
        keep_key(tx, key, turn.thread, turn.id)
    return Enqueued(fresh, folded=False)


def _folded(tx: Transaction, key: ClientKey) -> Turn | None:
    row = known_key(tx, key)
    kept = tx.rows.turn(row.turn) if row is not None else None
    return whole_turn(tx.rows, kept) if kept is not None else None


def claim(tx: Transaction, turn: str, *, mode: Mode, model: str) -> Lease:
    thread = tx.thread(turn_row(tx, turn).turn.thread)
    end_dead(tx, thread.id)
    row = turn_row(tx, turn)
    _claimable(tx, row)
    here = tx.thread(thread.id)
    lease = Lease(here.id, turn, tx.owner, here.epoch + 1)
    emit(tx, ev.TurnStarted(tx.owner, lease.epoch, mode, model), here.id, turn)
    if row.turn.parts:
        _add_input(tx, row.turn)
    return lease


def _claimable(tx: Transaction, row: TurnRow) -> None:
    turn = row.turn
    if turn.state.ended:
        raise TurnOver(f"The turn {turn.id} has ended ({turn.state}).", turn=turn.id, state=turn.state.value)
    here = tx.thread(turn.thread)
    if here.owner:
        raise Busy("The thread is running a turn.", owner=here.owner, turn=here.active_turn)
    for found in tx.rows.busy(here.root):  # one lease covers a thread and all its subagents'
        other = tx.any_thread(found.id) or found
        if other.owner not in ("", tx.owner) and tx.alive(other.owner):
            raise Busy(
                "Another process runs a thread that belongs to this one.", owner=other.owner, turn=other.active_turn
            )
    head = tx.rows.turns(here.id, live=True)[0].turn
    if head.id != turn.id:
        raise Busy("Another turn is before this one.", owner=head.runner, turn=head.id)
    if turn.runner != tx.owner:
        raise Busy("The process that accepted this turn runs it.", owner=turn.runner, turn=turn.id)


def _add_input(tx: Transaction, turn: Turn) -> None:
    """The input becomes the first item; from now on it is kept there alone."""
    body = UserMessage(turn.parts)
    added = emit(tx, ev.ItemAdded(Item(new_id("itm"), turn.thread, turn.id, 0, tx.now_ms, body)), turn.thread, turn.id)
    assert isinstance(added.payload, ev.ItemAdded)
    row = turn_row(tx, turn.id)
    tx.rows.save_turn(replace(row, turn=replace(row.turn, parts=()), input_ordinal=added.payload.item.ordinal))
    here = tx.thread(turn.thread)
    title = title_from(typed(turn.parts) or text_of(body))
    if title and not here.title and not here.title_final:
        emit(tx, ev.ThreadUpdated(title=title), turn.thread, turn.id)


def finish(tx: Transaction, lease: Lease, finished: ev.TurnFinished, drafts: Sequence[Draft]) -> list[Event]:
    check_lease(tx, lease)
    before = len(tx.events)
    write(tx, drafts, lease)
    deny_holding(tx, lease.turn, finished.state.value)
    settle_pending(tx, lease.thread, lease.turn, Outcome.TURN_OVER)
    end_turn(tx, finished, lease.thread, lease.turn)
    return tx.events[before:]


def drop_queued(tx: Transaction, turn: str, finished: ev.TurnFinished) -> bool:
    row = tx.rows.turn(turn)
    if row is None:
        raise NotFound(f"There is no turn {turn}.", turn=turn)
    if row.turn.state is not TurnState.QUEUED:
        return False
    if row.turn.runner != tx.owner and tx.alive(row.turn.runner):
        raise Busy("Only the process that accepted a queued turn ends it.", owner=row.turn.runner, turn=turn)
    settle_pending(tx, row.turn.thread, turn, Outcome.TURN_OVER)
    end_turn(tx, finished, row.turn.thread, turn)
    return True
