"""The lines of a session file: what happened in a thread, told as records, resumable behind what a file holds. Pure.

Records have ids and name the one before, so that a reader who follows them and one who reads line by line see the same.
A file that somebody began without ids goes on without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from quintet.domain import event as ev
from quintet.domain.item import ToolResult
from quintet.domain.memory import Layer, Recall
from quintet.domain.thread import Thread
from quintet.domain.view import ViewReason
from quintet.protocols.kward import normal
from quintet.protocols.kward.messages import Folding, Message
from quintet.protocols.kward.times import iso

Given = dict[str, Any]
VERSION = 2
_END = 1 << 62  # behind every item


class Ancestry(msgspec.Struct, frozen=True):
    parent_id: str = ""
    parent_path: str = ""


def line(record: Given) -> bytes:
    return msgspec.json.encode(record) + b"\n"


def header(thread: Thread, persistent_id: str, above: Ancestry) -> Given:
    made: Given = {
        "type": "session",
        "version": VERSION,
        "id": persistent_id,
        "timestamp": iso(thread.created_ms),
        "cwd": thread.settings.cwd,
    }
    if above.parent_id:
        made["parentId"] = above.parent_id
    if above.parent_path:
        made["parentPath"] = above.parent_path
    return made


class Known(msgspec.Struct, frozen=True):
    """Of the whole thread, where a change of view needs it."""

    messages: tuple[Message, ...] = ()
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()

    def at_or_after(self, ordinal: int) -> str:
        return next((m.id for m in self.messages if m.items[-1].ordinal >= ordinal and _counted(m)), "")

    def at_or_before(self, ordinal: int) -> str:
        return next((m.id for m in reversed(self.messages) if m.first <= ordinal and _counted(m)), "")


def _counted(message: Message) -> bool:
    return message.role != "compactionSummary"


class Lines:
    """What belongs behind `before`."""

    def __init__(self, before: bytes, known: Known) -> None:
        self._folding = Folding()
        self._known = known
        self._lines: list[bytes] = []
        self._summary: Message | None = None  # of the change of view that follows
        self._tokens: dict[str, int] = {}  # by summary: how large the thread was before it
        self._last, self._with_ids = _last_record(before)

    def begin(self, head: Given) -> None:
        self._lines.append(line(head))

    def of(self, thread: Thread, events: Sequence[ev.Event]) -> bytes:
        own = [event for event in events if event.thread == thread.id]
        finished = [e.payload for e in own if isinstance(e.payload, ev.CompactionFinished)]
        self._tokens = {said.summary_item: said.tokens_before for said in finished}
        for event in own:
            self._take(event)
        self._messages(self._folding.end())
        return b"".join(self._lines)

    def _take(self, event: ev.Event) -> None:
        match event.payload:
            case ev.ItemAdded(item=item):
                self._messages(self._folding.take(item))
            case ev.ViewChanged() as change:
                self._messages(self._folding.end())
                self._view(event, change)
            case ev.ThreadCreated(thread=Thread(title_final=True, title=title)):
                self._name(event, title)
            case ev.ThreadUpdated(title=title, title_final=final) if final is not None:
                self._name(event, (title or "") if final else "")
            case ev.MemoryRecalled(recall=recall):
                self._lines.append(line(_memory_state(event, recall)))
            case ev.StepFinished() | ev.TurnFinished():
                self._messages(self._folding.end())

    def _name(self, event: ev.Event, name: str) -> None:
        self._lines.append(line({"type": "session_info", "timestamp": iso(event.at_ms), "name": name or None}))

    def _messages(self, whole: Sequence[Message]) -> None:
        for message in whole:
            if message.role == "compactionSummary":
                self._summary = message
                continue
            self._record("message", message.id, message.at_ms, message.raw())
            if message.role == "tool":
                self._lines.append(line(_execution(message)))

    def _record(self, kind: str, id: str, at_ms: int, message: Given) -> None:
        made: Given = {"type": kind}
        if self._with_ids:
            made |= {"id": id, "parentId": self._last or None}
            self._last = id
        self._lines.append(line(made | {"timestamp": iso(at_ms), "message": message}))

    def _view(self, event: ev.Event, change: ev.ViewChanged) -> None:
        if change.reason is ViewReason.COMPACTION:
            if (summary := self._summary) is not None:
                self._record("compaction", summary.id, event.at_ms, self._compaction(summary, change))
            return
        # What is hidden stays in the file; the conversation goes on behind the record that is named here.
        if self._with_ids:
            last = {ViewReason.REVERT: change.keep_through, ViewReason.UNREVERT: _END}.get(change.reason, 0)
            self._last = self._known.at_or_before(last)
            self._lines.append(line({"type": "leaf", "timestamp": iso(event.at_ms), "targetId": self._last or None}))

    def _compaction(self, summary: Message, change: ev.ViewChanged) -> Given:
        return {
            "role": "compactionSummary",
            "summary": summary.text(),
            "first_kept_entry_id": self._known.at_or_after(change.first_kept) or None,
            "tokens_before": self._tokens.get(summary.items[0].id, 0),
            "from_hook": False,
            "details": {
                "read_files": list(self._known.read_files),
                "modified_files": list(self._known.modified_files),
            },
        }


def _memory_state(event: ev.Event, recall: Recall) -> Given:
    """By id: a text in this file could not be forgotten."""
    chosen = {layer.value: [{"id": m.id} for m in recall.memories if m.layer is layer] for layer in Layer}
    reasons = msgspec.to_builtins(recall.memories)
    found: Given = {"enabled": True, "scopes": list(recall.scopes), **chosen, "reasons": reasons}
    return {"type": "memory_state", "timestamp": iso(event.at_ms), "sessionMemories": [], "lastRetrieval": found}


def _execution(message: Message) -> Given:
    (result,) = message.bodies
    assert isinstance(result, ToolResult)
    call = message.call
    told = normal.result_of(result, call)
    return {
        "type": "tool_execution_end",
        "timestamp": iso(message.at_ms),
        "toolCallId": result.call_id,
        "toolName": normal.name_of(call) if call else normal.tool_name(result.name),
        "args": normal.arguments_of(call) if call else {},
        "result": msgspec.to_builtins(told),
        "isError": told.is_error,
    }


def _last_record(before: bytes) -> tuple[str, bool]:
    """The id of the record that the next one follows, and whether records of this file have ids."""
    for text in reversed(before.split(b"\n")):
        try:
            record: Any = msgspec.json.decode(text) if text.strip() else {}
        except msgspec.DecodeError:
            continue
        kind = record.get("type") if isinstance(record, dict) else ""
        if kind == "leaf":
            return str(record.get("targetId") or ""), True
        if kind in ("message", "compaction", "branch_summary"):
            return str(record.get("id") or ""), bool(record.get("id"))
    return "", True
