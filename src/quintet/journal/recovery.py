"""Ending what dead processes left: one transaction per thread, after which the thread can be used again.

Nothing is run again here. What may have happened is said to be unknown; what cannot have happened is said so.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from quintet.domain import event as ev
from quintet.domain.command import CommandKind, Outcome
from quintet.domain.errors import Interrupted
from quintet.domain.event import Event
from quintet.domain.ids import new_id
from quintet.domain.interaction import Decision, ExternalCall, Interaction, Verdict, client_result
from quintet.domain.item import (
    AssistantMessage,
    Body,
    Item,
    Media,
    MediaPart,
    Reasoning,
    ResultStatus,
    ToolCall,
    ToolResult,
    UserMessage,
    named,
)
from quintet.domain.ports import Recovery
from quintet.domain.principal import ENGINE
from quintet.domain.thread import Thread
from quintet.domain.tool import Effect
from quintet.domain.turn import TurnState
from quintet.journal.emitting import emit
from quintet.journal.ending import end_turn
from quintet.journal.reading import decoded
from quintet.journal.transaction import Transaction

NEVER_RAN = "This call never ran: Quintet stopped before starting it."
NO_EFFECT = "This call was cut off when Quintet stopped. It changes nothing, so it can safely be made again."
UNKNOWN = "Quintet stopped while this call ran. Whether it took effect is unknown; look before making it again."
UNKNOWN_OUTSIDE = (
    "Quintet stopped while the client had this call. Whether the client ran it is unknown; look before making it again."
)
CHILD_CUT_OFF = (
    "Quintet stopped while a subagent worked on this. What it did until then stands in its thread {thread}; `resume` "
    "goes on with it."
)
CHILD_UNKNOWN = "Whether its last call took effect is unknown; look before it is made again."
CHILD_ENDED = (
    "The subagent ended ({state}), but Quintet stopped before its answer was kept here. It stands in its thread "
    "{thread}; `resume` goes on with it."
)
OUTPUT_LOST = "This call ended ({status}), but Quintet stopped before its output was kept."


_CALM = (ResultStatus.OK, "")


def end_dead(tx: Transaction, thread: str) -> Recovery:
    """End the dead turns of this thread's whole tree, children first, and dead queued turns of each."""
    turns: list[str] = []
    unknown: list[str] = []
    doubtful: set[str] = set()  # turns that left effects whose outcome nobody knows
    for found in tx.rows.busy(tx.thread(thread).root):
        here = tx.any_thread(found.id) or found
        if here.deleted_ms:
            continue
        if here.owner and not tx.alive(here.owner):
            turns.append(here.active_turn)
            left = _end_running(tx, here, doubtful)
            unknown += left
            doubtful.update([here.active_turn] * bool(left))
        turns += _end_queued(tx, here.id)
    return Recovery(tuple(turns), tuple(unknown))


def interrupted() -> ev.TurnFinished:
    error = Interrupted("The process that ran this turn ended before the turn did.")
    return ev.TurnFinished(TurnState.INTERRUPTED, error=error.info())


def deny_holding(tx: Transaction, turn: str, reason: str) -> None:
    """The end of a turn answers whatever still holds one of its calls."""
    for asked in tx.rows.turn_interactions(turn):
        decide(tx, asked, Decision(Verdict.DENY, ENGINE, tx.now_ms, reason))


def decide(tx: Transaction, asked: Interaction, decision: Decision) -> None:
    emit(tx, ev.InteractionResolved(asked.id, asked.call_id, decision), asked.thread, asked.turn)


def settle_pending(tx: Transaction, thread: str, turn: str, outcome: Outcome) -> None:
    for command in tx.rows.commands(thread):
        if command.turn == turn:
            emit(tx, ev.CommandSettled(command.id, outcome), thread, turn)


def _end_queued(tx: Transaction, thread: str) -> list[str]:
    ended = []
    for row in tx.rows.turns(thread, live=True):
        if row.turn.state is TurnState.QUEUED and not tx.alive(row.turn.runner):
            settle_pending(tx, thread, row.turn.id, Outcome.OWNER_GONE)
            end_turn(tx, interrupted(), thread, row.turn.id)
            ended.append(row.turn.id)
    return ended


