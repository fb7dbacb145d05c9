"""Kward's nouns, spelled as published: params and results of its methods. Pure shapes.

A value that may be wrong in ways the wire has its own words for is `Any` here and looked at where it is used.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from quintet.domain.model import ModelInfo


class Wire(Struct, frozen=True, rename="camel"):
    """Written with camelCase names."""


class Ok(Wire, frozen=True):
    ok: bool = True


# --- workspaces --------------------------------------------------------------------------------------------
class WorkspaceParams(Wire, frozen=True):
    workspace_root: str | None = None


class WorkspaceRoot(Wire, frozen=True):
    root: str


class WorkspaceInfo(Wire, frozen=True):
    root: str
    basename: str
    writable: bool


# --- sessions ---------------------------------------------------------------------------------------------------------
class Session(Wire, frozen=True):
    """What is not known is null, not absent."""

    id: str  # of this client's handle on it, another at each opening
    persistent_id: str
    path: str
    workspace_root: str
    cwd: str
    name: str | None
    created_at: str
    modified_at: str
    parent_id: str | None = None
    parent_path: str | None = None


class SessionParams(Wire, frozen=True):
    session_id: str


class CreateParams(Wire, frozen=True):
    workspace_root: str | None = None
    name: str | None = None


class ResumeParams(Wire, frozen=True):
    path: str
    workspace_root: str | None = None


class ListParams(Wire, frozen=True):
    workspace_root: str | None = None
    limit: int | None = None


class Listed(Wire, frozen=True):
    id: str
    path: str
    cwd: str
    workspace_root: str
    created_at: str
    modified_at: str
    name: str | None
    first_message: str | None
    message_count: int
    parent_id: str | None = None
    parent_path: str | None = None
    depth: int = 0
    is_last: bool = True
    ancestor_continues: tuple[bool, ...] = ()


class SessionList(Wire, frozen=True):
    sessions: list[Listed]


class RenameParams(Wire, frozen=True):
    session_id: str
    name: str | None = None


class CompactParams(Wire, frozen=True):
    session_id: str
    custom_instructions: str | None = None


class CompactDetails(Struct, frozen=True):
    read_files: list[str]
    modified_files: list[str]


class Compacted(Wire, frozen=True):
    summary: str
    tokens_before: int
    details: CompactDetails
    first_kept_entry_id: str | UnsetType = UNSET


class ForkMessage(Wire, frozen=True):
    entry_id: str
    text: str


class ForkMessages(Wire, frozen=True):
    messages: list[ForkMessage]


class ForkParams(Wire, frozen=True):
    session_id: str
    entry_id: str


class Forked(Wire, frozen=True):
    session: Session
    text: str
    cancelled: bool = False


class ExportParams(Wire, frozen=True):
    session_id: str
    path: str | None = None
    format: str | None = None


class Exported(Wire, frozen=True):
    path: str
    format: str


class Deleted(Wire, frozen=True):
    deleted: bool
    path: str


class Closed(Wire, frozen=True):
    closed: bool = True


class Transcript(Wire, frozen=True):
    session: Session
    messages: list[dict[str, Any]]


# --- turns ------------------------------------------------------------------------------------------------------------
class TurnError(Wire, frozen=True):
    message: str
    code: str
    fatal: bool = False


class Turn(Wire, frozen=True):
    """What is not known is absent."""

    id: str
    session_id: str
    status: str  # queued | running | completed | failed | canceled
    cancel_requested: bool
    created_at: str
    started_at: str | UnsetType = UNSET
    finished_at: str | UnsetType = UNSET
    error: TurnError | UnsetType = UNSET


class StartParams(Wire, frozen=True):
    session_id: str
    input: str
    streaming_behavior: Any = None
    attachments: Any = None


class TurnParams(Wire, frozen=True):
    turn_id: str


class EventsParams(Wire, frozen=True):
    turn_id: str
    after_sequence: int | None = None


class TurnEvent(Wire, frozen=True):
    sequence: int
    timestamp: str
    session_id: str
    turn_id: str
    type: str
    payload: Any


class TurnEvents(Wire, frozen=True):
    turn: Turn
    events: list[TurnEvent]
    missing: int | UnsetType = UNSET  # before these, and no longer kept


class SessionEvent(Wire, frozen=True):
    timestamp: str
    session_id: str
    type: str
    payload: Any


# --- questions --------------------------------------------------------------------------------------------------------
class QuestionAsked(Wire, frozen=True):
    session_id: str
    question_request_id: str
    questions: list[dict[str, Any]]


class AnswerParams(Wire, frozen=True):
    session_id: str
    question_request_id: str
    answers: Any = None


# --- models -----------------------------------------------------------------------------------------------------------
class Model(Wire, frozen=True):
    provider: str
    id: str
    model: str  # the same as `id`, for older clients
    name: str
    reasoning: bool
    current: bool
    reasoning_effort: str | UnsetType = UNSET
    context_window: int | UnsetType = UNSET


def model_of(
    reference: str, info: ModelInfo | None, *, current: bool = False, effort: str = "", name: str = ""
) -> Model:
    """A model of ours, under its configured names."""
    provider, _, model = reference.partition("/")
    window: int | UnsetType = info.context_window if info and info.context_window else UNSET
    reasons = bool(info and info.reasoning)
    return Model(provider, model, model, name or model, reasons, current, effort or UNSET, window)


# --- runtime, tools, commands -----------------------------------------------------------------------------------------
class SettingParams(Wire, frozen=True):
    session_id: str
    setting_id: Any
    value: Any = None


class Applied(Wire, frozen=True):
    applied: str
    message: str


class Reloaded(Wire, frozen=True):
    ok: bool
    message: str


class ContextUsage(Wire, frozen=True):
    tokens: int
    context_window: int
    percent: float
    estimated: bool = True


class RuntimeStats(Wire, frozen=True):
    session_file: str
    session_id: str  # the persistent one
    rpc_session_id: str
    persistent_session_id: str
    user_messages: int
    assistant_messages: int
    tool_calls: int
    tool_results: int
    total_messages: int
    using_subscription: bool
    auto_compaction_enabled: bool
    session_name: str | UnsetType = UNSET
    context_usage: ContextUsage | UnsetType = UNSET


class RuntimeState(Wire, frozen=True):
    model: Model
    thinking_level: str
    is_streaming: bool
    is_compacting: bool
    session_file: str
    session_id: str  # the persistent one
    rpc_session_id: str
    persistent_session_id: str
    auto_compaction_enabled: bool
    default_provider: str
    default_model: str
    default_thinking_level: str
    message_count: int
    pending_message_count: int
    session_name: str | UnsetType = UNSET
    steering_mode: str = "in-flight"
    follow_up_mode: str = "one-at-a-time"
    auto_retry_enabled: bool = False
    hide_thinking_block: bool = False
    quiet_startup: bool = False
    transport: str = "kward-rpc"
    image_auto_resize: bool = False
    block_images: bool = False
    enabled_models: tuple[str, ...] = ()
    enable_skill_commands: bool = True


class Tools(Wire, frozen=True):
    tools: list[dict[str, Any]]


class CommandList(Wire, frozen=True):
    commands: list[dict[str, Any]]


class RunParams(Wire, frozen=True):
    session_id: str
    name: str
    arguments: str | None = None


class Section(Wire, frozen=True):
    name: str
    items: list[str]


class Startup(Wire, frozen=True):
    sections: list[Section]


class PromptInfo(Wire, frozen=True):
    command: str
    description: str
    argument_hint: str
    path: str


class PromptList(Wire, frozen=True):
    prompts: list[PromptInfo]


class ExpandParams(Wire, frozen=True):
    command: str
    arguments: str | None = None


class Expanded(Wire, frozen=True):
    command: str
    text: str
