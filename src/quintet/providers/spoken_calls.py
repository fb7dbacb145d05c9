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
_LONGEST = max(len(mark) for mark in _MARKS)
_WORDS = ("name", "function", "tool", "tool_name")
_FENCES = ("", "```", "```json", "```tool_call", "```tool_code")
_BARE_BEGINNINGS = tuple(f'{fence}{{"{word}":' for fence in _FENCES for word in _WORDS)
_BARE_NAME = re.compile(r'\s*(?:```\w*\s*)?\{\s*"(?:name|function|tool|tool_name)"\s*:\s*"([^"]*)"')
_FENCE = re.compile(r"^```(?:json|tool_call|tool_code)?\s*|\s*```$")
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)>(.*?)(?:</function>|\Z)", re.DOTALL)


class SpokenCalls:
    def __init__(self, tools: Sequence[str]) -> None:
        self._tools = frozenset(tools)
        self._held = ""
        self._mark = ""  # what is held begins with it: a call whose end has not come
        self._looked = 0  # how much of what is held has been looked through for its end
        self._whole = False  # what is held is a call and nothing else, so far
        self._just_called = False  # nothing but empty lines since the last call
        self._said = False  # something else than a call was said before
        self._quoting = Quoting()
        self._made = 0

    @property
    def found(self) -> bool:
        return self._made > 0

    def add(self, text: str) -> Sequence[Chunk]:
        plain = not self._tools or (self._said and "<" not in text and "[" not in text)
        if plain and not self._held and not self._just_called:
            self._quoting.see(text)
            return (TextChunk(text),)
        self._held += text
        return list(self._look(over=False, grown="}" in text))

    def end(self) -> Iterator[Chunk]:
        yield from self._look(over=True)

    def _look(self, *, over: bool, grown: bool = True) -> Iterator[Chunk]:
        while self._held:
            if self._just_called:  # the lines between two calls are nobody's words
                self._held = self._held.lstrip("\n")
                self._just_called = not self._held
                continue
            if not self._mark and not self._said and self._bare(over=over, grown=grown):
                if over:
                    yield from self._take(self._held)
                return
            start = 0 if self._mark else _first_mark(self._held)
            if start < 0:
                keep = 0 if over else _open_mark(self._held)
                yield from self._say(len(self._held) - keep)
                return
            yield from self._say(start)
            if not self._mark:
                self._mark = next(mark for mark in _MARKS if self._held.startswith(mark))
                self._looked = 0
                if self._quoting.open:  # somebody explains how calls are written
                    yield from self._say(len(self._mark))
                    continue
            end = self._end_of_call(over=over)
            if end < 0:
                return  # the rest of the call is still to come
            yield from self._take(self._held[:end])

    def _end_of_call(self, *, over: bool) -> int:
        closing = _MARKS[self._mark]
        place = self._held.find(closing, max(0, self._looked - len(closing))) if closing else -1
        self._looked = len(self._held)
        if place >= 0:
            return place + len(closing)
        return len(self._held) if over or len(self._held) > HELD_LIMIT else -1

    def _bare(self, *, over: bool, grown: bool) -> bool:
        """Whether what is held may be a call without any mark. It counts only if it is the whole answer."""
        named = _BARE_NAME.match(self._held)
        if len(self._held) > HELD_LIMIT or (named and named[1] not in self._tools) or not _may_be_bare(self._held):
            return False
        if over:
            return self._ours(_calls_in(self._held))
        if self._whole:  # anything more but the end of its block makes it an answer that shows a call
            return bool(_calls_in(self._held)) or self._held.rstrip().endswith("`")
        self._whole = grown and bool(_calls_in(self._held))
        return True

    def _ours(self, calls: list[tuple[str, str]]) -> bool:
        return bool(calls) and all(name in self._tools for name, _ in calls)

    def _take(self, text: str) -> Iterator[Chunk]:
        """A call if it is one that can be made, else the words it consists of."""
        calls = _calls_in(text)
        if not self._ours(calls):
            yield from self._say(len(text))
            return
        self._mark, self._held, self._just_called = "", self._held[len(text) :], True
        for name, arguments in calls:
            self._made += 1
            call_id = f"spoken_{self._made}"
            yield ToolStart(call_id, name, fed=bool(arguments))
            yield ToolInput(call_id, arguments)

    def _say(self, size: int) -> Iterator[Chunk]:
        """So many of the characters held are an answer's words."""
        if size > 0:
            text, self._held, self._mark = self._held[:size], self._held[size:], ""
            self._said = self._said or bool(text.strip())
            self._quoting.see(text)
            yield TextChunk(text)


class Quoting:
    """Whether an answer is just then quoting: in a block of code, between backticks or behind a quotation mark."""

    def __init__(self) -> None:
        self._fenced = False
        self._start = ""  # the first three characters of the line
        self._ticks = 0  # backticks in the line so far
        self._last = ""

    @property
    def open(self) -> bool:
        return self._fenced or self._start == "```" or self._ticks % 2 == 1 or self._last in ('"', "'", "`")

    def see(self, text: str) -> None:
        if "\n" in text:
            *lines, text = text.split("\n")
            for line in lines:
                self._see(line)
                self._fenced ^= self._start == "```"
                self._start, self._ticks, self._last = "", 0, ""
        self._see(text)

    def _see(self, part: str) -> None:
        if len(self._start) < 3:
            self._start = (self._start + part).lstrip()[:3]
        if "`" in part:
            self._ticks += part.count("`")
        if part:
            self._last = part[-1]


def _first_mark(text: str) -> int:
    found = [place for mark in _MARKS if (place := text.find(mark)) >= 0]
    return min(found, default=-1)


def _open_mark(text: str) -> int:
    """How many of the last characters could be the beginning of a mark."""
    for size in range(min(len(text), _LONGEST - 1), 0, -1):
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
    inner = _FENCE.sub("", inner)
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
