"""Tool calls that a local model says as text, because its server does not know its way of calling. Found and turned
into real calls; everything else passes through untouched, and at once unless it could be the beginning of one.

Only names that were really offered count: an answer that explains such a call stays an answer. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintet.domain.model import Chunk, TextChunk, ToolInput, ToolStart

HELD_LIMIT = 200_000  # characters: no call is longer, an answer may be
# How a call begins, and how it ends; without an end it lasts until the answer does.
_MARKS = {
    "<tool_call>": "</tool_call>",
    "<function=": "</function>",
    "[TOOL_CALLS]": "",
    "<|python_tag|>": "",
}
_BARE = re.compile(r'\s*(?:```(?:json|tool_call|tool_code)?\s*)?\{\s*"(?:name|function|tool|tool_name)"\s*:')
_BARE_BEGINNINGS = tuple(
    f'{fence}{{"{word}":'
    for fence in ("", "```", "```json", "```tool_call", "```tool_code")
    for word in ("name", "function", "tool", "tool_name")
)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)>(.*?)(?:</function>|\Z)", re.DOTALL)


class SpokenCalls:
    def __init__(self, tools: Sequence[str]) -> None:
        self._tools = frozenset(tools)
        self._held = ""
        self._said = False  # something else than a call was said before
        self._made = 0

    @property
    def found(self) -> bool:
        return self._made > 0

    def add(self, text: str) -> Iterator[Chunk]:
        if not self._tools:
            yield TextChunk(text)
            return
        if not self._held and self._said and "<" not in text and "[" not in text:
            yield TextChunk(text)
            return
        self._held += text
        yield from self._look(over=False)

    def end(self) -> Iterator[Chunk]:
        yield from self._look(over=True)

    def _look(self, *, over: bool) -> Iterator[Chunk]:
        while self._held:
            start = _first_mark(self._held)
            if start < 0:
                yield from self._plain(over=over)
                return
            if start:
                yield from self._say(self._held[:start])
                self._held = self._held[start:]
            end = self._end_of_call(over=over)
            if end < 0:
                return  # the rest of the call is still to come
            call, self._held = self._held[:end], self._held[end:]
            calls = _calls_in(call)
            if calls and all(name in self._tools for name, _ in calls):
                yield from self._call(calls)
                self._held = self._held.lstrip("\n")
            else:
                yield from self._say(call)

    def _end_of_call(self, *, over: bool) -> int:
        mark = next(mark for mark in _MARKS if self._held.startswith(mark))
        closing = _MARKS[mark]
        place = self._held.find(closing) if closing else -1
        if place >= 0:
            return place + len(closing)
        return len(self._held) if over or len(self._held) > HELD_LIMIT else -1

    def _plain(self, *, over: bool) -> Iterator[Chunk]:
        """No mark in it. A bare JSON object counts only if it is the whole answer."""
        if not self._said and not over and len(self._held) < HELD_LIMIT and _may_be_bare(self._held):
            return
        if over and not self._said and _BARE.match(self._held):
            calls = _calls_in(self._held)
            if calls and all(name in self._tools for name, _ in calls):
                self._held = ""
                yield from self._call(calls)
                return
        keep = 0 if over else _open_mark(self._held)
        cut = len(self._held) - keep
        if cut:
            yield from self._say(self._held[:cut])
            self._held = self._held[cut:]

    def _say(self, text: str) -> Iterator[Chunk]:
        if text:
            self._said = self._said or bool(text.strip())
            yield TextChunk(text)

    def _call(self, calls: list[tuple[str, str]]) -> Iterator[Chunk]:
        for name, arguments in calls:
            self._made += 1
            call_id = f"spoken_{self._made}"
            yield ToolStart(call_id, name)
            yield ToolInput(call_id, arguments)


def _first_mark(text: str) -> int:
    found = [place for mark in _MARKS if (place := text.find(mark)) >= 0]
    return min(found, default=-1)


def _open_mark(text: str) -> int:
    """How many of the last characters could be the beginning of a mark."""
    for size in range(min(len(text), 14), 0, -1):
        if any(mark.startswith(text[-size:]) and len(mark) > size for mark in _MARKS):
            return size
    return 0


def _may_be_bare(text: str) -> bool:
    tight = re.sub(r"\s+", "", text[:200])
    return not tight or any(b.startswith(tight) or tight.startswith(b) for b in _BARE_BEGINNINGS)


def _calls_in(text: str) -> list[tuple[str, str]]:
    """(name, arguments as JSON text) of every call in it; nothing when it is not wholly understood."""
    inner = text.strip()
    for mark, closing in _MARKS.items():
        if mark != "<function=":
            inner = inner.removeprefix(mark).removesuffix(closing).strip()
    inner = re.sub(r"^```(?:json|tool_call|tool_code)?\s*|\s*```$", "", inner)
    if inner.startswith("<function="):
        return [_function(name, body) for name, body in _FUNCTION.findall(inner)]
    try:
        value = msgspec.json.decode(inner)
    except msgspec.DecodeError:
        return []
    found = [_named(entry) for entry in (value if isinstance(value, list) else [value])]
    return [call for call in found if call is not None] if all(found) else []


def _function(name: str, body: str) -> tuple[str, str]:
    given = _PARAMETER.findall(body)
    if given or not body.strip():
        return name, msgspec.json.encode({key: _value(text) for key, text in given}).decode()
    return name, body.strip()


def _value(text: str) -> Any:
    """A parameter between tags is text, unless it is plainly a number, a truth value, a list or an object."""
    if re.fullmatch(r"-?\d+(\.\d+)?|true|false|null|\[.*\]|\{.*\}", text.strip(), re.DOTALL):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    return text


def _named(entry: Any) -> tuple[str, str] | None:
    if not isinstance(entry, dict):
        return None
    function = entry.get("function")
    if isinstance(function, dict):
        entry = function
    name = entry.get("name") or entry.get("tool") or entry.get("tool_name") or entry.get("function")
    arguments: Any = next((entry[k] for k in ("arguments", "parameters", "input", "args") if k in entry), {})
    if not isinstance(name, str):
        return None
    if isinstance(arguments, str):
        return name, arguments or "{}"
    return (name, msgspec.json.encode(arguments).decode()) if isinstance(arguments, dict) else None
