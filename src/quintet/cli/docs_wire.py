"""The generated parts of docs/protocols/wire.md, from the tables and rows that serve them."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from quintet.domain.errors import all_error_classes
from quintet.engine.commands import BUILT_IN
from quintet.protocols.wire import asked
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.errors import errors
from quintet.protocols.wire.gate import DROPPED, SINCE
from quintet.protocols.wire.kimi_tools import ROWS
from quintet.protocols.wire.server import TABLE

_EMPTY = ("TurnEnd", "StepInterrupted", "CompactionBegin", "CompactionEnd")


def methods() -> str:
    lines = ["| method | params | result | what it does |", "|---|---|---|---|"]
    for row in TABLE:
        lines.append(f"| `{row.name}` | {_fields(row.params)} | {_fields(row.result)} | {row.summary} |")
    return "\n".join(lines)


def messages() -> str:
    lines = ["| message | since | payload | for older clients |", "|---|---|---|---|"]
    for name, since in SINCE.items():
        if (payload := _payload(name)) is not None:
            older = "left out" if name in DROPPED else "sent"
            lines.append(f"| `{name}` | {since[0]}.{since[1]} | {payload} | {older} |")
    return "\n".join(lines)


def codes() -> str:
    lines = ["| error of the engine | code |", "|---|---|"]
    for kind in sorted(all_error_classes(), key=lambda k: k.code):
        lines.append(f"| `{kind.code}` | {errors(kind('words'), 'prompt').code} |")
    return "\n".join(lines)


def tools() -> str:
    lines = ["| Kimi's tool | Quintet's | arguments |", "|---|---|---|"]
    for row in ROWS:
        needed = row.parameters["required"]
        names = [f"`{name}`{'' if name in needed else '?'}" for name in row.parameters["properties"]]
        lines.append(f"| `{row.name}` | `{row.own}` | {', '.join(names) or '(none)'} |")
    return "\n".join(lines)


def commands() -> str:
    lines = ["| command | also | what it does |", "|---|---|---|"]
    for row in BUILT_IN:
        aliases = ", ".join(f"`/{name}`" for name in row.aliases)
        lines.append(f"| `/{row.name}` | {aliases} | {row.description} |")
    return "\n".join(lines)


def _payload(name: str) -> str | None:
    """None for what this version never sends."""
    if name in _EMPTY:
        return "(nothing)"
    if name == "ContentPart":
        return "by `type`: " + ", ".join(f"`{part.__struct_config__.tag}`" for part in get_args(wire.ContentPart))
    form = getattr(wire, name, None) or getattr(asked, name, None)
    return _fields(form) if form is not None else None


def _fields(form: Any) -> str:
    hints = get_type_hints(form)
    told = [
        f"`{f.encode_name}`{'' if f.required else '?'}: {_words(hints[f.name])}" for f in msgspec.structs.fields(form)
    ]
    return "<br>".join(told) or "(nothing)"


def _words(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if hint == wire.UserInput:
        return "text or content parts"
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(p) for p in inner if p not in (type(None), msgspec.UnsetType)))
    if origin is Literal:
        return " or ".join(f"`{word}`" for word in inner)
    if origin is list:
        return f"list of {_words(inner[0])}"
    if origin is dict or hint is Any:
        return "object"
    plain = {str: "text", int: "integer", float: "number", bool: "true or false", wire.Message: "a message"}
    return plain.get(hint) or str(hint.__name__)
