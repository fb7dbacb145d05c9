"""Dialect: how one kind of model server is spoken to. Pure: a request becomes a body, events become chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from quintet.domain.errors import ProviderFailed
from quintet.domain.item import ImagePart, Item, ResultStatus, TextPart, ToolResult
from quintet.domain.model import Chunk, ModelRequest
from quintet.providers.settings import ModelSettings


class BrokenStream(ValueError):
    """The server sent something that is not its own language."""


class Parser(Protocol):
    """One answer. Fed with events in order; `finished` once the server has said that it is over."""

    @property
    def finished(self) -> bool: ...

    def event(self, name: str, data: bytes) -> Iterable[Chunk]: ...
    def end(self) -> Iterable[Chunk]:
        """The stream has ended; what was held back, and how it ended if that was never said."""


class Dialect(Protocol):
    path: str  # below the base URL

    def headers(self, key: str) -> dict[str, str]: ...
    def body(self, request: ModelRequest, model: ModelSettings) -> dict[str, Any]: ...
    def parser(self, request: ModelRequest) -> Parser: ...


def decoded(data: bytes) -> dict[str, Any]:
    """An event's JSON object. Untyped on purpose: servers leave out, add and mistype fields, and most of it is fine."""
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise BrokenStream(f"an event that is not JSON ({error})") from error
    if type(value) is not dict:
        raise BrokenStream("an event that is not a JSON object")
    return value


def refuse(error: Any) -> ProviderFailed:
    """An error the server reports inside its stream."""
    said = error.get("message", "") if isinstance(error, dict) else error
    kind = error.get("type") or error.get("code") or "" if isinstance(error, dict) else ""
    words = f"The model server reported an error: {str(said or kind or 'no reason given')[:500]}"
    return ProviderFailed(words.rstrip(".") + ".", reason=str(kind)[:100] or "error")


def text_of_parts(parts: Sequence[TextPart | ImagePart]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def result_text(result: ToolResult) -> str:
    """What the model reads of a call's result. An error says so in words: not every wire has a field for it."""
    text = result.text or "(no output)"
    return text if result.status is ResultStatus.OK else f"[{result.status}] {text}"


def count(value: Any) -> int | None:
    """A number of tokens as a server reports it; nothing sensible is nothing."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def groups(items: Sequence[Item]) -> list[list[Item]]:
    """Items in runs that one message of a wire can carry: what the model said, results, a user's words."""
    runs: list[list[Item]] = []
    for item in items:
        if runs and side(runs[-1][-1]) == side(item):
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def side(item: Item) -> str:
    name = type(item.body).__name__
    if name in ("AssistantMessage", "Reasoning", "ToolCall"):
        return "model"
    return "result" if name == "ToolResult" else "user"
