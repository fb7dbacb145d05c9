"""The conversation as clients draw it: each message in one form, thoughts before words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from quintet.domain import item as it
from quintet.domain.thread import Thread
from quintet.protocols.kward import normal
from quintet.protocols.kward.messages import Message, messages

Given = dict[str, Any]
CUT_OFF = "The answer was cut off."


def live(thread: Thread, items: Iterable[it.Item]) -> list[Message]:
    """What the model still reads, in the order it reads it: after a compaction its summary comes first."""
    known = {item.ordinal: item for item in items}
    return messages(known[n] for n in thread.view.model_ordinals(thread.last_ordinal) if n in known)


def whole(thread: Thread, items: Iterable[it.Item]) -> list[Message]:
    """Everything that was ever said and not taken back, in the order it was said."""
    return messages(item for item in items if not thread.view.is_hidden(item.ordinal))


def counted(told: Iterable[Message]) -> list[Message]:
    """Those that `message:<n>` counts: all but summaries."""
    return [message for message in told if message.role != "compactionSummary"]


def normalized(message: Message) -> Given:
    match message.role:
        case "user":
            return {"role": "user", "content": _parts(message.bodies[0])}
        case "tool":
            return _result(message)
        case "compactionSummary":
            return {"role": "compactionSummary", "summary": message.text()}
    return _assistant(message)


def _parts(body: it.Body) -> list[Given]:
    assert isinstance(body, it.UserMessage)
    return [normal.part_of(part) for part in it.as_typed(body.parts)]


def _assistant(message: Message) -> Given:
    thoughts = [{"type": "thinking", "thinking": words} for words in message.thoughts()]
    words = [_text(message.text())] if message.text() else []
    calls = [
        {
            "type": "toolCall",
            "id": call.call_id,
            "name": normal.name_of(call),
            "arguments": normal.arguments_of(call, timeout="timeoutSeconds"),
        }
        for call in message.calls()
    ]
    made: Given = {"role": "assistant", "content": [*thoughts, *words, *calls]}
    partial = any(getattr(body, "partial", False) for body in message.bodies)
    return made | {"errorMessage": CUT_OFF} if partial else made


def _result(message: Message) -> Given:
    (result,) = message.bodies
    assert isinstance(result, it.ToolResult)
    told = normal.result_of(result, message.call)
    made: Given = {
        "role": "toolResult",
        "toolCallId": result.call_id,
        "toolName": normal.name_of(message.call) if message.call else normal.tool_name(result.name),
        "isError": told.is_error,
        "content": [_text(told.content), *told.images],
    }
    details = {"diff": told.diff, "changedFiles": told.changed_files}
    details = {name: value for name, value in details.items() if value is not UNSET}
    return made | {"details": details} if details else made


def _text(words: str) -> Given:
    return {"type": "text", "text": words}
