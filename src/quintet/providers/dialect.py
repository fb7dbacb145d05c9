"""Dialect: how one kind of model server is spoken to. Pure: a request becomes a body, events become chunks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

import msgspec

from quintet.domain.item import Item, Media, MediaKind, Part, Reasoning, ResultStatus, TextPart, ToolResult
from quintet.domain.model import Chunk, ModelInfo, ModelRequest, TextChunk

# Says nothing, but ends what is being thought: the next thought is an item of its own, with its own signature.
THOUGHT_ENDS = TextChunk("")
NAME_AT_MOST = 200  # characters of what a server calls its answer
# One of them, several, and what a model takes none of.
_NOUNS = {
    MediaKind.IMAGE: ("image", "images", "images"),
    MediaKind.AUDIO: ("recording", "recordings", "sound"),
    MediaKind.VIDEO: ("video", "videos", "videos"),
}


class BrokenStream(ValueError):
    """The server sent something that is not its own language."""


class ServerError(Exception):
    """An error the server reports inside its stream."""

    def __init__(self, kind: str, said: str) -> None:
        super().__init__(said)
        self.kind = kind
        self.said = said


class Parser(Protocol):
    """One answer. Fed with events in order."""

    @property
    def finished(self) -> bool:
        """The server has said that it is over; whatever else it might send does not matter."""

    @property
    def whole(self) -> bool:
        """The answer is complete, only counts may be missing: a connection that breaks now has broken nothing."""

    def event(self, name: str, data: bytes) -> Iterable[Chunk]: ...
    def end(self) -> Iterable[Chunk]:
        """The stream has ended; what was held back, and how it ended if that was never said."""


class Dialect(Protocol):
    path: str  # below the base URL

    def headers(self, key: str) -> dict[str, str]: ...
    def body(self, request: ModelRequest, model: ModelInfo) -> dict[str, Any]: ...
    def parser(self, request: ModelRequest) -> Parser: ...


def decoded(data: bytes) -> dict[str, Any]:
    """An event's JSON object. Untyped on purpose: servers leave out, add and mistype fields, and most of it is fine."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BrokenStream(f"an event that is not JSON ({error})") from error
    if type(value) is not dict:
        raise BrokenStream("an event that is not a JSON object")
    return value


def refuse(error: Any) -> ServerError:
    """An error as the server reported it, in whichever of the usual shapes."""
    if not isinstance(error, dict):
        return ServerError("", str(error or ""))
    kind = error.get("type") if error.get("type") not in (None, "", "error") else error.get("code")
    return ServerError(str(kind or "")[:100], str(error.get("message") or kind or ""))


def text_of_parts(parts: Sequence[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def left_out(parts: Sequence[Media]) -> str:
    """What a model is told instead of what it does not take; nothing where there is nothing of the kind."""
    told = []
    for kind, (one, many, what) in _NOUNS.items():
        if count := sum(part.kind is kind for part in parts):
            told.append(f"[{count} {one if count == 1 else many} left out: this model takes no {what}]")
    return "\n".join(told)


def result_text(result: ToolResult, refused: Sequence[Media]) -> str:
    """What the model reads of a call's result. An error says so in words: not every wire has a field for it."""
    text = result.text or "(no output)"
    if refused:
        text += f"\n{left_out(refused)}"
    return text if result.status is ResultStatus.OK else f"[{result.status}] {text}"


def summary_text(text: str) -> str:
    return f"[Summary of the conversation until here]\n{text}"


def count(value: Any) -> int | None:
    """A number of tokens as a server reports it; nothing sensible is nothing."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15 else None


def named(value: Any) -> str:
    """The server's own name for its answer; nothing sensible is nothing."""
    return value if isinstance(value, str) and len(value) <= NAME_AT_MOST else ""


def unique_id(given: str, taken: Collection[str]) -> str:
    """The id of a call, changed if the server has used it before in this answer: pieces are put together by it."""
    made, number = given, 2
    while made in taken:
        made, number = f"{given}_{number}", number + 1
    return made


def groups(items: Sequence[Item]) -> list[list[Item]]:
    """Items in runs that one message of a wire can carry: what the model said, results, a user's words."""
    runs: list[list[Item]] = []
    for item in items:
        if runs and side(runs[-1][-1]) == side(item):
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def without_last_thought(run: list[Item]) -> list[Item]:
    """Thoughts that nothing came of, since the answer was cut off: wires refuse thinking that nothing follows."""
    end = len(run)
    while end and isinstance(run[end - 1].body, Reasoning):
        end -= 1
    return run[:end]


def side(item: Item) -> str:
    name = type(item.body).__name__
    if name in ("AssistantMessage", "Reasoning", "ToolCall"):
        return "model"
    return "result" if name == "ToolResult" else "user"
