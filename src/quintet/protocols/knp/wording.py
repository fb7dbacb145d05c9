"""The core's nouns in KNP's words. Pure: whatever has to be looked up is handed in."""

from __future__ import annotations

from typing import Any

import msgspec

from quintet.domain import interaction as core
from quintet.domain import item as it
from quintet.domain.errors import ErrorInfo
from quintet.domain.grant import Grant, GrantOffer, Scope
from quintet.domain.interaction import Decision, Interaction, Verdict
from quintet.domain.principal import ENGINE
from quintet.domain.thread import Thread
from quintet.domain.turn import TurnState
from quintet.engine.agents import CODER
from quintet.protocols.knp import models as knp
from quintet.protocols.knp.errors import without_paths

RUNNING, IDLE, STOPPED = "running", "idle", "stopped"
THREAD_STATES = (RUNNING, IDLE, STOPPED)
# A run that waits for its place counts as running: it was accepted and will be run.
RUN_STATUS = {
    TurnState.QUEUED: "running",
    TurnState.RUNNING: "running",
    TurnState.DONE: "completed",
    TurnState.FAILED: "failed",
    TurnState.CANCELLED: "aborted",
    TurnState.INTERRUPTED: "failed",
}
_REASONS = {"cancelled": "aborted"}
_SCOPES = {Scope.PROJECT: "namespace", Scope.THREAD: "thread", Scope.ALWAYS: "always", Scope.CALL: "call"}
TITLES = {
    "shell": "Execute Command",
    "write": "Write File",
    "edit": "Edit File",
    "ask_user": "Ask a Question",
    "exit_plan_mode": "Leave Plan Mode",
    "web_fetch": "Fetch a Page",
    "web_search": "Search the Web",
}
ASK_USER = "ask_user"


def state_of(thread: Thread, *, alive: bool = True) -> str:
    """`alive`: whether the process that runs a turn there still lives; one that died is told as cut off."""
    if thread.active_turn:
        return RUNNING if alive else STOPPED
    return STOPPED if thread.ended_as not in (None, TurnState.DONE) else IDLE


def thread_object(thread: Thread, namespace: str, default_model: str, state: str) -> knp.Thread:
    forked = {"forkedFrom": {"tid": thread.forked_from, "seq": thread.forked_at}} if thread.forked_from else {}
    return knp.Thread(
        tid=thread.id,
        namespace=namespace,
        title=thread.title or None,
        agentId=thread.settings.agent or CODER.name,
        model=knp.model_name(thread.settings.model or default_model),
        state=state,
        parentTaskId=thread.parent_call or None,
        createdAt=knp.iso(thread.created_ms),
        updatedAt=knp.iso(thread.updated_ms),
        metadata={**thread.metadata, **forked},
    )


# --- history ---------------------------------------------------------------------------------------------------------
def history_event(
    item: it.Item, *, parent: int = 0, state: str = "", hidden: bool = False, forked_from: str = ""
) -> knp.HistoryEvent:
    """`parent` is the seq of the message that began the run, `state` that of a call."""
    metadata: dict[str, Any] = {"parentSeq": parent} if parent and parent != item.ordinal else {}
    if hidden:
        metadata["hidden"] = True
    if item.origin and forked_from:
        metadata["forkedFrom"] = {"tid": forked_from, "seq": item.ordinal}
    made: dict[str, Any] = {"id": item.id, "tid": item.thread, "seq": item.ordinal, "timestamp": knp.iso(item.at_ms)}
    match item.body:
        case it.UserMessage(parts=parts, steered=steered, notice=notice):
            metadata |= ({"steered": True} if steered else {}) | ({"notice": notice} if notice else {})
            return knp.MessageEvent(**made, role="user", content=_content(parts), metadata=metadata)
        case it.AssistantMessage(text=text, partial=partial):
            metadata |= {"partial": True} if partial else {}
            content: list[knp.ContentPart] = [knp.TextContent(text)]
            return knp.MessageEvent(**made, role="assistant", content=content, metadata=metadata)
        case it.Summary(text=text):
            metadata["compaction"] = True
            return knp.MessageEvent(**made, role="assistant", content=[knp.TextContent(text)], metadata=metadata)
        case it.Damaged():
            metadata["damaged"] = True
            return knp.MessageEvent(**made, role="assistant", content=[], metadata=metadata)
        case it.Reasoning(text=text, partial=partial):
            metadata |= {"partial": True} if partial else {}
            return knp.ReasoningEvent(**made, text=text, metadata=metadata)
        case it.ToolCall() as call:
            return knp.ToolCallEvent(
                **made,
                callId=call.call_id,
                toolId=it.tool_of(call),
                arguments=call.input,
                state=state or "in_progress",
                metadata=metadata,
            )
        case it.ToolResult() as result:
            said, failed = outcome(result)
            return knp.ToolResultEvent(
                **made, callId=result.call_id, result=said, error=failed, metadata=metadata | _changes(result)
            )


