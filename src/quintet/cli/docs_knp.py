"""The generated parts of docs/protocols/knp.md, from the routes, objects and tables that serve them."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from quintet.domain.errors import all_error_classes
from quintet.protocols.knp import models as knp
from quintet.protocols.knp.errors import MAP
from quintet.protocols.knp.given import GivenModel, GivenPart
from quintet.protocols.knp.kinds import EVENT_KINDS
from quintet.protocols.knp.server import TABLE
from quintet.rpc.http.routes import Route

_SHOWN = (knp.Thread, *get_args(knp.HistoryEvent), *get_args(knp.ContentPart), knp.Run, knp.Approval)


def routes() -> str:
    lines = ["| route | query | body | answer | what it does |", "|---|---|---|---|---|"]
    for row in TABLE:
        lines.append(f"| `{row.name}` | {_query(row)} | {_fields(row.body)} | {_answer(row)} | {row.summary} |")
    return "\n".join(lines)


def objects() -> str:
    lines = ["| object | fields |", "|---|---|"]
    for form in _SHOWN:
        config = form.__struct_config__
        tag = f" (`{config.tag_field}: {config.tag}`)" if config.tag_field else ""
        lines.append(f"| {form.__name__}{tag} | {_fields(form)} |")
    return "\n".join(lines)


def events() -> str:
    lines = ["| kind | data | comes when | kept |", "|---|---|---|---|"]
    lines += [f"| `{k.name}` | `{k.data}` | {k.cause} | {k.kept} |" for k in EVENT_KINDS if not k.later]
    return "\n".join(lines)


def later() -> str:
    return ", ".join(f"`{kind.name}`" for kind in EVENT_KINDS if kind.later)


def codes() -> str:
    lines = ["| error of the engine | KNP's code | status |", "|---|---|---|"]
    for kind in sorted(all_error_classes(), key=lambda k: k.code):
        code, status = MAP[kind.code]
        lines.append(f"| `{kind.code}` | `{code}` | {status} |")
    return "\n".join(lines)


def _query(row: Route) -> str:
    fields = [f for f in msgspec.structs.fields(row.params) if f.name not in row.in_path]
    return ", ".join(f"`{f.name}`" for f in fields)


def _answer(row: Route) -> str:
    if row.streams == "always":
        return "envelopes"
    if row.result in _SHOWN:
        return str(row.result.__name__)
    return _fields(row.result) if isinstance(row.result, type) and issubclass(row.result, msgspec.Struct) else "object"


def _fields(form: Any) -> str:
    if form is None:
        return ""
    hints = get_type_hints(form)
    told = [
        f"`{f.encode_name}`{'' if f.required else '?'}: {_words(hints[f.name])}" for f in msgspec.structs.fields(form)
    ]
    return "<br>".join(told)


def _words(hint: Any) -> str:
    """A type as a reader of JSON would say it."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint == knp.HistoryEvent:
        return "history event"
    if hint in (knp.ContentPart, GivenPart):
        return "content part"
    if origin in (Union, types.UnionType):
        words = ["null" if part is type(None) else _words(part) for part in inner if part is not msgspec.UnsetType]
        return " or ".join(dict.fromkeys(words))
    if origin is Literal:
        return " or ".join(f"`{word}`" for word in inner)
    if origin in (list, tuple):
        return f"list of {_words(inner[0])}" if inner[0] is not Any else "list"
    if origin is dict:
        return "object"
    if hint is GivenModel:
        return knp.ModelName.__name__
    plain = {str: "text", int: "integer", float: "number", bool: "true or false", Any: "anything"}
    return plain.get(hint) or str(hint.__name__)
