"""Every published example parses as what we answer with, and comes out again as it went in; every published route and
event kind is there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from quintet.protocols.knp import models as knp
from quintet.protocols.knp.approvals import Word
from quintet.protocols.knp.errors import ErrorAnswer
from quintet.protocols.knp.frames import Envelope
from quintet.protocols.knp.health import Health
from quintet.protocols.knp.kinds import EVENT_KINDS
from quintet.protocols.knp.runs import NewRun
from quintet.protocols.knp.server import TABLE
from quintet.protocols.knp.threads import Fork, NewThread, ThreadPatch

MODEL = {"provider": "anthropic", "modelId": "claude-sonnet-4-20250514"}
THREAD = {
    "tid": "thr_01ABC...",
    "namespace": "default",
    "title": "Help with auth",
    "agentId": "coder",
    "model": MODEL,
    "state": "idle",
    "parentTaskId": None,
    "createdAt": "2025-01-12T10:00:00Z",
    "updatedAt": "2025-01-12T10:05:00Z",
    "metadata": {},
}
MESSAGE = {
    "id": "evt_01ABC...",
    "tid": "thr_01ABC...",
    "seq": 1,
    "kind": "message",
    "role": "user",
    "content": [{"kind": "text", "text": "Help me with auth"}],
    "timestamp": "2025-01-12T10:00:00Z",
    "metadata": {},
}
ANSWERED = {
    **MESSAGE,
    "id": "evt_02DEF...",
    "seq": 2,
    "role": "assistant",
    "content": [{"kind": "text", "text": "I'll help you..."}],
    "metadata": {"parentSeq": 1},
}
CALL = {
    "id": "evt_03GHI...",
    "tid": "thr_01ABC...",
    "seq": 3,
    "kind": "tool.call",
    "callId": "call_xyz",
    "toolId": "read_file",
    "arguments": '{"path": "src/auth.ts"}',
    "state": "completed",
    "timestamp": "2025-01-12T10:00:06Z",
    "metadata": {"parentSeq": 1},
}
ENVELOPE = {
    "seq": 123,
    "id": "evt_01ABC...",
    "scope": "namespace",
    "namespace": "default",
    "kind": "event.kind",
    "data": {},
    "timestamp": 1736683070123,
}
RUN = {
    "runId": "run_01ABC...",
    "tid": "thr_01ABC...",
    "status": "completed",
    "usage": {
        "inputTokens": 1500,
        "outputTokens": 800,
        "reasoningTokens": 0,
        "cacheRead": 1000,
        "cacheWrite": 500,
        "cost": 0.015,
    },
}
APPROVAL = {
    "id": "apr_01ABC...",
    "tid": "thr_01ABC...",
    "callId": "call_xyz",
    "tool": {"id": "bash", "name": "Execute Command"},
    "input": {"command": "rm -rf node_modules"},
    "createdAt": "2025-01-12T10:00:00Z",
}
AGENTS = [
    {"id": "coder", "name": "Coder", "description": "General coding assistant", "model": MODEL},
    {"id": "planner", "name": "Planner", "description": "Read-only planning agent"},
]
SONNET = {
    "id": "claude-sonnet-4-20250514",
    "name": "Claude Sonnet 4",
    "capabilities": {"reasoning": False, "vision": True, "tools": True},
}
PROVIDER = {"id": "anthropic", "name": "Anthropic", "connected": True, "models": [SONNET]}
ENTRIES = [
    {"name": "index.ts", "path": "/src/index.ts", "type": "file"},
    {"name": "utils", "path": "/src/utils", "type": "directory"},
]
ANSWERS: list[tuple[Any, dict[str, Any]]] = [
    (Health, {"ok": True, "version": "1.0.0", "protocol": {"id": "knp", "version": "0.1"}}),
    (Envelope, ENVELOPE),
    (knp.ThreadPage, {"threads": [THREAD], "next": "cursor_xyz..."}),
    (knp.Thread, THREAD),
    (knp.Thread, {**THREAD, "history": [MESSAGE]}),
    (knp.HistoryPage, {"events": [MESSAGE, ANSWERED, CALL], "hasMore": False}),
    (knp.Run, RUN),
    (knp.Aborted, {"aborted": True}),
    (knp.CurrentRun, {"runId": "run_01ABC...", "status": "running", "startedAt": "2025-01-12T10:00:00Z"}),
    (knp.Approvals, {"approvals": [APPROVAL]}),
    (knp.Agents, {"agents": AGENTS}),
    (knp.Providers, {"providers": [PROVIDER], "default": MODEL}),
    (ErrorAnswer, {"error": {"code": "not_found", "message": "Thread not found"}}),
]
# Ours add keys to these; what is published of them is kept.
WIDER: list[tuple[Any, dict[str, Any]]] = [
    (knp.Entries, {"entries": ENTRIES}),
    (
        knp.FileText,
        {"path": "/src/index.ts", "content": "export function main() { ... }", "mimeType": "text/typescript"},
    ),
]
BODIES: list[tuple[Any, dict[str, Any]]] = [
    (
        NewThread,
        {
            "agentId": "coder",
            "namespace": "default",
            "title": "Optional title",
            "model": MODEL,
            "context": {},
            "metadata": {},
        },
    ),
    (ThreadPatch, {"title": "New title", "metadata": {"archived": True}}),
    (Fork, {"afterSeq": 5, "title": "Forked thread"}),
    (
        NewRun,
        {
            "input": [
                {"kind": "text", "text": "Help me implement login"},
                {"kind": "file", "uri": "file:///path/to/file.ts", "mimeType": "text/plain"},
            ],
            "agentId": "coder",
            "model": MODEL,
        },
    ),
    (Word, {"decision": "allow", "message": "Optional explanation if denied"}),
]
ROUTES = """
GET /health, GET /events, GET /threads, POST /threads, GET /threads/{tid}, PATCH /threads/{tid}, DELETE /threads/{tid},
POST /threads/{tid}/fork, GET /threads/{tid}/events, POST /threads/{tid}/runs, POST /threads/{tid}/runs/abort,
GET /threads/{tid}/runs/current, GET /approvals, POST /approvals/{id}, GET /agents, GET /providers, GET /files,
GET /files/content, GET /files/search, GET /files/grep
"""
KINDS = """
connected heartbeat thread.created thread.updated thread.deleted thread.start thread.stop
model.call.start model.call.end
text.start text.delta text.end reasoning.start reasoning.delta reasoning.end tool.start tool.input.delta tool.input.end
tool.result approval.requested approval.resolved event.created event.updated run.started run.finished
file.watcher.updated vcs.branch.updated lsp.updated lsp.diagnostics project.updated pty.created pty.updated pty.exited
pty.deleted todo.updated thread.diff.updated mcp.tools.changed
"""


@pytest.mark.parametrize(("kind", "example"), ANSWERS, ids=lambda given: getattr(given, "__name__", ""))
def test_a_published_answer_comes_out_as_it_went_in(kind: Any, example: dict[str, Any]) -> None:
    made = msgspec.json.decode(msgspec.json.encode(example), type=kind)
    assert msgspec.json.decode(msgspec.json.encode(made)) == example


@pytest.mark.parametrize(("kind", "example"), WIDER, ids=lambda given: getattr(given, "__name__", ""))
def test_a_published_answer_with_keys_of_ours_keeps_its_own(kind: Any, example: dict[str, Any]) -> None:
    made = msgspec.json.decode(msgspec.json.encode(msgspec.convert(example, kind)))
    if "entries" in example:
        assert [{k: v for k, v in e.items() if k != "ignored"} for e in made["entries"]] == example["entries"]
    else:
        assert made | example == made


@pytest.mark.parametrize(("kind", "example"), BODIES, ids=lambda given: getattr(given, "__name__", ""))
def test_a_published_body_is_taken(kind: Any, example: dict[str, Any]) -> None:
    made = msgspec.json.decode(msgspec.json.encode(example), type=kind)
    assert _without_more(msgspec.json.decode(msgspec.json.encode(made)), example) == example


def _without_more(kept: Any, example: Any) -> Any:
    """What was kept of an example, without what stands for fields it leaves out."""
    if isinstance(example, dict):
        return {name: _without_more(kept[name], value) for name, value in example.items()}
    if isinstance(example, list):
        return [_without_more(one, value) for one, value in zip(kept, example, strict=True)]
    return kept


def test_every_published_route_is_served() -> None:
    assert set(ROUTES.replace("\n", " ").strip().split(", ")) <= {row.name.strip() for row in TABLE} | {""}


def test_every_published_kind_of_event_is_known() -> None:
    assert set(KINDS.split()) <= {kind.name for kind in EVENT_KINDS}