def _content(parts: tuple[it.Part, ...]) -> list[knp.ContentPart]:
    """What was given; a text that only names the image behind it was not."""
    return [_part(p) for p in parts if not (p.attached and p.attached.name and not p.attached.uri)]


def _part(part: it.Part) -> knp.ContentPart:
    attached = part.attached
    if not isinstance(part, it.TextPart):
        given = part.url if isinstance(part, it.MediaPart) else f"data:{part.media_type};base64,{part.data}"
        uri = attached.uri if attached and attached.uri else given
        return knp.FileContent(uri, part.media_type, attached.name if attached else "")
    if attached is None or not (attached.uri or attached.media_type):
        return knp.TextContent(part.text)
    if attached.uri:
        return knp.FileContent(attached.uri, attached.media_type, attached.name)
    return knp.DataContent(_json(part.text))


def _changes(result: it.ToolResult) -> dict[str, Any]:
    return {"changedFiles": list(result.changed_files)} if result.changed_files else {}


def outcome(result: it.ToolResult) -> tuple[str | None, str | None]:
    """(result, error): one of them is null."""
    return (result.text, None) if result.status is it.ResultStatus.OK else (None, result.text)


def call_state(result: it.ToolResult | None) -> str:
    if result is None:
        return "in_progress"
    return "completed" if result.status is it.ResultStatus.OK else "failed"


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


# --- runs ------------------------------------------------------------------------------------------------------------
def run_error(info: ErrorInfo) -> knp.RunError:
    return knp.RunError(info.code, without_paths(" ".join(filter(None, (info.message, info.next_step)))))


# --- approvals -------------------------------------------------------------------------------------------------------
def is_shown(asked: Interaction) -> bool:
    """A client's own tools and hooks are that client's to answer."""
    return isinstance(asked.request, core.Approval | core.Question)


def approval_object(asked: Interaction, call: it.ToolCall | None, *, dated: bool) -> knp.Approval:
    request = asked.request
    if isinstance(request, core.Question):
        tool, given, details = ASK_USER, {"questions": msgspec.to_builtins(request.items)}, knp.ApprovalDetails()
    else:
        assert isinstance(request, core.Approval)
        tool, details = request.tool, _details(asked, request)
        given = _json(call.input or "{}") if call is not None else {"command": request.command}
    return knp.Approval(
        id=asked.id,
        tid=asked.thread,
        callId=asked.call_id,
        tool=knp.ToolName(tool, title_of(tool)),
        input=given,
        createdAt=knp.iso(asked.created_ms) if dated else msgspec.UNSET,
        details=details,
    )


def _details(asked: Interaction, request: core.Approval) -> knp.ApprovalDetails:
    offer = next((o for o in request.offers if o.scope is Scope.PROJECT), None)
    return knp.ApprovalDetails(
        request.title,
        request.reason,
        request.command,
        request.cwd,
        request.host,
        request.paths,
        request.diff,
        request.plan,
        request.notes,
        _pattern(offer) if offer else "",
        asked.subagent,
    )


def title_of(tool: str) -> str:
    return TITLES.get(tool) or tool.replace("_", " ").title()


def decision_word(decision: Decision) -> str:
    """One of the four; what was answered with words counts as allowed."""
    word = "deny" if decision.verdict is Verdict.DENY else "allow"
    return f"{word}-always" if decision.grant else word


def reason_of(decision: Decision) -> str:
    return _REASONS.get(decision.reason, decision.reason) if decision.by == ENGINE else decision.reason


def rule_object(grant: Grant) -> knp.ApprovalRule:
    offer = GrantOffer(grant.tool, grant.subject, grant.pattern, grant.scope, grant.exact, grant.network, grant.scripts)
    return knp.ApprovalRule(
        id=grant.id,
        tool=grant.tool or "*",
        pattern=_pattern(offer),
        decision="deny" if grant.denies else "allow",
        scope=_SCOPES[grant.scope],
        createdAt=knp.iso(grant.made_ms),
        expiresAt=knp.iso(grant.expires_ms) if grant.expires_ms else msgspec.UNSET,
    )


def _pattern(offer: GrantOffer) -> str:
    """What is remembered, without the tool and how far it reaches, which have keys of their own."""
    words = offer.words().removeprefix(f"{offer.tool or 'any tool'}: ").removesuffix(f" ({offer.scope})")
    return words.replace(" …", " *")
