"""Event -> 0..n frames, at most sixteen: a pure projection. What it says beyond the event was looked up before.

Replayed, live, on one stream or another, an event gives the same frames in the same order: its public numbers are
their places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from quintet.domain import event as ev
from quintet.domain import item as it
from quintet.domain.turn import TurnState
from quintet.engine.agents import CODER
from quintet.protocols.knp import models as knp
from quintet.protocols.knp.frames import Frame
from quintet.protocols.knp.lookup import Known, Lookup
from quintet.protocols.knp.wording import (
    IDLE,
    RUN_STATUS,
    STOPPED,
    approval_object,
    call_state,
    decision_word,
    history_event,
    is_shown,
    outcome,
    reason_of,
    run_error,
    state_of,
    thread_object,
)

Said = tuple[str, Any]  # a frame's kind and data
EVERYWHERE = frozenset({"thread.created", "thread.updated", "thread.deleted", "namespace.created", "project.updated"})


class Projection:
    def __init__(self, lookup: Lookup, default_model: Callable[[], str]) -> None:
        self._lookup = lookup
        self._default_model = default_model

    async def project(self, events: Sequence[ev.Event]) -> list[list[Frame]]:
        return [await self._one(event) for event in events]

    async def _one(self, event: ev.Event) -> list[Frame]:
        said = event.payload
        delta = _DELTAS.get(type(said))
        if delta is not None:
            space = self._lookup.namespace(event.thread)
            space = await self._lookup.namespace_of(event.thread) if space is None else space
            return [Frame(k, d, space, event.at_ms, event.thread, event.root) for k, d in delta(event, said)]
        if isinstance(said, ev.ProjectAdded):
            name = await self._lookup.project_name(said.project)
            return [Frame("namespace.created", {"namespace": name}, name, event.at_ms, everywhere=True)]
        row = _ROWS.get(type(said))
        if row is None:
            return []
        known = await self._lookup.of(event)
        return [
            Frame(kind, data, known.namespace, event.at_ms, event.thread, event.root, kind in EVERYWHERE)
            for kind, data in row(self, event, said, known)
        ]

    def thread(self, said: ev.ThreadCreated | ev.ThreadUpdated, known: Known) -> list[Said]:
        kind = "thread.created" if isinstance(said, ev.ThreadCreated) else "thread.updated"
        if said.thread is None:
            return []  # of a journal that did not keep it yet
        shown = thread_object(said.thread, known.namespace, self._default_model(), state_of(said.thread))
        return [(kind, {"thread": shown})]


def _text_delta(event: ev.Event, said: Any) -> list[Said]:
    return _piece("text", event, said)


def _media_delta(event: ev.Event, said: ev.MediaDelta) -> list[Said]:
    """There is no form for it: who watches reads what it is."""
    return _piece("text", event, ev.TextDelta(said.item, said.index, it.named(said.part)))


def _reasoning_delta(event: ev.Event, said: Any) -> list[Said]:
    return _piece("reasoning", event, said)


def _piece(what: str, event: ev.Event, said: ev.TextDelta | ev.ReasoningDelta) -> list[Said]:
    delta = (f"{what}.delta", {"tid": event.thread, "id": said.item, "delta": said.text})
    return [delta] if said.index else [(f"{what}.start", {"tid": event.thread, "id": said.item}), delta]


def _input_delta(event: ev.Event, said: Any) -> list[Said]:
    return [("tool.input.delta", {"tid": event.thread, "callId": said.call_id, "delta": said.text})]


def _thread_changed(made: Projection, event: ev.Event, said: Any, known: Known) -> list[Said]:
    return made.thread(said, known)


def _deleted(made: Projection, event: ev.Event, said: ev.ThreadDeleted, known: Known) -> list[Said]:
    return [("thread.deleted", {"tid": event.thread})]


def _started(made: Projection, event: ev.Event, said: ev.TurnStarted, known: Known) -> list[Said]:
    agent = said.agent or CODER.name
    start = {"tid": event.thread, "agentId": agent, "namespace": known.namespace}
    return [("run.started", {"runId": event.turn, "tid": event.thread}), ("thread.start", start)]


def _finished(made: Projection, event: ev.Event, said: ev.TurnFinished, known: Known) -> list[Said]:
    error = {"error": run_error(said.error)} if said.error is not None else {}
    state = IDLE if said.state is TurnState.DONE else STOPPED
    stop = {"tid": event.thread, "agentId": said.agent or CODER.name, "state": state, **error}
    finished = {"runId": event.turn, "tid": event.thread, "status": RUN_STATUS[said.state], **error}
    return [("thread.stop", stop), ("run.finished", finished)]


def _asked_model(made: Projection, event: ev.Event, said: ev.StepStarted, known: Known) -> list[Said]:
    model = knp.model_name(said.model)
    named = {"tid": event.thread, "provider": model.provider, "modelId": model.modelId}
    return [("model.call.start", {**named, "agentId": said.agent or CODER.name})]


def _model_answered(made: Projection, event: ev.Event, said: ev.StepFinished, known: Known) -> list[Said]:
    model = knp.model_name(said.model)
    data: dict[str, Any] = {"tid": event.thread, "provider": model.provider, "modelId": model.modelId}
    data["finishReason"] = "error" if said.error else said.finish.value if said.finish else "other"
    if said.usage is not None:
        used = said.usage
        data["usage"] = {
            "inputTokens": used.input_tokens,
            "outputTokens": used.output_tokens,
            "reasoningTokens": used.reasoning_tokens,
            "cacheRead": used.cached_tokens,
            "cacheWrite": used.cache_written_tokens,
        }
    return [("model.call.end", data)]


def _called(made: Projection, event: ev.Event, said: ev.ToolCalled, known: Known) -> list[Said]:
    return [("tool.start", {"tid": event.thread, "callId": said.call_id, "toolId": said.name})]


def _added(made: Projection, event: ev.Event, said: ev.ItemAdded, known: Known) -> list[Said]:
    item, tid = said.item, event.thread
    shown = history_event(item, parent=known.parent, forked_from=known.forked_from)
    created = ("event.created", {"tid": tid, "event": shown})
    if not event.turn:
        return [created]  # copied or brought along: nobody has said it just now
    match item.body:
        case it.AssistantMessage(text=text):
            return [("text.end", {"tid": tid, "id": item.id, "text": text}), created]
        case it.Reasoning(text=text):
            return [("reasoning.end", {"tid": tid, "id": item.id, "text": text}), created]
        case it.ToolCall() as call:
            return [("tool.input.end", {"tid": tid, "callId": call.call_id, "input": _input(call)}), created]
        case it.ToolResult() as result:
            said_ok, failed = outcome(result)
            ended = ("tool.result", {"tid": tid, "callId": result.call_id, "result": said_ok, "error": failed})
            if known.call is None:
                return [ended, created]
            call_event = history_event(known.call, parent=known.parent, state=call_state(result))
            return [ended, created, ("event.updated", {"tid": tid, "event": call_event})]
    return [created]


def _input(call: it.ToolCall) -> Any:
    """As JSON; what the model wrote where that is none."""
    try:
        return msgspec.json.decode(call.input or "{}")
    except msgspec.DecodeError:
        return call.input


def _requested(made: Projection, event: ev.Event, said: ev.InteractionRequested, known: Known) -> list[Said]:
    if not is_shown(said.interaction):
        return []
    body = known.call.body if known.call is not None else None
    call = body if isinstance(body, it.ToolCall) else None
    return [("approval.requested", approval_object(said.interaction, call, dated=False))]


def _resolved(made: Projection, event: ev.Event, said: ev.InteractionResolved, known: Known) -> list[Said]:
    if known.interaction is None or not is_shown(known.interaction):
        return []
    data = {"id": said.interaction, "decision": decision_word(said.decision), "tid": event.thread}
    reason = reason_of(said.decision)
    return [("approval.resolved", {**data, "reason": reason} if reason else data)]


def _todos(made: Projection, event: ev.Event, said: ev.TodoUpdated, known: Known) -> list[Said]:
    todos = [
        {"content": todo.text, "status": "completed" if todo.status == "done" else todo.status} for todo in said.todos
    ]
    return [("todo.updated", {"tid": event.thread, "todos": todos})]


_DELTAS: dict[type, Callable[[ev.Event, Any], list[Said]]] = {
    ev.TextDelta: _text_delta,
    ev.MediaDelta: _media_delta,
    ev.ReasoningDelta: _reasoning_delta,
    ev.ToolInputDelta: _input_delta,
}
_ROWS: dict[type, Callable[[Projection, ev.Event, Any, Known], list[Said]]] = {
    ev.ThreadCreated: _thread_changed,
    ev.ThreadUpdated: _thread_changed,
    ev.ThreadDeleted: _deleted,
    ev.TurnStarted: _started,
    ev.TurnFinished: _finished,
    ev.StepStarted: _asked_model,
    ev.StepFinished: _model_answered,
    ev.ToolCalled: _called,
    ev.ItemAdded: _added,
    ev.InteractionRequested: _requested,
    ev.InteractionResolved: _resolved,
    ev.TodoUpdated: _todos,
}
