"""What the client is asked, and what it answers, spelled as published: an Interaction of the engine as a request of
Wire's, and a decision as the event that tells of it. Pure.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from quintet.domain import interaction as core
from quintet.domain.interaction import Decision, Interaction, Verdict
from quintet.domain.principal import ENGINE
from quintet.protocols.wire.models import ApprovalResponse, Message
from quintet.protocols.wire.names import Names


class ApprovalRequest(Struct, frozen=True):
    id: str
    tool_call_id: str
    sender: str
    action: str
    description: str
    display: list[dict[str, Any]]
    source_kind: Literal["foreground_turn", "background_agent"] = "foreground_turn"
    source_id: str | None = None
    agent_id: str | None = None
    subagent_type: str | None = None
    source_description: str | None = None


class ToolCallRequest(Struct, frozen=True):
    id: str
    name: str
    arguments: str | None


class QuestionOption(Struct, frozen=True):
    label: str
    description: str = ""


class QuestionItem(Struct, frozen=True):
    question: str
    header: str
    options: list[QuestionOption]
    multi_select: bool
    body: str = ""
    other_label: str = ""
    other_description: str = ""


class QuestionRequest(Struct, frozen=True):
    id: str
    tool_call_id: str
    questions: list[QuestionItem]


class QuestionResponse(Struct, frozen=True):
    answers: dict[str, str]
    request_id: str = ""


class HookRequest(Struct, frozen=True):
    id: str
    subscription_id: str
    event: str
    target: str
    input_data: dict[str, Any]


class HookResponse(Struct, frozen=True):
    action: Literal["allow", "block"] = "allow"
    reason: str = ""
    request_id: str = ""


Request = ApprovalRequest | ToolCallRequest | QuestionRequest | HookRequest


class Asked(Struct, frozen=True):
    """A request to the client. Its JSON-RPC id and its payload's are the same."""

    id: str
    message: Message
    interaction: Interaction


class Settled(Struct, frozen=True):
    """A request that waits no longer, whoever answered it."""

    interaction: str


def asked_of(
    interaction: Interaction,
    names: Names,
    subagent: str = "",
    agent: str = "",
    *,
    session: str = "",
    task: str = "",
) -> Asked:
    """`subagent` and `agent` are the thread and the name of the one that works for another turn; `session` is what the
    client calls the thread; `task` is the thread of the one in the background that asks, or that it is asked for."""
    request = _request(interaction, names, subagent, agent)
    if isinstance(request, ApprovalRequest) and task:
        request = replace(request, source_kind="background_agent", source_id=task)
    if isinstance(request, HookRequest) and session:
        request = replace(request, input_data={**request.input_data, "session_id": session})
    return Asked(request.id, Message(type(request).__name__, request), interaction)


def _request(asked: Interaction, names: Names, subagent: str, agent: str) -> Request:
    match asked.request:
        case core.Approval() as approval:
            shown = names.approval(approval)
            return ApprovalRequest(
                public_id(asked.id),
                asked.call_id,
                shown.sender,
                shown.action,
                shown.description,
                shown.display,
                source_id=public_id(asked.turn),
                agent_id=subagent or None,
                subagent_type=asked.subagent or agent or None,
            )
        case core.ExternalCall(tool=name, input=given):
            return ToolCallRequest(asked.call_id, name, given)
        case core.Question(items=items):
            return QuestionRequest(public_id(asked.id), asked.call_id, [_question(item) for item in items])
        case core.HookRequest(subscription=hook, event=event, target=target, input=given):
            return HookRequest(short_id(asked.id), hook, event.value, target, given)


def _question(item: core.QuestionItem) -> QuestionItem:
    options = [QuestionOption(option.label, option.description) for option in item.options]
    return QuestionItem(item.text, item.header, options, item.multiple)


def response_of(asked: Interaction, decision: Decision) -> ApprovalResponse:
    if decision.verdict is not Verdict.ALLOW:
        return ApprovalResponse(public_id(asked.id), "reject", "" if decision.by == ENGINE else decision.reason)
    remembered = decision.grant and decision.by.protocol == "wire"
    return ApprovalResponse(public_id(asked.id), "approve_for_session" if remembered else "approve", decision.reason)


def public_id(core_id: str) -> str:
    """In the form of a UUID, as clients have always seen them; always the same one."""
    digits = hashlib.sha256(core_id.encode()).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


def short_id(core_id: str) -> str:
    """Twelve hexadecimal digits, always the same ones."""
    return hashlib.sha256(core_id.encode()).hexdigest()[:12]
