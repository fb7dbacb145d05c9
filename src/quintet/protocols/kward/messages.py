"""Messages: a thread's items as Kward tells a conversation. What one model call said is one message. Pure.

Messages are counted over everything that was ever said; summaries of older parts are not counted, so that
`message:<n>` stays the same whatever happens later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from quintet.domain import item as it
from quintet.protocols.kward import normal

Given = dict[str, Any]
DAMAGED = "[This entry can no longer be read.]"
_SPOKEN = (it.Reasoning, it.AssistantMessage, it.ToolCall, it.Damaged)


class Message(Struct, frozen=True):
    """`role` is user, assistant, tool or compactionSummary."""

    role: str
    items: tuple[it.Item, ...]
    call: it.ToolCall | None = None  # whose result it is

    @property
    def id(self) -> str:
        """Always the same one, so that a file that is told again is the same."""
        return hashlib.sha256(self.items[0].id.encode()).hexdigest()[:16]

    @property
    def first(self) -> int:
        return self.items[0].ordinal

    @property
    def at_ms(self) -> int:
        return self.items[-1].at_ms

    @property
    def bodies(self) -> tuple[it.Body, ...]:
        return tuple(item.body for item in self.items)

    def text(self) -> str:
        """The words of it, without thoughts."""
        match self.bodies[0]:
            case it.UserMessage(parts=parts):
                return it.typed(parts) or "\n".join(part.text for part in parts if isinstance(part, it.TextPart))
            case it.ToolResult() as result:
                return normal.text_of(result)
            case it.Summary(text=text):
                return text
        return "".join(filter(None, map(_spoken, self.bodies)))

    def thoughts(self) -> list[str]:
        return [body.text for body in self.bodies if isinstance(body, it.Reasoning) and body.text]

    def calls(self) -> list[it.ToolCall]:
        return [body for body in self.bodies if isinstance(body, it.ToolCall)]

    def raw(self) -> Given:
        """As it is given to a model, and written into files."""
        match self.bodies[0]:
            case it.UserMessage(parts=parts):
                return {"role": "user", "content": content(parts)}
            case it.ToolResult(call_id=call_id) as result:
                name = normal.kward_name(result) if self.call is None else normal.kward_name(self.call)
                return {"role": "tool", "tool_call_id": call_id, "name": name, "content": normal.text_of(result)}
            case it.Summary(text=text):
                return {"role": "compactionSummary", "summary": text}
        made: Given = {"role": "assistant", "content": self.text()}
        if calls := self.calls():
            made["tool_calls"] = [normal.raw_call(call) for call in calls]
        if thoughts := self.thoughts():
            made["reasoning_summary"] = "\n\n".join(thoughts)
        return made


class Folding:
    """Items one by one, in their order; messages as they become whole."""

    def __init__(self) -> None:
        self._spoken: list[it.Item] = []
        self._calls: dict[str, it.ToolCall] = {}

    def take(self, item: it.Item) -> list[Message]:
        body = item.body
        if isinstance(body, _SPOKEN):
            before = self.end() if self._begins(item) else []
            self._spoken.append(item)
            if isinstance(body, it.ToolCall):
                self._calls[body.call_id] = body
            return before
        whole = self.end()
        match body:
            case it.ToolResult(call_id=call_id):
                return [*whole, Message("tool", (item,), self._calls.get(call_id))]
            case it.Summary():
                return [*whole, Message("compactionSummary", (item,))]
        return [*whole, Message("user", (item,))]

    def _begins(self, item: it.Item) -> bool:
        """Of what came from a file, where an answer may follow an answer: words behind words are the next one's."""
        last = self._spoken[-1].body if self._spoken else None
        words = isinstance(item.body, it.Reasoning | it.AssistantMessage)
        return not item.turn and words and isinstance(last, it.AssistantMessage | it.ToolCall)

    def end(self) -> list[Message]:
        """What was said so far is all that is said at once."""
        spoken, self._spoken = self._spoken, []
        return [Message("assistant", tuple(spoken))] if spoken else []


def messages(items: Iterable[it.Item]) -> list[Message]:
    folding = Folding()
    return [message for item in items for message in folding.take(item)] + folding.end()


def content(parts: Iterable[it.Part]) -> str | list[Given]:
    """A lone text as a string, else the parts."""
    listed = list(parts)
    if len(listed) == 1 and isinstance(listed[0], it.TextPart):
        return listed[0].text
    return [normal.part_of(part) for part in listed]


def _spoken(body: it.Body) -> str:
    match body:
        case it.AssistantMessage(text=text):
            return text
        case it.Damaged():
            return DAMAGED
    return ""