def _end_running(tx: Transaction, here: Thread, doubtful: set[str]) -> list[str]:
    turn = here.active_turn
    # The epoch moves on, so that a late write of the dead owner's lease can never fit again.
    tx.put_thread(msgspec.structs.replace(here, epoch=here.epoch + 1))
    row = tx.rows.turn(turn)
    events = decoded(tx.rows, tx.rows.turn_events(here.id, turn, row.started_seq - 1 if row else 0))
    items = [e.payload.item for e in events if isinstance(e.payload, ev.ItemAdded)]
    for item, body in _partial_items(events, {i.id for i in items}):
        _add(tx, here.id, turn, item, body)
    unknown = _close_calls(tx, here.id, turn, events, items, _of_subagents(tx, here, turn, doubtful))
    _keep_steers(tx, here.id, turn, events)
    _end_asides(tx, here.id, turn, events)
    deny_holding(tx, turn, "interrupted")
    settle_pending(tx, here.id, turn, Outcome.OWNER_GONE)
    end_turn(tx, interrupted(), here.id, turn)
    return unknown


def _end_asides(tx: Transaction, thread: str, turn: str, events: Iterable[Event]) -> None:
    """Questions beside it that were open: there is no answer."""
    answered = {e.payload.id for e in events if isinstance(e.payload, ev.AsideAnswered)}
    for event in events:
        if isinstance(event.payload, ev.AsideAsked) and event.payload.id not in answered:
            emit(tx, ev.AsideAnswered(event.payload.id, error=interrupted().error), thread, turn)


def _add(tx: Transaction, thread: str, turn: str, item: str, body: Body) -> None:
    emit(tx, ev.ItemAdded(Item(item, thread, turn, 0, tx.now_ms, body)), thread, turn)


def _partial_items(events: Iterable[Event], known: set[str]) -> list[tuple[str, Body]]:
    """What streamed of items that were never added, in the order they began; text stops at the first missing piece."""
    kinds: dict[str, type[AssistantMessage] | type[Reasoning]] = {}
    pieces: dict[str, dict[int, str]] = {}
    sent: dict[str, MediaPart] = {}  # came whole
    for event in events:
        said = event.payload
        if isinstance(said, ev.MediaDelta) and said.item not in known:
            kinds[said.item], sent[said.item] = AssistantMessage, said.part
        if isinstance(said, ev.TextDelta | ev.ReasoningDelta) and said.item not in known:
            kinds.setdefault(said.item, AssistantMessage if isinstance(said, ev.TextDelta) else Reasoning)
            pieces.setdefault(said.item, {})[said.index] = said.text
    partial: list[tuple[str, Body]] = []
    for item, kind in kinds.items():
        if item in sent:
            partial.append((item, AssistantMessage(named(sent[item]), sent=sent[item])))
        elif text := _joined(pieces[item]):
            partial.append((item, kind(text=text, partial=True)))
    return partial


def _joined(pieces: dict[int, str]) -> str:
    index = min(pieces)
    text = []
    while index in pieces:
        text.append(pieces[index])
        index += 1
    return "".join(text)


def _of_subagents(tx: Transaction, here: Thread, turn: str, doubtful: set[str]) -> dict[str, tuple[ResultStatus, str]]:
    """By call: what is known of the subagent that worked for it. Its own turn has been ended before."""
    found = {}
    for child in tx.rows.tree(here.root):
        if child.parent != here.id or child.deleted_ms:
            continue
        for row in tx.rows.turns(child.id, live=False):
            below = row.turn
            if below.for_turn != turn:
                continue
            words = CHILD_CUT_OFF.format(thread=child.id)
            if below.id in doubtful:
                found[below.for_call] = ResultStatus.UNKNOWN, f"{words} {CHILD_UNKNOWN}"
            elif below.state in (TurnState.INTERRUPTED, TurnState.QUEUED):
                found[below.for_call] = ResultStatus.CANCELLED, words
            else:
                status = ResultStatus.OK if below.state is TurnState.DONE else ResultStatus.ERROR
                found[below.for_call] = status, CHILD_ENDED.format(state=below.state, thread=child.id)
    return found


