"""One message of a session file as items. Pure; whatever does not fit is left out, never guessed."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from quintet.domain import item as it
from quintet.protocols.kward.attachments import MEDIA_TYPES

Given = dict[str, Any]
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.-]+)*;base64,([A-Za-z0-9+/=\s]*)\Z")
_FAILED = {
    "Error:": it.ResultStatus.ERROR,
    "Declined:": it.ResultStatus.DENIED,
    "Cancelled.": it.ResultStatus.CANCELLED,
}


def bodies(message: Given, names: dict[str, str], ends: Mapping[Any, Given]) -> list[it.Body]:
    """`names`: of the tools that calls were made of, filled as they are met. `ends`: what else is said of calls."""
    match message.get("role"):
        case "user":
            return [it.UserMessage(tuple(parts))] if (parts := _parts(message.get("content"))) else []
        case "assistant":
            return _assistant(message, names)
        case "tool":
            return [_result(message, names, ends)]
    return []


def _assistant(message: Given, names: dict[str, str]) -> list[it.Body]:
    """Thoughts first. Those among the parts go before a summary of them."""
    content = message.get("content")
    listed = content if isinstance(content, list) else []
    thoughts = [words for part in listed if (words := _thought(part))]
    if not thoughts and isinstance(summary := message.get("reasoning_summary"), str) and summary:
        thoughts = [summary]
    text = "".join(part.text for part in _parts(content) if isinstance(part, it.TextPart))
    calls = [call for given in _rows(message.get("tool_calls")) if (call := _call(given)) is not None]
    names.update((call.call_id, call.name) for call in calls)
    return [*map(it.Reasoning, thoughts), *([it.AssistantMessage(text)] if text else []), *calls]


def _call(given: Given) -> it.ToolCall | None:
    function = given.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    return it.ToolCall(str(given.get("id") or ""), function["name"], text)


def _result(message: Given, names: dict[str, str], ends: Mapping[Any, Given]) -> it.ToolResult:
    call = str(message.get("tool_call_id") or "")
    parts = _parts(message.get("content"))
    text = "\n".join(part.text for part in parts if isinstance(part, it.TextPart))
    name = names.get(call) or str(message.get("name") or "unknown")
    end = ends.get(call, {})
    told = end.get("result") if isinstance(end.get("result"), dict) else {}
    assert isinstance(told, dict)
    changed = [path for path in told.get("changedFiles") or () if isinstance(path, str)]
    return it.ToolResult(
        call,
        name,
        _status(text, end.get("isError")),
        text,
        changed_files=tuple(changed),
        diff=told["diff"] if isinstance(told.get("diff"), str) else "",
        images=tuple(part for part in parts if isinstance(part, it.ImagePart)),
    )


def _status(text: str, failed: Any) -> it.ResultStatus:
    """Where nothing is said of it, its first word is."""
    found = next((status for word, status in _FAILED.items() if text.startswith(word)), None)
    if isinstance(failed, bool):
        return (found or it.ResultStatus.ERROR) if failed else it.ResultStatus.OK
    return found or it.ResultStatus.OK


def _parts(content: Any) -> list[it.Part]:
    if isinstance(content, str):
        return [it.TextPart(content)] if content else []
    return [made for part in _rows(content) if (made := _part(part)) is not None]


def _part(part: Given) -> it.Part | None:
    if isinstance(text := part.get("text"), str) and part.get("type") in ("text", "input_text", "output_text"):
        return it.TextPart(text)
    return _image(part) if "image" in str(part.get("type")) else None


def _thought(part: Any) -> str:
    if not isinstance(part, dict) or part.get("type") not in ("thinking", "reasoning"):
        return ""
    words = part.get("thinking") or part.get("reasoning") or part.get("text")
    return words if isinstance(words, str) else ""


def _image(part: Given) -> it.ImagePart | None:
    """In any of the forms that models are given them in. Nothing is fetched."""
    source = part.get("source") if isinstance(part.get("source"), dict) else part
    assert isinstance(source, dict)
    url = part.get("image_url")
    url = url.get("url") if isinstance(url, dict) else url
    if isinstance(url, str) and (found := _DATA.match(url)):
        kind, data = found[1], found[2]
    else:
        names = ("mimeType", "mime_type", "media_type")
        kind, data = next((source[n] for n in names if isinstance(source.get(n), str)), ""), source.get("data")
    kind = {"image/jpg": "image/jpeg"}.get(kind.lower(), kind.lower())
    if kind not in MEDIA_TYPES or not isinstance(data, str) or not _is_base64(data):
        return None
    alt = part.get("alt") or part.get("name")
    return it.named_image(kind, "".join(data.split()), alt)


def _is_base64(data: str) -> bool:
    try:
        return bool(base64.b64decode("".join(data.split()), validate=True))
    except (binascii.Error, ValueError):
        return False


def _rows(value: Any) -> list[Given]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
