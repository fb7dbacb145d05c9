"""Events of a turn as Kward tells them: for each Event none, one or several, in order.

A projection: it asks nobody and sends nothing. What it remembers lies in the turn's earlier events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from msgspec import Struct

from quintet.domain import event as ev
from quintet.domain import item as it
from quintet.domain.command import Command, CommandKind, Outcome
from quintet.domain.errors import ErrorInfo
from quintet.domain.interaction import Interaction
from quintet.domain.turn import TurnState
from quintet.protocols.kward import normal
from quintet.protocols.kward.messages import Folding, Message
from quintet.protocols.kward.models import TurnError
from quintet.protocols.kward.times import iso

STATUS = {
    TurnState.QUEUED: "queued",
    TurnState.RUNNING: "running",
    TurnState.DONE: "completed",
    TurnState.FAILED: "failed",
    TurnState.CANCELLED: "canceled",
    TurnState.INTERRUPTED: "canceled",
}


class Frame(Struct, frozen=True):
    """A turn/event."""

    type: str
    payload: Any
    item: str = ""  # of which it is a piece


class Asked(Struct, frozen=True):
    """Somebody must answer before the turn goes on."""

    interaction: Interaction


class Compacting(Struct, frozen=True):
    """The thread is being made shorter, or has been: `over` says what came of it."""

    over: ev.CompactionFinished | None = None


Out = Frame | Asked | Compacting
Row = Callable[[Any, Any], list[Out]]


class Projection:
    """Of one turn."""

    rows: ClassVar[dict[type, Row]]  # below

    def __init__(self, turn: str) -> None:
        self._turns = {turn}  # this one and those of its subagents
        self._turn = turn
        self._folding = Folding()
        self._calls: dict[str, it.ToolCall] = {}
        self._steers: dict[str, Command] = {}
        self._model = ""
        self._last_words = ""
        self.stopping = False  # somebody wants it to end: nothing more is told but the end
        self.finished: ev.TurnFinished | None = None

    def project(self, event: ev.Event) -> list[Out]:
        said = event.payload
        if isinstance(said, ev.TurnQueued) and said.turn.for_turn in self._turns:
            self._turns.add(said.turn.id)
        if event.turn not in self._turns:
            return []
        if event.turn != self._turn:  # a subagent's: its questions are asked, the rest is its own
            return [Asked(said.interaction)] if isinstance(said, ev.InteractionRequested) else []
        row = self.rows.get(type(said))
        out: list[Out] = row(self, said) if row else []
        if isinstance(said, ev.TurnFinished):
            return out
        return [] if self.stopping and not isinstance(said, ev.TurnCancelRequested) else out

    # --- the turn and its steps ----------------------------------------------------------------------------------
    def _started(self, said: ev.TurnStarted) -> list[Out]:
        return [Frame("turnStarted", {"status": "running"})]

    def _finished(self, said: ev.TurnFinished) -> list[Out]:
        self.finished = said
        out: list[Out] = []
        error = error_of(said.error) if said.state is TurnState.FAILED else None
        if said.state is TurnState.DONE:
            out.append(Frame("answer", {"content": self._last_words}))
        if error is not None:
            out.append(Frame("error", error))
        return [*out, Frame("turnFinished", {"status": STATUS[said.state], "error": error})]

    def _cancel_requested(self, said: ev.TurnCancelRequested) -> list[Out]:
        told, self.stopping = self.stopping, True
        return [] if told else [Frame("turnCancelRequested", {})]

    def _posted(self, said: ev.CommandPosted) -> list[Out]:
        if said.command.kind is CommandKind.STEER:
            self._steers[said.command.id] = said.command
        return []

    def _settled(self, said: ev.CommandSettled) -> list[Out]:
        command = self._steers.pop(said.command, None)
        if command is None or said.outcome is not Outcome.ACCEPTED:
            return []
        words = "\n".join(part.text for part in command.parts if isinstance(part, it.TextPart))
        return [Frame("turnSteered", {"input": words, "createdAt": iso(command.posted_ms)})]

    def _step_started(self, said: ev.StepStarted) -> list[Out]:
        self._model = said.model
        return []

    def _step_retried(self, said: ev.StepRetried) -> list[Out]:
        provider, _, model = self._model.partition("/")
        told = {
            "provider": provider,
            "model": model,
            "attempt": said.attempt,
            "maxAttempts": said.most,
            "delaySeconds": said.wait_s,
            "error": said.reason,
        }
        return [Frame("modelRetry", told)]

    def _step_finished(self, said: ev.StepFinished) -> list[Out]:
        """What was said is whole; one that was cut off is told by the end of the turn."""
        if not said.number:
            return []
        out: list[Out] = []
        for message in self._folding.end() if said.error is None else ():
            self._last_words = message.text()
            out.append(Frame("assistantMessage", {"message": message.raw()}))
            out += [Frame("toolCall", call_payload(call)) for call in message.calls()]
        return out

    # --- what is said and done -----------------------------------------------------------------------------------
    def _text_delta(self, said: ev.TextDelta) -> list[Out]:
        return [Frame("assistantDelta", {"delta": said.text}, said.item)]

    def _media_delta(self, said: ev.MediaDelta) -> list[Out]:
        return [Frame("assistantDelta", {"delta": it.named(said.part)})]

    def _reasoning_delta(self, said: ev.ReasoningDelta) -> list[Out]:
        return [Frame("reasoningDelta", {"delta": said.text}, said.item)]

    def _item_added(self, said: ev.ItemAdded) -> list[Out]:
        results = [message for message in self._folding.take(said.item) if message.role == "tool"]
        return [Frame("toolResult", result_payload(message)) for message in results]

    # --- what is asked, what becomes shorter ---------------------------------------------------------------------
    def _requested(self, said: ev.InteractionRequested) -> list[Out]:
        return [Asked(said.interaction)]

    def _compaction_started(self, said: ev.CompactionStarted) -> list[Out]:
        return [Compacting()]

    def _compaction_finished(self, said: ev.CompactionFinished) -> list[Out]:
        return [Compacting(said)]


Projection.rows = {
    ev.TurnStarted: Projection._started,
    ev.TurnFinished: Projection._finished,
    ev.TurnCancelRequested: Projection._cancel_requested,
    ev.CommandPosted: Projection._posted,
    ev.CommandSettled: Projection._settled,
    ev.StepStarted: Projection._step_started,
    ev.StepRetried: Projection._step_retried,
    ev.StepFinished: Projection._step_finished,
    ev.TextDelta: Projection._text_delta,
    ev.MediaDelta: Projection._media_delta,
    ev.ReasoningDelta: Projection._reasoning_delta,
    ev.ItemAdded: Projection._item_added,
    ev.InteractionRequested: Projection._requested,
    ev.CompactionStarted: Projection._compaction_started,
    ev.CompactionFinished: Projection._compaction_finished,
}


def call_payload(call: it.ToolCall) -> dict[str, Any]:
    raw = normal.raw_call(call)
    told = {
        "toolCallId": call.call_id,
        "toolName": normal.name_of(call),
        "args": normal.arguments_of(call),
        "rawToolCall": raw,
        "toolCall": raw,
    }
    older = normal.legacy(call)
    return told | {"tool": older} if older else told


def result_payload(message: Message) -> dict[str, Any]:
    (result,) = message.bodies
    assert isinstance(result, it.ToolResult)
    call = message.call or it.ToolCall(result.call_id, result.name, "{}")
    told = normal.result_of(result, message.call)
    return call_payload(call) | {"content": told.content, "result": told}


def error_of(info: ErrorInfo | None) -> TurnError:
    if info is None:
        return TurnError("The turn failed.", "failed")
    return TurnError(f"{info.message} {info.next_step}".strip(), info.code)
