"""Events of a turn as Wire messages: for each Event none, one or several, in order.

A projection: it asks nobody and sends nothing. What it remembers lies in the turn's earlier events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from quintet.domain import event as ev
from quintet.domain import item as it
from quintet.domain.errors import ErrorInfo
from quintet.domain.hook import HookEvent
from quintet.domain.interaction import Approval, Decision, ExternalCall, HookRequest, Interaction, Verdict
from quintet.domain.principal import ENGINE
from quintet.domain.turn import TurnState
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.asked import Asked, Settled, asked_of, response_of, short_id
from quintet.protocols.wire.calls import CallStream
from quintet.protocols.wire.ends import needless, refused_input
from quintet.protocols.wire.models import Message
from quintet.protocols.wire.names import Names
from quintet.protocols.wire.notification import notification
from quintet.protocols.wire.parts import wire_part
from quintet.protocols.wire.status import after_step, filled

NOTHING = wire.Empty()
COMPACTED = "The context has been compacted."
_BEFORE_THE_TURN = (HookEvent.INPUT_GIVEN, HookEvent.THREAD_BEGUN)
_NO_ERRORS = ("cancelled", "interrupted")  # how a step ends that somebody stopped
NOBODYS = Decision(Verdict.DENY, ENGINE, 0)
RETURN_VALUE = "return_value"  # of a client's own tool: what it gave, kept beside what the model reads


Out = Message | Asked | Settled


class Options(Struct, frozen=True):
    names: Names
    window: Callable[[str], int | None] = lambda model: None  # how much the model can read
    session: str = ""  # what the client calls the thread


Row = Callable[[Any, Any], list["Out"]]


class Projection:
    """Of one turn."""

    rows: ClassVar[dict[type, Row]]  # below

    def __init__(
        self,
        user_input: wire.UserInput,
        options: Options,
        subagent: str = "",
        agent: str = "",
        *,
        task: str = "",
        plan_mode: bool | None = None,
        compacts: bool = False,
    ) -> None:
        """`compacts`: there is no input, the turn is there to summarise."""
        self._input = user_input
        self._compacts = compacts
        self._filled = wire.StatusUpdate()  # how much is left after that
        self._model = ""
        self.plan_mode = plan_mode
        self._options = options
        self.task = task  # the thread of the subagent in the background that this works in, or for
        self._subagent, self._agent = subagent, agent  # its thread and its name, where it works for another turn
        self.begun = False
        self._calls = CallStream(options.names)
        self._asked: dict[str, Interaction] = {}
        self._rejected: set[str] = set()
        self._returned: dict[str, wire.ToolReturnValue] = {}
        self._steers: list[Message] = []  # given to the model with the next step
        self._asides: dict[str, ev.AsideAsked] = {}  # not answered yet
        self._step, self._step_id = 0, ""
        self.finished: ev.TurnFinished | None = None

    def project(self, event: ev.Event) -> list[Out]:
        payload = event.payload
        row = self.rows.get(type(payload))
        if row is None:
            return []
        out: list[Out] = row(self, payload)
        if out and not self.begun and not _early(payload):
            out = [*self.begin(), *out]
        return out

    def begin(self) -> list[Out]:
        """The turn's beginning, where it is told by itself."""
        self.begun = True
        return [Message("TurnBegin", wire.TurnBegin(self._input))]

    # --- the turn and its steps ----------------------------------------------------------------------------------
    def _turn_started(self, said: ev.TurnStarted) -> list[Out]:
        self._model = said.model
        return []

    def _turn_finished(self, said: ev.TurnFinished) -> list[Out]:
        self.finished = said
        return [*self._unanswered(said), *self._turn_ended(said)]

    def _unanswered(self, said: ev.TurnFinished) -> list[Out]:
        """Its process has died over them."""
        return [
            out for id in list(self._asides) for out in self._aside_answered(ev.AsideAnswered(id, error=said.error))
        ]

    def _turn_ended(self, said: ev.TurnFinished) -> list[Out]:
        end = Message("TurnEnd", NOTHING)
        if (reason := refused_input(said)) is not None:
            return [_text(reason), end]
        if self._compacts and said.state is TurnState.DONE:
            return [_text(COMPACTED), Message("StatusUpdate", self._filled), end]
        if self._compacts and needless(said):
            assert said.error is not None
            return [*self._left_alone(said.error), end]
        return [end]

    def _step_started(self, said: ev.StepStarted) -> list[Out]:
        self._model = said.model
        if not said.number:
            return []  # one of the engine's own
        self._step, self._step_id = said.number, said.step
        steers, self._steers = self._steers, []
        return [*steers, Message("StepBegin", wire.StepBegin(said.number))]

    def _step_retried(self, said: ev.StepRetried) -> list[Out]:
        if said.step != self._step_id:
            return []  # one of the engine's own, beside the step: what the client has been told of that still holds
        self._calls.again()
        retry = wire.StepRetry(self._step, said.attempt, said.most, said.wait_s, said.kind or said.reason, said.status)
        return [Message("StepRetry", retry)]

    def _step_finished(self, said: ev.StepFinished) -> list[Out]:
        if not said.number:
            return []
        if said.error is None:
            return [
                Message("StatusUpdate", after_step(said, self._options.window(said.model), plan_mode=self.plan_mode))
            ]
        return [] if said.error.code in _NO_ERRORS else [Message("StepInterrupted", NOTHING)]

    def _compaction_started(self, said: ev.CompactionStarted) -> list[Out]:
        return [Message("CompactionBegin", NOTHING)]

    def _compaction_finished(self, said: ev.CompactionFinished) -> list[Out]:
        self._filled = filled(said.tokens_after, self._options.window(self._model))
        return [Message("CompactionEnd", NOTHING)]

    def _left_alone(self, error: ErrorInfo) -> list[Out]:
        """What is short is told like any other compaction: that is what clients know."""
        size = error.data.get("text_tokens")
        if size is None:
            return [_text(error.message)]
        status = Message("StatusUpdate", filled(int(size), self._options.window(self._model)))
        return [Message("CompactionBegin", NOTHING), Message("CompactionEnd", NOTHING), _text(COMPACTED), status]

    # --- what is said and done -----------------------------------------------------------------------------------
    def _text_delta(self, said: ev.TextDelta) -> list[Out]:
        return [Message("ContentPart", wire.TextPart(said.text))]

    def _media_delta(self, said: ev.MediaDelta) -> list[Out]:
        return [Message("ContentPart", wire_part(said.part))]

    def _reasoning_delta(self, said: ev.ReasoningDelta) -> list[Out]:
        return [Message("ContentPart", wire.ThinkPart(said.text))]

    def _called(self, said: ev.ToolCalled) -> list[Out]:
        return [*self._calls.begin(said.call_id, said.spelled or said.name, fed=said.fed)]

    def _input_delta(self, said: ev.ToolInputDelta) -> list[Out]:
        return [*self._calls.grow(said.call_id, said.name, said.text)]

    def _item_added(self, said: ev.ItemAdded) -> list[Out]:
        match said.item.body:
            case it.ToolCall() as call:
                return [*self._calls.whole(call)]
            case it.ToolResult() as result:
                value = self._result(result)
                return [*self._given_up(result.call_id), Message("ToolResult", value)]
            case it.UserMessage(parts=parts, steered=True):
                self._steers.append(Message("SteerInput", wire.SteerInput(said_by_user(parts))))
        return []

    def _result(self, body: it.ToolResult) -> wire.ToolResult:
        value = self._returned.pop(body.call_id, None)
        if value is None:
            value = self._options.names.result(body, rejected=body.call_id in self._rejected)
        return wire.ToolResult(body.call_id, value)

    # --- what is asked -------------------------------------------------------------------------------------------
    def _requested(self, said: ev.InteractionRequested) -> list[Out]:
        asked = said.interaction
        self._asked[asked.id] = asked
        plan = asked.request.plan if isinstance(asked.request, Approval) else ""
        shown: list[Out] = [Message("PlanDisplay", wire.PlanDisplay(plan))] if plan else []
        names, session = self._options.names, self._options.session
        return [*shown, asked_of(asked, names, self._subagent, self._agent, session=session, task=self.task)]

    def _resolved(self, said: ev.InteractionResolved) -> list[Out]:
        asked = self._asked.pop(said.interaction, None)
        if asked is None:
            return []
        decision, settled = said.decision, Settled(asked.id)
        if isinstance(asked.request, ExternalCall):
            if RETURN_VALUE in decision.result:
                given = decision.result[RETURN_VALUE]
                self._returned[asked.call_id] = msgspec.convert(given, wire.ToolReturnValue)
        elif isinstance(asked.request, Approval):
            if decision.verdict is Verdict.DENY:
                self._rejected.add(asked.call_id)
            return [settled, Message("ApprovalResponse", response_of(asked, decision))]
        return [settled]

    def _given_up(self, call_id: str) -> list[Out]:
        """Of a turn that is stopped, what was asked is settled last of all; clients hear of it before the result."""
        given_up = [a.id for a in self._asked.values() if a.call_id == call_id and isinstance(a.request, Approval)]
        return [out for id in given_up for out in self._resolved(ev.InteractionResolved(id, call_id, NOBODYS))]

    def _thread_updated(self, said: ev.ThreadUpdated) -> list[Out]:
        if said.plan_mode is None:
            return []
        self.plan_mode = said.plan_mode
        return [Message("StatusUpdate", wire.PlanUpdate(plan_mode=said.plan_mode))]

    # --- beside it -----------------------------------------------------------------------------------------------
    def _notice_given(self, said: ev.NoticeGiven) -> list[Out]:
        """With the model: between turns clients expect silence, and none is told twice."""
        return [Message("Notification", notification(said.notice))]

    def _aside_asked(self, said: ev.AsideAsked) -> list[Out]:
        self._asides[said.id] = said
        return [Message("BtwBegin", wire.BtwBegin(short_id(said.id), said.question))]

    def _aside_answered(self, said: ev.AsideAnswered) -> list[Out]:
        self._asides.pop(said.id, None)
        error = said.error.message if said.error else None
        return [Message("BtwEnd", wire.BtwEnd(short_id(said.id), said.answer or None, error))]

    # --- hooks ---------------------------------------------------------------------------------------------------
    def _hook_triggered(self, said: ev.HookTriggered) -> list[Out]:
        return [Message("HookTriggered", wire.HookTriggered(said.event.value, said.target, said.count))]

    def _hook_resolved(self, said: ev.HookResolved) -> list[Out]:
        resolved = wire.HookResolved(said.event.value, said.target, said.action.value, said.reason, said.duration_ms)
        return [Message("HookResolved", resolved)]


