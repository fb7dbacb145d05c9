"""The generated parts of docs/: event kinds, errors and commands, from the same tables the program runs on.

`python -m quintet.cli.docs docs` writes them between their markers; parts with other names are other people's.
Imported by no command.
"""

from __future__ import annotations

import argparse
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from quintet.cli import COMMANDS, docs_knp, docs_kward, docs_wire, exits
from quintet.cli.parser import actions_of
from quintet.cli.words import own_arguments, parser_of
from quintet.domain.errors import QuintetError, all_error_classes
from quintet.domain.event import KINDS, Kind

_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end generated -->)", re.DOTALL)


# --- events -----------------------------------------------------------------------------------------------------------
def kinds() -> str:
    lines = ["| kind | class | written by | payload |", "|---|---|---|---|"]
    for kind in KINDS:
        writer = "the turn's owner" if kind.leased else "any process"
        fields = "<br>".join(_fields(kind.payload)) or "(nothing)"
        lines.append(f"| `{kind.name}` | {kind.durability.value} | {writer} | {fields} |")
    return "\n".join(lines)


def shapes() -> str:
    """Every struct and every set of words that a payload leads to, in the order of the alphabet."""
    found: dict[str, type] = {}
    for kind in KINDS:
        _collect(kind, found)
    structs = {n: t for n, t in found.items() if not issubclass(t, Enum)}
    enums = {n: t for n, t in found.items() if issubclass(t, Enum)}
    lines = ["| shape | fields |", "|---|---|"]
    lines += [f"| {_tagged(name, kind)} | {'<br>'.join(_fields(kind))} |" for name, kind in sorted(structs.items())]
    lines += ["", "| words | one of |", "|---|---|"]
    for name, words in sorted(enums.items()):
        lines.append(f"| {name} | {', '.join(f'`{member.value}`' for member in words)} |")
    return "\n".join(lines)


def _tagged(name: str, form: type) -> str:
    tag = form.__struct_config__.tag  # type: ignore[attr-defined]
    return f'{name} (`"type": "{tag}"`)' if tag else name


def _fields(form: type) -> list[str]:
    hints = get_type_hints(form)
    return [
        f"`{field.encode_name}`: {_words(hints[field.name])}{'' if field.required else ' (optional)'}"
        for field in msgspec.structs.fields(form)
    ]


