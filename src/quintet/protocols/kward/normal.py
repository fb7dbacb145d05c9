"""Calls and results as Kward's clients know them: names, arguments and texts alike, whoever called a tool. Pure."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from quintet.domain.item import ImagePart, Part, ResultStatus, TextPart, ToolCall, ToolResult, named, tool_of
from quintet.engine.spelling import Spellings
from quintet.protocols.kward.kward_tools import ROWS
from quintet.protocols.kward.tool_arguments import SHELL_TIMEOUT_S

Given = dict[str, Any]
NORMAL = {"read_file": "read", "edit_file": "edit", "write_file": "write", "run_shell_command": "bash"}
# How the text of each outcome begins: files keep no flag beside it.
PREFIXES = {
    ResultStatus.ERROR: "Error: ",
    ResultStatus.UNKNOWN: "Error: ",
    ResultStatus.DENIED: "Declined: ",
    ResultStatus.CANCELLED: "Cancelled. ",
}
FAILED_WORDS = ("Error:", "Declined:", "Cancelled.")
_SPELLINGS = Spellings([], ROWS)
_OWN = {row.own: row.name for row in ROWS}
_CAMEL = re.compile(r"_([a-z0-9])")


def kward_name(call: ToolCall | ToolResult, own: str = "") -> str:
    """The name its model would have used here."""
    name = own or (tool_of(call) if isinstance(call, ToolCall) else call.name)
    return _OWN.get(name, name)


def raw_call(call: ToolCall) -> Given:
    """As a model writes it, for clients that read that."""
    _, arguments = _SPELLINGS.outward(call.name, call.input)
    function = {"name": kward_name(call), "arguments": arguments or "{}"}
    return {"id": call.call_id, "type": "function", "function": function}


def tool_name(name: str) -> str:
    """`name` in Kward's words or in ours."""
    return NORMAL.get(_OWN.get(name, name), name)


def name_of(call: ToolCall) -> str:
    return tool_name(kward_name(call))


def arguments_of(call: ToolCall, *, timeout: str = "timeout") -> Given:
    """`timeout` is what the seconds of a command are called: events and transcripts differ."""
    _, text = _SPELLINGS.outward(call.name, call.input)
    try:
        given = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    if not isinstance(given, dict):
        return {}
    match name_of(call):
        case "edit":
            return _edit(given)
        case "bash":
            return _bash(given, timeout)
    return camel(given)


def _edit(given: Given) -> Given:
    rows = given.get("edits", given.get("edit"))
    if not isinstance(rows, list):
        rows = [rows] if isinstance(rows, dict) else [given]
    edits = [_replacement(row) for row in rows if isinstance(row, dict)]
    rest = {k: v for k, v in given.items() if k not in ("edits", "edit", *_OLD, *_NEW)}
    return camel(rest) | {"edits": edits}


_OLD = ("old_text", "oldText", "old", "old_string")
_NEW = ("new_text", "newText", "new", "new_string")


def _replacement(row: Given) -> Given:
    old = next((row[name] for name in _OLD if name in row), "")
    new = next((row[name] for name in _NEW if name in row), "")
    rest = {k: v for k, v in row.items() if k not in (*_OLD, *_NEW, "path")}
    return {"oldText": old, "newText": new, **camel(rest)}


def _bash(given: Given, timeout: str) -> Given:
    names = ("timeout_seconds", "timeoutSeconds", "timeout_s", "timeout")
    seconds = next((given[name] for name in names if given.get(name) is not None), SHELL_TIMEOUT_S)
    return camel({k: v for k, v in given.items() if k not in names}) | {timeout: seconds}


def camel(given: Given) -> Given:
    """Keys with capitals instead of underscores, at any depth."""
    return {_CAMEL.sub(lambda m: m[1].upper(), str(k)): _camel(v) for k, v in given.items()}


def _camel(value: Any) -> Any:
    if isinstance(value, dict):
        return camel(value)
    return [_camel(inner) for inner in value] if isinstance(value, list) else value


class Result(Struct, frozen=True, rename="camel"):
    content: str
    is_error: bool
    images: list[Given]
    diff: str | UnsetType = UNSET
    changed_files: list[str] | UnsetType = UNSET


def is_error(result: ToolResult) -> bool:
    """A command that ends with a failing code has done its work."""
    return result.status is not ResultStatus.OK and not _exited(result)


def text_of(result: ToolResult) -> str:
    prefix = PREFIXES.get(result.status, "") if is_error(result) else ""
    text = result.text if result.text.startswith(FAILED_WORDS) else prefix + result.text
    return "\n".join([text, *(named(part) for part in result.images if not isinstance(part, ImagePart))])


def result_of(result: ToolResult, call: ToolCall | None = None) -> Result:
    failed = is_error(result)
    name = name_of(call) if call else tool_name(result.name)
    told = not failed and name in ("edit", "write") and bool(result.changed_files)
    path = arguments_of(call).get("path") if call else None
    changed = [path] if isinstance(path, str) else list(result.changed_files)
    return Result(
        text_of(result),
        failed,
        [_image(part) for part in result.images if isinstance(part, ImagePart)],
        result.diff if told and result.diff else UNSET,
        changed if told else UNSET,
    )


def part_of(part: Part) -> Given:
    """Kward knows texts and images; anything else is named."""
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case ImagePart():
            return _image(part)
    return {"type": "text", "text": named(part)}


def _image(part: ImagePart) -> Given:
    made = {"type": "image", "data": part.data, "mimeType": part.media_type}
    return made | {"alt": part.attached.name} if part.attached else made


def legacy(call: ToolCall) -> Given | None:
    """What older clients read instead of the arguments."""
    given = arguments_of(call)
    match name_of(call):
        case "edit":
            first = given["edits"][0] if given.get("edits") else {}
            pair = {"oldText": first.get("oldText", ""), "newText": first.get("newText", "")}
            return {"kind": "edit", "path": given.get("path"), "edits": given.get("edits", []), **pair}
        case "write":
            return {"kind": "write", "path": given.get("path")}
        case "bash":
            return {"kind": "shell", "command": given.get("command")}
    return None


def _exited(result: ToolResult) -> bool:
    shown = next((block for block in result.display if block.get("type") == "shell"), None)
    return shown is not None and result.status is ResultStatus.ERROR and result.message.startswith("exit")
