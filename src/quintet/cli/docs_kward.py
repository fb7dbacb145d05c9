"""The generated parts of docs/protocols/kward.md, from the rows and tables that serve them."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from quintet.domain.errors import all_error_classes
from quintet.protocols.kward.errors import errors
from quintet.protocols.kward.kward_tools import ROWS
from quintet.protocols.kward.normal import NORMAL
from quintet.protocols.kward.server import TABLE

# What each event of a turn carries; the order of a turn is the order here.
EVENTS = {
    "turnQueued": "`status`",
    "turnStarted": "`status`",
    "turnSteered": "`input`, `createdAt`",
    "reasoningDelta": "`delta`",
    "assistantDelta": "`delta`",
    "assistantMessage": "`message`: what the model said in one step, as models write it",
    "modelRetry": "`provider`, `model`, `attempt`, `maxAttempts`, `delaySeconds`, `error`",
    "toolCall": "`toolCallId`, `toolName`, `args`, `rawToolCall`, `toolCall`, `tool`?",
    "toolResult": "the same, `content`, `result`: `content`, `isError`, `images`, `diff`?, `changedFiles`?",
    "answer": "`content`: the last words",
    "turnCancelRequested": "(nothing)",
    "error": "`message`, `code`, `fatal`",
    "turnFinished": "`status`: completed, failed or canceled; `error`",
}


def methods() -> str:
    lines = ["| method | params | result | what it does |", "|---|---|---|---|"]
    for row in TABLE:
        lines.append(f"| `{row.name}` | {_fields(row.params)} | {_fields(row.result)} | {row.summary} |")
    return "\n".join(lines)


def events() -> str:
    lines = ["| event | payload |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {payload} |" for name, payload in EVENTS.items())])


def tools() -> str:
    lines = ["| Kward's tool | in events | Quintet's | arguments |", "|---|---|---|---|"]
    for row in ROWS:
        needed = row.parameters["required"]
        names = [f"`{name}`{'' if name in needed else '?'}" for name in row.parameters["properties"]]
        lines.append(f"| `{row.name}` | `{NORMAL.get(row.name, row.name)}` | `{row.own}` | {', '.join(names)} |")
    return "\n".join(lines)


def codes() -> str:
    lines = ["| error of the engine | code |", "|---|---|"]
    for kind in sorted(all_error_classes(), key=lambda k: k.code):
        lines.append(f"| `{kind.code}` | {errors(kind('words'), 'turns/start').code} |")
    return "\n".join(lines)


def _fields(form: Any) -> str:
    if not (isinstance(form, type) and issubclass(form, msgspec.Struct)):
        return "object"
    hints = get_type_hints(form)
    told = [
        f"`{f.encode_name}`{'' if f.required else '?'}: {_words(hints[f.name])}" for f in msgspec.structs.fields(form)
    ]
    return "<br>".join(told) or "(nothing)"


def _words(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(p) for p in inner if p not in (type(None), msgspec.UnsetType)))
    if origin is Literal:
        return " or ".join(f"`{word}`" for word in inner)
    if origin in (list, tuple):
        return f"list of {_words(inner[0])}"
    if origin is dict:
        return "object"
    plain = {str: "text", int: "integer", float: "number", bool: "true or false", Any: "any value"}
    return plain.get(hint) or str(getattr(hint, "__name__", hint))