def _words(hint: Any) -> str:
    """A type as a reader of JSON would say it."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_words(part) for part in inner if part is not type(None))
    if origin is tuple and inner[-1:] == (Ellipsis,):
        many = _words(inner[0])
        return f"list of ({many})" if " or " in many else f"list of {many}"
    if origin is tuple:
        return f"[{', '.join(_words(part) for part in inner)}]"
    if origin is dict:
        return "object"
    plain = {str: "text", int: "integer", float: "number", bool: "true or false"}
    return plain.get(hint) or str(hint.__name__)


def _collect(root: Kind, found: dict[str, type]) -> None:
    waiting: list[Any] = list(get_type_hints(root.payload).values())
    while waiting:
        hint = waiting.pop()
        waiting += get_args(hint)
        if not isinstance(hint, type) or get_origin(hint) or hint.__name__ in found:
            continue
        if issubclass(hint, msgspec.Struct):
            found[hint.__name__] = hint
            waiting += [t for name, t in get_type_hints(hint).items() if name in hint.__struct_fields__]
        elif issubclass(hint, Enum):
            found[hint.__name__] = hint


# --- errors and exit codes --------------------------------------------------------------------------------------------
def errors() -> str:
    """A heading for each, so that a line on a terminal can name it."""
    parts = []
    for error in sorted(all_error_classes(), key=lambda e: e.code):
        head = f"### `{error.code}`\n\n{what_happened(error)} Exit {exits.BY_CODE[error.code]}.\n\n"
        parts.append(f"{head}{error.next_step}")
    return "\n\n".join(parts)


def what_happened(error: type[QuintetError]) -> str:
    return " ".join((error.__doc__ or "").split())


def exit_codes() -> str:
    return "\n".join(
        ["| exit | meaning |", "|---|---|", *(f"| {n} | {words} |" for n, words in exits.MEANINGS.items())]
    )


# --- commands ---------------------------------------------------------------------------------------------------------
def commands() -> str:
    parts = []
    for name, summary in COMMANDS.items():
        head = f"## quintet {name}\n\n{summary[:1].upper()}{summary[1:]}.\n\n"
        parts.append(f"{head}{_parser(parser_of(name))}".rstrip())
    return "\n\n".join(parts)


def _parser(parser: argparse.ArgumentParser) -> str:
    if actions := actions_of(parser):
        return "\n\n".join(_action(parser.prog, name, inner) for name, inner in actions.items())
    return f"    {_usage(parser)}\n\n{_flags(parser)}"


def _action(prog: str, name: str, parser: argparse.ArgumentParser) -> str:
    words = parser.description or ""
    return f"### {prog} {name}\n\n{words[:1].upper()}{words[1:]}.\n\n    {_usage(parser)}\n\n{_flags(parser)}".rstrip()


def _usage(parser: argparse.ArgumentParser) -> str:
    given = [_positional(a) for a in own_arguments(parser) if not a.option_strings]
    flags = ["[flags]"] if any(a.option_strings for a in own_arguments(parser)) else []
    return " ".join([parser.prog, *flags, *given])


def _positional(action: argparse.Action) -> str:
    word = action.dest.upper()
    return {"*": f"[{word} …]", "+": f"{word} …", "?": f"[{word}]"}.get(str(action.nargs), word)


def _flags(parser: argparse.ArgumentParser) -> str:
    rows = [f"| `{_spelled(a)}` | {_meaning(a)} |" for a in own_arguments(parser) if a.option_strings or a.help]
    return "\n".join(["| argument | meaning |", "|---|---|", *rows]) if rows else ""


def _spelled(action: argparse.Action) -> str:
    if not action.option_strings:
        return _positional(action)
    value = "" if action.nargs == 0 else f" {_value(action)}"
    return ", ".join(action.option_strings) + value


def _value(action: argparse.Action) -> str:
    if action.choices:
        return "\\|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper()).replace("|", "\\|")


def _meaning(action: argparse.Action) -> str:
    words = (action.help or "").replace("|", "\\|")
    said = action.default not in (None, False, "", (), [], argparse.SUPPRESS) and "default" not in words
    default = f"default: {action.default}" if said and action.option_strings else ""
    return f"{words} ({default})" if words and default else words or default


PARTS: dict[str, Callable[[], str]] = {
    "kinds": kinds,
    "shapes": shapes,
    "errors": errors,
    "exits": exit_codes,
    "commands": commands,
    "wire_methods": docs_wire.methods,
    "wire_messages": docs_wire.messages,
    "wire_codes": docs_wire.codes,
    "wire_tools": docs_wire.tools,
    "wire_commands": docs_wire.commands,
    "kward_methods": docs_kward.methods,
    "kward_events": docs_kward.events,
    "kward_codes": docs_kward.codes,
    "kward_tools": docs_kward.tools,
    "knp_routes": docs_knp.routes,
    "knp_objects": docs_knp.objects,
    "knp_events": docs_knp.events,
    "knp_later": docs_knp.later,
    "knp_codes": docs_knp.codes,
}


def renewed(text: str, parts: Mapping[str, Callable[[], str]] = PARTS) -> str:
    """The page with each of these parts written anew."""

    def part(found: re.Match[str]) -> str:
        return f"{found[1]}\n{parts[found[2]]()}\n\n{found[3]}" if found[2] in parts else found[0]

    return _PART.sub(part, text)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print("usage: python -m quintet.cli.docs DIRECTORY", file=sys.stderr)
        return exits.USAGE
    for page in sorted(Path(arguments[0]).rglob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = renewed(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"wrote {page}")
    return exits.DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