Projection.rows = {
    ev.TurnStarted: Projection._turn_started,
    ev.TurnFinished: Projection._turn_finished,
    ev.StepStarted: Projection._step_started,
    ev.StepRetried: Projection._step_retried,
    ev.StepFinished: Projection._step_finished,
    ev.CompactionStarted: Projection._compaction_started,
    ev.CompactionFinished: Projection._compaction_finished,
    ev.TextDelta: Projection._text_delta,
    ev.ReasoningDelta: Projection._reasoning_delta,
    ev.MediaDelta: Projection._media_delta,
    ev.ToolCalled: Projection._called,
    ev.ToolInputDelta: Projection._input_delta,
    ev.ItemAdded: Projection._item_added,
    ev.InteractionRequested: Projection._requested,
    ev.InteractionResolved: Projection._resolved,
    ev.ThreadUpdated: Projection._thread_updated,
    ev.NoticeGiven: Projection._notice_given,
    ev.AsideAsked: Projection._aside_asked,
    ev.AsideAnswered: Projection._aside_answered,
    ev.HookTriggered: Projection._hook_triggered,
    ev.HookResolved: Projection._hook_resolved,
}


def _early(payload: object) -> bool:
    """What clients are told before the turn begins: the hooks that decide whether it does."""
    match payload:
        case ev.HookTriggered(event=event) | ev.HookResolved(event=event):
            return event in _BEFORE_THE_TURN
        case ev.InteractionRequested(interaction=Interaction(request=HookRequest(event=event))):
            return event in _BEFORE_THE_TURN
        case ev.InteractionResolved():
            return True  # of an approval it comes after the request, which has begun the turn
    return False


def _text(text: str) -> Message:
    return Message("ContentPart", wire.TextPart(text))


def said_by_user(parts: tuple[it.Part, ...]) -> wire.UserInput:
    """A lone text as a string, else the parts."""
    if len(parts) == 1 and isinstance(parts[0], it.TextPart):
        return parts[0].text
    return [wire_part(part) for part in parts]
