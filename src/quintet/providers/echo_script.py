"""Echo script: Kimi's line language for one answer of a scripted model, as chunks. Pure: no files, no clock.

Lines are `kind: payload`, kinds in any case; blank lines, comments, code fences and a lone `echo` are skipped.

    text: Hello        one piece of the answer (think: one of reasoning); one blank behind the colon and a pair of
                       quotes around everything are dropped
    id: m-1            the message's id
    usage: {"input_other": 5, "output": 2}       or input_other=5 output=2; also input_cache_read, input_cache_creation
    tool_call: {"id": "tc-1", "name": "Shell", "arguments": "{…}"}       or id=tc-1 name=Shell; also below "function"
    tool_call_part: {"arguments_part": "…"}      or the part itself
    image_url: URL     (audio_url, video_url) a picture, sound or a video in the answer, or {"url": …, "id": …}
    error: 429 slow down         or `connection …`, `timeout …`: the answer fails here

A line that cannot be read is the model's failure, as it is there: in these words, which others compare.
"""

from __future__ import annotations

from typing import Any

import msgspec

from quintet.domain.item import MediaKind, MediaPart
from quintet.domain.model import (
    Chunk,
    Finish,
    FinishChunk,
    MediaChunk,
    ReasoningChunk,
    TextChunk,
    ToolInput,
    ToolStart,
    Usage,
    UsageChunk,
)
from quintet.providers.attempts import Failure, of_status

_SKIPPED = ("#", "```")
_MEDIA = {f"{kind}_url": kind for kind in MediaKind}


class Unreadable(Exception):
    """The script has a line that says nothing."""


class Simulated(Exception):
    """The script says that the answer fails."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.words)
        self.failure = failure


def chunks_of(script: str) -> list[Chunk]:
    """The whole answer; raises Unreadable or Simulated."""
    reading = _Reading()
    for number, line in enumerate(script.splitlines(), 1):
        reading.number, reading.line = number, line
        bare = line.strip()
        if bare and not bare.startswith(_SKIPPED):
            reading.take(bare)
    if not reading.chunks:
        raise Unreadable("The echo script has no parts.")
    finish = Finish.TOOL_CALLS if reading.call else Finish.STOP
    return [*reading.chunks, *reading.usage, FinishChunk(finish, reading.answer_id)]


class _Reading:
    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.usage: list[Chunk] = []
        self.answer_id = ""
        self.call = ""
        self.number, self.line = 0, ""

    @property
    def _where(self) -> str:
        return f"line {self.number}: {self.line!r}"

    def take(self, bare: str) -> None:
        word, colon, payload = bare.partition(":")
        if not colon:
            if word.lower() == "echo":
                return
            raise Unreadable(f"Invalid echo DSL at {self._where}")
        kind, payload = word.strip().lower(), payload.removeprefix(" ")
        match kind:
            case "text":
                self.chunks.append(TextChunk(_unquoted(payload)))
            case "think":
                self.chunks.append(ReasoningChunk(_unquoted(payload)))
            case "id":
                self.answer_id = _unquoted(payload.strip())
            case "usage":
                self.usage = [UsageChunk(_usage(payload))]
            case "tool_call":
                self._call(_mapping(payload, kind))
            case "tool_call_part":
                self._part(_value(payload))
            case "error":
                raise _simulated(payload.strip(), self._where)
            case _ if kind in _MEDIA:
                self.chunks.append(MediaChunk(_sent(payload, kind)))
            case _:
                raise Unreadable(f"Unknown echo DSL kind '{kind}' at {self._where}")

    def _call(self, given: dict[str, Any]) -> None:
        inner = given.get("function")
        merged = {**(inner if isinstance(inner, dict) else {}), **{k: v for k, v in given.items() if v is not None}}
        call_id, name, arguments = merged.get("id"), merged.get("name"), merged.get("arguments")
        if not isinstance(call_id, str) or not isinstance(name, str):
            raise Unreadable(f"tool_call requires string id and name at {self._where}")
        if not isinstance(arguments, str | None):
            raise Unreadable(f"tool_call.arguments must be a string at {self._where}")
        self.call = call_id
        self.chunks.append(ToolStart(call_id, name, fed=bool(arguments)))
        if arguments:
            self.chunks.append(ToolInput(call_id, arguments))

    def _part(self, value: Any) -> None:
        if not self.call:
            raise Unreadable(f"tool_call_part before any tool_call at {self._where}")
        part = value.get("arguments_part") if isinstance(value, dict) else value
        text = "" if part is None else part if isinstance(part, str) else msgspec.json.encode(part).decode()
        self.chunks.append(ToolInput(self.call, text))


def _usage(payload: str) -> Usage:
    given = _mapping(payload, "usage")
    counts: dict[str, int] = {}
    for name in ("input_other", "output", "input_cache_read", "input_cache_creation"):
        try:
            counts[name] = int(given.get(name, 0))
        except (TypeError, ValueError):
            raise Unreadable(f"Usage field '{name}' must be an integer, got {given[name]!r}") from None
    read, written = counts["input_cache_read"], counts["input_cache_creation"]
    whole = counts["input_other"] + read + written
    return Usage(whole, counts["output"], cached_tokens=read, cache_written_tokens=written)


def _sent(payload: str, kind: str) -> MediaPart:
    value = _value(payload)
    given = value if isinstance(value, dict) else {"url": value}
    url, label = given.get("url"), given.get("id")
    if not isinstance(url, str) or not isinstance(label, str | None):
        raise Unreadable(f"{kind} requires a url, got {value!r}")
    return MediaPart(_MEDIA[kind], url, label=label or "")


def _mapping(payload: str, kind: str) -> dict[str, Any]:
    value = _json(payload.strip())
    if value is None:
        pairs = [word.partition("=") for word in payload.replace(",", " ").split()]
        if not pairs or not all(sign for _, sign, _ in pairs):
            raise Unreadable(f"{kind} payload must be a JSON object or k=v words, got {payload!r}")
        return {name: _value(given) for name, _, given in pairs}
    if not isinstance(value, dict):
        raise Unreadable(f"{kind} payload must be an object, got {value!r}")
    return value


def _value(payload: str) -> Any:
    bare = payload.strip()
    if bare.lower() in ("", "null", "none"):
        return None
    value = _json(bare)
    return _unquoted(bare) if value is None else value


def _json(text: str) -> Any:
    """What the text says as JSON; None when it is none."""
    try:
        return msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"" else text


def _simulated(payload: str, where: str) -> Exception:
    first, _, words = payload.partition(" ")
    words = words.strip()
    match first.lower():
        case "connection":
            return Simulated(Failure("connection", words or "Simulated connection error", again=True))
        case "timeout":
            return Simulated(Failure("timeout", words or "Simulated timeout error", again=True))
        case status if status.isdecimal() and len(status) == 3:
            return Simulated(of_status(int(status), {}, words or f"Simulated {status} error"))
    return Unreadable(f"Invalid error spec at {where}")