def _close_calls(
    tx: Transaction,
    thread: str,
    turn: str,
    events: list[Event],
    items: list[Item],
    helped: dict[str, tuple[ResultStatus, str]],
) -> list[str]:
    """Give every open call a result and mark effects nobody knows the outcome of."""
    started = {e.payload.call_id: e.payload for e in events if isinstance(e.payload, ev.ToolStarted)}
    finished = {e.payload.call_id: e.payload for e in events if isinstance(e.payload, ev.ToolFinished)}
    answered = {i.body.call_id for i in items if isinstance(i.body, ToolResult)}
    outside = _calls_outside(tx, events)
    unknown = []
    for call, intent in started.items():
        doubted = intent.effect is not Effect.NONE or helped.get(call, _CALM)[0] is ResultStatus.UNKNOWN
        if doubted and call not in finished and call not in answered and call not in outside:
            emit(tx, ev.EffectUnknown(call, intent.name, intent.title), thread, turn)
            unknown.append(intent.title)
    for call, (tool, decision) in outside.items():
        if decision is None and call not in finished and call not in answered:
            emit(tx, ev.EffectUnknown(call, tool, tool), thread, turn)
            unknown.append(tool)
    for item in items:
        if isinstance(item.body, ToolCall) and item.body.call_id not in answered:
            call, media = item.body.call_id, tuple[Media, ...]()
            if call in outside and (outside[call][1] is not None or call not in finished):
                answer = outside[call][1]
                gone = ResultStatus.UNKNOWN, UNKNOWN_OUTSIDE, media
                status, text, media = gone if answer is None else client_result(answer)
            elif call in helped and call not in finished:
                status, text = helped[call]
            else:
                status, text = _what_is_known(started.get(call), finished.get(call))
            _add(tx, thread, turn, new_id("itm"), ToolResult(call, item.body.name, status, text, images=media))
    return unknown


def _calls_outside(tx: Transaction, events: list[Event]) -> dict[str, tuple[str, Decision | None]]:
    """Calls given to the client, which runs them itself: the tool, and the answer if there is one."""
    found: dict[str, tuple[str, Decision | None]] = {}
    for event in events:
        said = event.payload
        if isinstance(said, ev.InteractionRequested) and isinstance(said.interaction.request, ExternalCall):
            asked = tx.rows.interaction(said.interaction.id) or said.interaction
            found[said.interaction.call_id] = said.interaction.request.tool, asked.decision
    return found


def _keep_steers(tx: Transaction, thread: str, turn: str, events: list[Event]) -> None:
    """An accepted steer the model had not got yet was promised to the person: it becomes part of the thread."""
    given = {e.payload.command for e in events if isinstance(e.payload, ev.TurnSteered)}
    for event in events:
        settled = event.payload
        if (
            isinstance(settled, ev.CommandSettled)
            and settled.outcome is Outcome.ACCEPTED
            and settled.command not in given
        ):
            command = tx.rows.command(settled.command)
            if command is not None and command.kind is CommandKind.STEER:
                item = new_id("itm")
                _add(tx, thread, turn, item, UserMessage(command.parts, steered=True))
                emit(tx, ev.TurnSteered(command.id, item), thread, turn)


def _what_is_known(intent: ev.ToolStarted | None, end: ev.ToolFinished | None) -> tuple[ResultStatus, str]:
    if end is not None:
        return end.status, OUTPUT_LOST.format(status=end.status.value)
    if intent is None:
        return ResultStatus.CANCELLED, NEVER_RAN
    if intent.effect is Effect.NONE:
        return ResultStatus.CANCELLED, NO_EFFECT
    return ResultStatus.UNKNOWN, UNKNOWN
