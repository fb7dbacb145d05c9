"""context.jsonl as items: what an earlier program, or a client itself, wrote. Data from outside: every line is checked.

Nothing in it is executed, granted or sent anywhere by reading it.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from quintet.domain import item as it
from quintet.domain.errors import Invalid
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.parts import held, url_of

LARGEST = 256 * 1024 * 1024
OPENS, CLOSES, FAILED = "<system>", "</system>", "ERROR: "


class _Function(Struct, frozen=True):
    name: str
    arguments: str | None = None


class _Call(Struct, frozen=True):
    id: str
    function: _Function


class _Line(Struct, frozen=True):
    role: str
    content: Any = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | UnsetType | None = UNSET


def bodies(data: bytes) -> list[it.Body]:
    """Invalid where a line says nothing that can be understood; a last line without its end was never finished."""
    if len(data) > LARGEST:
        raise Invalid(f"It is larger than {LARGEST} bytes.")
    found: list[it.Body] = []
    names: dict[str, str] = {}
    whole = data[: data.rfind(b"\n") + 1]
    for number, text in enumerate(whole.split(b"\n"), start=1):
        if text.strip():
            try:
                found += _bodies(msgspec.json.decode(text, type=_Line), names)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise Invalid(f"Line {number} cannot be read: {error}.") from None
            except Invalid as error:
                raise Invalid(f"Line {number} cannot be taken: {error.message}") from None
    return found


def _bodies(line: _Line, names: dict[str, str]) -> list[it.Body]:
    if line.role.startswith("_"):
        return []  # the program's own notes
    parts = _parts(line.content)
    match line.role:
        case "user" | "system" as role:
            notice = "brought" if role == "system" else ""  # which nobody has said
            return [it.UserMessage(tuple(map(_core, parts)) or (it.TextPart(""),), notice=notice)]
        case "assistant":
            calls = [it.ToolCall(c.id, c.function.name, c.function.arguments or "{}") for c in line.tool_calls or ()]
            names.update((call.call_id, call.name) for call in calls)
            return [*_said(parts), *calls]
        case "tool":
            call = line.tool_call_id or ""
            status, message, parts = _ended(parts)
            kept = list(map(_core, parts))
            words = [part.text for part in kept if isinstance(part, it.TextPart)]
            if not words or status is not it.ResultStatus.OK:
                words += [message] * bool(message)  # which the model needs to know
            text = "\n".join(words)
            images = tuple(part for part in kept if not isinstance(part, it.TextPart))
            return [it.ToolResult(call, names.get(call, "unknown"), status, text, message, images=images)]
    raise Invalid(f"the role {line.role!r} is not known.")


def _ended(parts: list[wire.ContentPart]) -> tuple[it.ResultStatus, str, list[wire.ContentPart]]:
    """How a call ended stands in tags before its output, where Kimi itself wrote it."""
    match parts:
        case [wire.TextPart(text=first), *output] if first.startswith(OPENS) and first.endswith(CLOSES):
            said = first[len(OPENS) : -len(CLOSES)]
            failed = said.startswith(FAILED)
            status = it.ResultStatus.ERROR if failed else it.ResultStatus.OK
            return status, said.removeprefix(FAILED) if failed else said, output
    return it.ResultStatus.OK, "", parts


def _parts(content: Any) -> list[wire.ContentPart]:
    if content is None:
        return []
    if isinstance(content, str):
        return [wire.TextPart(content)]
    return msgspec.convert(content, list[wire.ContentPart])


def _core(part: wire.ContentPart) -> it.Part:
    """What lies elsewhere, or cannot be read, is named in its place: nothing is fetched for a file, and one bad part
    does not cost the rest."""
    match part:
        case wire.TextPart(text=text) | wire.ThinkPart(think=text):
            return it.TextPart(text)
        case _:
            kind, url = url_of(part)
            return _held(kind, url) or it.TextPart(it.named(it.MediaPart(kind, url.url)))


def _held(kind: it.MediaKind, url: wire.Url) -> it.Media | None:
    try:
        return held(kind, url)
    except Invalid:
        return None


def _said(parts: list[wire.ContentPart]) -> list[it.Body]:
    found: list[it.Body] = []
    for part in parts:
        match part:
            case wire.TextPart(text=text) if text:
                found.append(it.AssistantMessage(text))
            case wire.ThinkPart(think=text) if text:
                found.append(it.Reasoning(text))
            case wire.ImageURLPart() | wire.AudioURLPart() | wire.VideoURLPart():
                kind, url = url_of(part)
                sent = it.MediaPart(kind, url.url, label=url.id or "")
                found.append(it.AssistantMessage(it.named(sent), sent=sent))
    return found
