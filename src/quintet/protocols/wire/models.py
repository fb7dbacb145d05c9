"""Wire's nouns, spelled as published: what is said, params and results of the methods, the payload of each event.

Pure shapes. The greeting's are in greeting.py, those of requests in asked.py.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

VERSION = "1.10"  # the newest that Quintet speaks, and what it answers
NAME = "quintet"


# --- what users and models say ----------------------------------------------------------------------------------------
class Url(Struct, frozen=True):
    url: str
    id: str | None = None


class TextPart(Struct, frozen=True, tag="text"):
    text: str


class ThinkPart(Struct, frozen=True, tag="think"):
    think: str
    encrypted: str | None = None


class ImageURLPart(Struct, frozen=True, tag="image_url"):
    image_url: Url


class AudioURLPart(Struct, frozen=True, tag="audio_url"):
    audio_url: Url


class VideoURLPart(Struct, frozen=True, tag="video_url"):
    video_url: Url


ContentPart = TextPart | ThinkPart | ImageURLPart | AudioURLPart | VideoURLPart
UserInput = str | list[ContentPart]


# --- methods ----------------------------------------------------------------------------------------------------------
class PromptParams(Struct, frozen=True):
    user_input: UserInput


class PromptResult(Struct, frozen=True):
    status: Literal["finished", "cancelled", "max_steps_reached"]
    steps: int | UnsetType = UNSET


class SteerResult(Struct, frozen=True):
    status: Literal["steered"] = "steered"


class PlanModeParams(Struct, frozen=True):
    enabled: bool


class PlanModeResult(Struct, frozen=True):
    plan_mode: bool
    status: Literal["ok"] = "ok"


class ReplayResult(Struct, frozen=True):
    status: Literal["finished", "cancelled"]
    events: int
    requests: int


class Empty(Struct, frozen=True):
    pass


# --- events -----------------------------------------------------------------------------------------------------------
class Message(Struct, frozen=True):
    """The params of `event` and of `request`."""

    type: str
    payload: Any


class TurnBegin(Struct, frozen=True):
    user_input: UserInput


class SteerInput(Struct, frozen=True):
    user_input: UserInput


class StepBegin(Struct, frozen=True):
    n: int


class StepRetry(Struct, frozen=True):
    n: int
    next_attempt: int
    max_attempts: int
    wait_s: float
    error_type: str
    status_code: int | None = None


class TokenUsage(Struct, frozen=True):
    input_other: int
    output: int
    input_cache_read: int
    input_cache_creation: int


class StatusUpdate(Struct, frozen=True):
    """All keys are always there; null is unknown, or unchanged."""

    context_usage: float | None = None
    context_tokens: int | None = None
    max_context_tokens: int | None = None
    token_usage: TokenUsage | None = None
    message_id: str | None = None
    plan_mode: bool | None = None
    mcp_status: dict[str, Any] | None = None


class PlanUpdate(StatusUpdate, frozen=True):
    """The same on the wire: it only tells that plan mode has changed."""


class Function(Struct, frozen=True):
    name: str
    arguments: str | None = None


class ToolCall(Struct, frozen=True):
    id: str
    function: Function
    type: Literal["function"] = "function"
    extras: dict[str, Any] | None = None


class ToolCallPart(Struct, frozen=True):
    arguments_part: str | None = None


class ToolReturnValue(Struct, frozen=True):
    is_error: bool
    output: str | list[ContentPart]
    message: str = ""
    display: list[dict[str, Any]] = []
    extras: dict[str, Any] | None = None


class ToolResult(Struct, frozen=True):
    tool_call_id: str
    return_value: ToolReturnValue


class ApprovalResponse(Struct, frozen=True):
    """Both an event and the answer to an ApprovalRequest."""

    request_id: str
    response: Literal["approve", "approve_for_session", "reject"]
    feedback: str = ""


class Notification(Struct, frozen=True):
    id: str
    category: str
    type: str
    source_kind: str
    source_id: str
    title: str
    body: str
    severity: str
    created_at: float  # seconds
    payload: dict[str, Any] = {}


class BtwBegin(Struct, frozen=True):
    id: str
    question: str


class BtwEnd(Struct, frozen=True):
    id: str
    response: str | None = None
    error: str | None = None


class PlanDisplay(Struct, frozen=True):
    content: str
    file_path: str = ""


class HookTriggered(Struct, frozen=True):
    event: str
    target: str
    hook_count: int


class HookResolved(Struct, frozen=True):
    event: str
    target: str
    action: Literal["allow", "block"]
    reason: str
    duration_ms: int


class SubagentEvent(Struct, frozen=True):
    parent_tool_call_id: str
    task_tool_call_id: str  # the name before 1.6; readers of either find it
    agent_id: str | None
    subagent_type: str | None
    event: Message
