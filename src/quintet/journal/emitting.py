"""Writing an event: its number, its row, and what it changes in the rows that are read directly (its projection).

Large things are kept once: an item, an interaction, a queued turn or a command lives in its own row and the event only
says which. The event's checksum still covers all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from quintet.domain import event as ev
from quintet.domain.compaction import CompactionRecord, recorded
from quintet.domain.errors import NotFound
from quintet.domain.event import KIND_OF, AnyPayload, Event
from quintet.domain.item import text_of
from quintet.domain.thread import Thread
from quintet.domain.turn import TurnState
from quintet.domain.view import ViewReason, changed, settled
from quintet.journal import chain
from quintet.journal.codec import encode, event_text, item_row, text_sum
from quintet.journal.rows import EventRow, TurnRow
from quintet.journal.transaction import Transaction

Kept = tuple[AnyPayload, bytes | None]  # the payload as published, and the reference stored instead of it


def emit(tx: Transaction, payload: AnyPayload, thread: str = "", turn: str = "") -> Event:
    where = tx.any_thread(thread) if thread else None
    if thread and where is None:
        raise NotFound(f"There is no thread {thread}.", thread=thread)
    return emit_in(tx, payload, where, turn)


def emit_in(tx: Transaction, payload: AnyPayload, where: Thread | None, turn: str) -> Event:
    """The same, for whoever has the thread in hand."""
    kind = KIND_OF[type(payload)]
    name, now, seq = kind.name, tx.now_ms, tx.number()
    reference: bytes | None = None
    project = _PROJECTIONS.get(type(payload))
    if project is not None:
        payload, reference = project(tx, where, turn, payload, seq)
    if reference is None:
        body = said = encode(payload)
    elif name == "item.added":
        body = said = reference  # the item's own row has its own checksum
    else:
        body, said = reference, encode(payload)
    thread, root = (where.id, where.root) if where is not None else ("", "")
    text = event_text(seq, name, now, thread, turn, said)
    tx.rows.insert_events((EventRow(seq, name, now, thread, root, turn, body, text_sum(text)),))
    if kind.audited:
        tx.rows.insert_audit((seq, name, now, thread, chain.digest(text)))
    event = Event(seq, name, now, payload, thread, root, turn)
    tx.events.append(event)
    return event


def _here(where: Thread | None) -> Thread:
    if where is None:
        raise NotFound("This event belongs to a thread, and none was named.")
    return where


def _touch(tx: Transaction, where: Thread, **fields: Any) -> None:
    tx.put_thread(replace(where, updated_ms=tx.now_ms, **fields))


def _thread_updated(tx: Transaction, where: Thread | None, turn: str, payload: ev.ThreadUpdated, seq: int) -> Kept:
    here = _here(where)
    own = {n: v for n in ("title", "title_final") if (v := getattr(payload, n)) is not None}
    names = ("cwd", "agent", "model", "plan_mode", "directories")
    kept = {n: v for n in names if (v := getattr(payload, n)) is not None}
    if payload.metadata is not None:
        own["metadata"] = {n: v for n, v in (here.metadata | payload.metadata).items() if v is not None}
    _touch(tx, here, settings=replace(here.settings, **kept), **own)
    return replace(payload, thread=tx.any_thread(here.id)), None


def _thread_deleted(tx: Transaction, where: Thread | None, turn: str, payload: ev.ThreadDeleted, seq: int) -> Kept:
    here = _here(where)
    tx.put_thread(replace(here, deleted_ms=tx.now_ms))
    tx.rows.drop_handles(here.id, tx.now_ms)
    return payload, None


def _view_changed(tx: Transaction, where: Thread | None, turn: str, payload: ev.ViewChanged, seq: int) -> Kept:
    here = _here(where)
    view = changed(
        here.view,
        payload.reason,
        last=here.last_ordinal,
        keep_through=payload.keep_through,
        first_kept=payload.first_kept,
        summary=payload.summary_item,
        also=payload.also,
    )
    # What is left after any other change may well be worth a compaction again.
    record = here.compaction if payload.reason is ViewReason.COMPACTION else CompactionRecord()
    _touch(tx, here, view=view, compaction=record)
    return payload, None


def _compacted(tx: Transaction, where: Thread | None, turn: str, payload: ev.CompactionFinished, seq: int) -> Kept:
    here = _here(where)
    record = recorded(
        here.compaction,
        last=here.last_ordinal,
        before=payload.tokens_before,
        after=payload.tokens_after,
        summarised=bool(payload.summary_item),
        error=payload.error.code if payload.error else "",
    )
    _touch(tx, here, compaction=record)
    return payload, None


def _recalled(tx: Transaction, where: Thread | None, turn: str, payload: ev.MemoryRecalled, seq: int) -> Kept:
    _touch(tx, _here(where), recalled=payload.recall)
    return payload, None


def _notice_posted(tx: Transaction, where: Thread | None, turn: str, payload: ev.NoticePosted, seq: int) -> Kept:
    here = _here(where)
    if here.deleted_ms:
        raise NotFound(f"The thread {here.id} is deleted.", thread=here.id)
    tx.put_thread(replace(here, notices=(*here.notices, payload.notice)))  # nobody has worked in it: its time stays
    return payload, None


def _notice_given(tx: Transaction, where: Thread | None, turn: str, payload: ev.NoticeGiven, seq: int) -> Kept:
    here = _here(where)
    _touch(tx, here, notices=tuple(n for n in here.notices if n.id != payload.notice.id))
    return payload, None


def _turn_queued(tx: Transaction, where: Thread | None, turn: str, payload: ev.TurnQueued, seq: int) -> Kept:
    tx.rows.insert_turn(TurnRow(payload.turn, payload.turn.mode))
    _touch(tx, _here(where))
    return payload, b""


def _turn_started(tx: Transaction, where: Thread | None, turn: str, payload: ev.TurnStarted, seq: int) -> Kept:
    here = _here(where)
    row = turn_row(tx, turn)
    running = replace(row.turn, state=TurnState.RUNNING, started_ms=tx.now_ms, mode=payload.mode)
    agent = payload.agent or row.turn.agent or here.settings.agent
    tx.rows.save_turn(replace(row, turn=running, started_seq=seq, agent=agent))
    # A new turn makes a pending revert final: nobody can take back what it was built on.
    _touch(tx, here, owner=payload.owner, epoch=payload.epoch, active_turn=turn, view=settled(here.view))
    return replace(payload, agent=agent), None


def _cancel_requested(
    tx: Transaction, where: Thread | None, turn: str, payload: ev.TurnCancelRequested, seq: int
) -> Kept:
    row = turn_row(tx, turn)
    tx.rows.save_turn(replace(row, turn=replace(row.turn, cancelling=True)))
    return payload, None


def _turn_finished(tx: Transaction, where: Thread | None, turn: str, payload: ev.TurnFinished, seq: int) -> Kept:
    here = _here(where)
    row = turn_row(tx, turn)
    ended = replace(row.turn, state=payload.state, finished_ms=tx.now_ms, error=payload.error)
    tx.rows.save_turn(replace(row, turn=ended))
    if here.active_turn == turn:
        _touch(tx, here, owner="", active_turn="", ended_as=payload.state)
    else:
        _touch(tx, here, ended_as=here.ended_as if here.active_turn else payload.state)
    return replace(payload, agent=row.agent or row.turn.agent or here.settings.agent), None


def _item_added(tx: Transaction, where: Thread | None, turn: str, payload: ev.ItemAdded, seq: int) -> Kept:
    here = _here(where)
    given = payload.item
    # A fork keeps the ordinals of what it copied; everything else gets the next one.
    ordinal = given.ordinal if given.ordinal > here.last_ordinal else here.last_ordinal + 1
    item = replace(given, thread=here.id, turn=turn or given.turn, ordinal=ordinal, at_ms=given.at_ms or tx.now_ms)
    tx.rows.insert_item(item_row(item), text_of(item.body))
    _touch(tx, here, last_ordinal=ordinal)
    return ev.ItemAdded(item), b"%d" % ordinal


def _effect_unknown(tx: Transaction, where: Thread | None, turn: str, payload: ev.EffectUnknown, seq: int) -> Kept:
    tx.rows.insert_unknown(seq, _here(where).id)
    return payload, None


def _checkpoint(tx: Transaction, where: Thread | None, turn: str, payload: AnyPayload, seq: int) -> Kept:
    tx.rows.insert_checkpoint(seq, _here(where).id)
    return payload, None


def _requested(tx: Transaction, where: Thread | None, turn: str, payload: ev.InteractionRequested, seq: int) -> Kept:
    here = _here(where)
    asked = replace(payload.interaction, thread=here.id, root=here.root, turn=turn, decision=None)
    tx.rows.put_interaction(asked)
    return ev.InteractionRequested(asked), asked.id.encode()


def _resolved(tx: Transaction, where: Thread | None, turn: str, payload: ev.InteractionResolved, seq: int) -> Kept:
    asked = tx.rows.interaction(payload.interaction)
    if asked is None:
        raise NotFound(f"There is no request {payload.interaction}.", interaction=payload.interaction)
    tx.rows.put_interaction(replace(asked, decision=payload.decision))
    return payload, asked.id.encode()


def _grant_made(tx: Transaction, where: Thread | None, turn: str, payload: ev.GrantMade, seq: int) -> Kept:
    tx.rows.put_grant(payload.grant)
    return payload, None


def _grant_revoked(tx: Transaction, where: Thread | None, turn: str, payload: ev.GrantRevoked, seq: int) -> Kept:
    grant = tx.rows.grant(payload.grant)
    if grant is None:
        raise NotFound(f"There is no grant {payload.grant}.", grant=payload.grant)
    tx.rows.put_grant(replace(grant, revoked_ms=tx.now_ms))
    return payload, None


def _posted(tx: Transaction, where: Thread | None, turn: str, payload: ev.CommandPosted, seq: int) -> Kept:
    tx.rows.put_command(payload.command)
    return payload, payload.command.id.encode()


def _settled(tx: Transaction, where: Thread | None, turn: str, payload: ev.CommandSettled, seq: int) -> Kept:
    command = tx.rows.command(payload.command)
    if command is None:
        raise NotFound(f"There is no command {payload.command}.", command=payload.command)
    tx.rows.put_command(replace(command, outcome=payload.outcome, detail=payload.detail))
    return payload, None


def turn_row(tx: Transaction, turn: str) -> TurnRow:
    row = tx.rows.turn(turn)
    if row is None:
        raise NotFound(f"There is no turn {turn}.", turn=turn)
    return row


_PROJECTIONS: dict[type[AnyPayload], Callable[[Transaction, Thread | None, str, Any, int], Kept]] = {
    ev.ThreadUpdated: _thread_updated,
    ev.ThreadDeleted: _thread_deleted,
    ev.ViewChanged: _view_changed,
    ev.CompactionFinished: _compacted,
    ev.MemoryRecalled: _recalled,
    ev.NoticePosted: _notice_posted,
    ev.NoticeGiven: _notice_given,
    ev.TurnQueued: _turn_queued,
    ev.TurnStarted: _turn_started,
    ev.TurnCancelRequested: _cancel_requested,
    ev.TurnFinished: _turn_finished,
    ev.ItemAdded: _item_added,
    ev.EffectUnknown: _effect_unknown,
    ev.CheckpointMade: _checkpoint,
    ev.CheckpointSettled: _checkpoint,
    ev.FilesRestored: _checkpoint,
    ev.InteractionRequested: _requested,
    ev.InteractionResolved: _resolved,
    ev.GrantMade: _grant_made,
    ev.GrantRevoked: _grant_revoked,
    ev.CommandPosted: _posted,
    ev.CommandSettled: _settled,
}
