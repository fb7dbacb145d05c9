"""KNP's nouns, spelled as published. What the document leaves open and Quintet adds stands behind those keys."""

from __future__ import annotations

from functools import lru_cache
from time import gmtime, strftime
from typing import Any

from msgspec import UNSET, Struct, UnsetType


class ModelName(Struct, frozen=True):
    provider: str
    modelId: str


class Thread(Struct, frozen=True, kw_only=True):
    """The same object everywhere."""

    tid: str
    namespace: str
    title: str | None
    agentId: str
    model: ModelName
    state: str  # running | idle | stopped
    parentTaskId: str | None
    createdAt: str
    updatedAt: str
    metadata: dict[str, Any]
    history: list[HistoryEvent] | UnsetType = UNSET  # only where it was asked for


class TextContent(Struct, frozen=True, tag_field="kind", tag="text"):
    text: str


class FileContent(Struct, frozen=True, tag_field="kind", tag="file"):
    uri: str
    mimeType: str = ""
    filename: str = ""


class DataContent(Struct, frozen=True, tag_field="kind", tag="data"):
    data: Any


ContentPart = TextContent | FileContent | DataContent


class MessageEvent(Struct, frozen=True, kw_only=True, tag_field="kind", tag="message"):
    id: str
    tid: str
    seq: int
    role: str
    content: list[ContentPart]
    timestamp: str
    metadata: dict[str, Any]


class ReasoningEvent(Struct, frozen=True, kw_only=True, tag_field="kind", tag="reasoning"):
    id: str
    tid: str
    seq: int
    text: str
    timestamp: str
    metadata: dict[str, Any]


class ToolCallEvent(Struct, frozen=True, kw_only=True, tag_field="kind", tag="tool.call"):
    id: str
    tid: str
    seq: int
    callId: str
    toolId: str
    arguments: str  # JSON text
    state: str  # in_progress | completed | failed
    timestamp: str
    metadata: dict[str, Any]


class ToolResultEvent(Struct, frozen=True, kw_only=True, tag_field="kind", tag="tool.result"):
    id: str
    tid: str
    seq: int
    callId: str
    result: str | None
    error: str | None
    timestamp: str
    metadata: dict[str, Any]


HistoryEvent = MessageEvent | ReasoningEvent | ToolCallEvent | ToolResultEvent
HISTORY_KINDS = ("message", "reasoning", "tool.call", "tool.result")


class ThreadPage(Struct, frozen=True):
    threads: list[Thread]
    next: str | None


class HistoryPage(Struct, frozen=True):
    events: list[HistoryEvent]
    hasMore: bool


class Deleted(Struct, frozen=True):
    deleted: bool = True


class Usage(Struct, frozen=True):
    inputTokens: int
    outputTokens: int
    reasoningTokens: int
    cacheRead: int
    cacheWrite: int
    cost: float | None  # null: nobody knows the price


class RunError(Struct, frozen=True, omit_defaults=True):
    code: str
    message: str


class Run(Struct, frozen=True, kw_only=True):
    """How a run ended; of one that was only started, that it runs."""

    runId: str
    tid: str
    status: str  # running | completed | failed | aborted
    usage: Usage | UnsetType = UNSET
    error: RunError | UnsetType = UNSET


class CurrentRun(Struct, frozen=True, kw_only=True):
    runId: str
    status: str
    startedAt: str
    error: RunError | UnsetType = UNSET


class Aborted(Struct, frozen=True):
    aborted: bool


class ToolName(Struct, frozen=True):
    id: str
    name: str


class ApprovalDetails(Struct, frozen=True, omit_defaults=True):
    """Everything that will happen, whole, as any other client is shown it."""

    title: str = ""
    reason: str = ""  # which rule asks
    command: str = ""
    cwd: str = ""
    host: str = ""
    paths: tuple[str, ...] = ()
    diff: str = ""
    plan: str = ""
    notes: tuple[str, ...] = ()
    always: str = ""  # what "always" would remember; nothing where it cannot be remembered
    agentId: str = ""  # of the subagent that asks


class Approval(Struct, frozen=True, kw_only=True):
    id: str
    tid: str
    callId: str
    tool: ToolName
    input: Any
    createdAt: str | UnsetType = UNSET  # the event's envelope says when
    details: ApprovalDetails | UnsetType = UNSET


class Approvals(Struct, frozen=True):
    approvals: list[Approval]


class Decided(Struct, frozen=True):
    id: str
    decision: str


class ApprovalRule(Struct, frozen=True, kw_only=True):
    id: str
    tool: str
    pattern: str
    decision: str  # allow | deny
    scope: str  # namespace | thread | always
    createdAt: str
    expiresAt: str | UnsetType = UNSET


class ApprovalRules(Struct, frozen=True):
    rules: list[ApprovalRule]


class AgentEntry(Struct, frozen=True):
    id: str
    name: str
    description: str
    model: ModelName | UnsetType = UNSET


class Agents(Struct, frozen=True):
    agents: list[AgentEntry]


class Capabilities(Struct, frozen=True):
    reasoning: bool
    vision: bool
    tools: bool


class ModelEntry(Struct, frozen=True):
    id: str
    name: str
    capabilities: Capabilities


class ProviderEntry(Struct, frozen=True):
    id: str
    name: str
    connected: bool
    models: list[ModelEntry]


class Providers(Struct, frozen=True):
    providers: list[ProviderEntry]
    default: ModelName


class FileEntry(Struct, frozen=True):
    name: str
    path: str
    type: str  # file | directory
    ignored: bool = False
    readable: bool | UnsetType = UNSET  # only false is told: the name is shown, and cannot be asked for


class Entries(Struct, frozen=True):
    entries: list[FileEntry]


class FileText(Struct, frozen=True):
    path: str
    content: str
    mimeType: str
    encoding: str = "utf-8"  # or base64
    truncated: bool = False


class FoundPath(Struct, frozen=True):
    path: str
    type: str
    readable: bool | UnsetType = UNSET


class FoundPaths(Struct, frozen=True):
    results: list[FoundPath]


class FoundLine(Struct, frozen=True):
    path: str
    line: int
    column: int
    text: str


class FoundLines(Struct, frozen=True):
    matches: list[FoundLine]
    truncated: bool


def reference(model: ModelName) -> str:
    """As the core writes it."""
    return f"{model.provider}/{model.modelId}"


def model_name(core: str) -> ModelName:
    provider, _, model = core.partition("/")
    return ModelName(provider, model)


def iso(ms: int) -> str:
    """A time in an object: ISO 8601 in UTC."""
    return f"{_second(ms // 1000)}.{ms % 1000:03d}Z"


@lru_cache(4096)
def _second(at: int) -> str:
    """A page of threads or items has two times in each, and many of them the same second."""
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(at))
