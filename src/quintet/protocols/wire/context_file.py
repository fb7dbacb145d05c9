"""context.jsonl: what the model has been given, as lines with a role. Resumable; pure.

A checkpoint stands before each input and each step. A view that changed begins the file anew with what the model
reads from then on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from quintet.domain import event as ev
from quintet.domain import item as it
from quintet.domain.thread import Thread
from quintet.domain.view import ViewReason
from quintet.engine.agents import INSTRUCTIONS
from quintet.engine.mirrors import Told
from quintet.protocols.wire.mirror import Happened, line
from quintet.protocols.wire.names import Names
from quintet.protocols.wire.parts import wire_part

SYSTEM_PROMPT = line({"role": "_system_prompt", "content": INSTRUCTIONS})
_CHECKPOINT = re.compile(rb'^\s*\{\s*"role"\s*:\s*"_checkpoint"\s*,\s*"id"\s*:\s*(\d{1,9})\s*\}', re.MULTILINE)


def told(thread: Thread, names: Names, since: Happened, before: bytes, items: Sequence[it.Item]) -> list[Told]:
    """`items` are all of the thread's; they are needed where its view has changed."""
    at = max((n for n, e in enumerate(since.events) if _changes_view(e, thread)), default=None)
    if at is None:
        return [Told(_whole(before, _Lines(names, _next(before)).of(thread, since.events)), since.through)]
    earlier, change, later = since.events[:at], since.events[at], since.events[at + 1 :]
    old = Told(_whole(before, _Lines(names, _next(before)).of(thread, earlier)), change.seq)
    after_it = _Lines(names)
    assert isinstance(change.payload, ev.ViewChanged)
    if change.payload.reason is not ViewReason.CLEAR:
        for item in _read_then(thread, items, [*later, *since.under_way]):
            after_it.item(item.body)
    return [old, Told(SYSTEM_PROMPT + after_it.of(thread, later), since.through)]


def _next(before: bytes) -> int:
    """The number of the next checkpoint."""
    numbers = [int(found) for found in _CHECKPOINT.findall(before)]
    return numbers[-1] + 1 if numbers else 0


def _whole(before: bytes, lines: bytes) -> bytes:
    return SYSTEM_PROMPT + lines if lines and not before else lines


def _changes_view(event: ev.Event, thread: Thread) -> bool:
    return isinstance(event.payload, ev.ViewChanged) and event.thread == thread.id


def _read_then(thread: Thread, items: Sequence[it.Item], later: Sequence[ev.Event]) -> list[it.Item]:
    """What the model would have read just after the view changed."""
    added = [e.payload.item.ordinal for e in later if isinstance(e.payload, ev.ItemAdded) and e.thread == thread.id]
    last = min(added, default=thread.last_ordinal + 1) - 1
    known = {item.ordinal: item for item in items}
    return [known[n] for n in thread.view.model_ordinals(thread.last_ordinal) if n <= last and n in known]


class _Lines:
    def __init__(self, names: Names, checkpoints: int = 0) -> None:
        self._names = names
        self._checkpoints = checkpoints
        self._lines: list[bytes] = []
        self._said: list[dict[str, Any]] = []  # by the model, in the step under way
        self._calls: list[dict[str, Any]] = []
        self._results: list[bytes] = []  # of calls that were done before the step was
        self._in_step = False

    def of(self, thread: Thread, events: Sequence[ev.Event]) -> bytes:
        for event in events:
            if event.thread == thread.id:
                self._take(event.payload)
        self._flush()
        return b"".join(self._lines)

    def _take(self, said: object) -> None:
        match said:
            case ev.TurnStarted():
                self._flush()
                self._checkpoint()
            case ev.StepStarted(number=number) if number:
                self._flush()
                self._in_step = True
                self._checkpoint()
            case ev.StepFinished(number=number, usage=usage) if number:
                results, self._results = self._results, []
                self._flush()
                if usage is not None and usage.input_tokens is not None:
                    count = usage.input_tokens + (usage.output_tokens or 0)
                    self._lines.append(line({"role": "_usage", "token_count": count}))
                self._lines += results
                self._in_step = False
            case ev.ItemAdded(item=item):
                self.item(item.body)

    def item(self, body: it.Body) -> None:
        match body:
            case it.Reasoning(text=text) if text:
                self._said.append({"type": "think", "think": text, "encrypted": None})
            case it.AssistantMessage(sent=it.MediaPart() as part):
                self._said.append(msgspec.to_builtins(wire_part(part)))
            case it.AssistantMessage(text=text) if text:
                self._said.append({"type": "text", "text": text})
            case it.ToolCall(call_id=call, name=name, input=given):
                shown, arguments = self._names.call(name, given)
                function = {"name": shown, "arguments": arguments}
                self._calls.append({"type": "function", "id": call, "function": function})
            case it.ToolResult(call_id=call, text=text, images=images):
                content = _content([it.TextPart(text), *images])
                result = line({"role": "tool", "content": content, "tool_call_id": call})
                if self._in_step:
                    self._results.append(result)
                else:
                    self._flush()
                    self._lines.append(result)
            case it.UserMessage(parts=parts, notice=notice):
                self._flush()
                # Nobody has said a notice, and clients count the lines of the person to find a turn.
                self._lines.append(line({"role": "system" if notice else "user", "content": _content(parts)}))
            case it.Summary(text=text):
                self._flush()
                self._lines.append(line({"role": "user", "content": text}))

    def _checkpoint(self) -> None:
        self._lines.append(line({"role": "_checkpoint", "id": self._checkpoints}))
        self._checkpoints += 1

    def _flush(self) -> None:
        """What the model said, in one line; then results that came with it."""
        if self._said or self._calls:
            message: dict[str, Any] = {"role": "assistant", "content": self._said}
            if self._calls:
                message["tool_calls"] = self._calls
            self._lines.append(line(message))
        self._lines += self._results
        self._said, self._calls, self._results = [], [], []


def _content(parts: Sequence[it.Part]) -> str | list[Any]:
    if len(parts) == 1 and isinstance(parts[0], it.TextPart):
        return parts[0].text
    return [msgspec.to_builtins(wire_part(part)) for part in parts]
