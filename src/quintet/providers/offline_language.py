"""The offline model's language: one command per message, words in any case. Pure: text in, a wish out.

Knows the built-in tools by name and argument, and nothing of items, streams or results.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

FORMS = (
    ("read PATH", "shows a file"),
    ("list [DIR]", "shows a directory"),
    ("search PATTERN [in GLOB]", "searches the files"),
    ("run COMMAND", "runs a shell command"),
    ("write PATH: TEXT", "writes a file"),
    ("replace OLD with NEW in PATH", "changes a file"),
    ("todo A; B; C", "sets the list of things to do"),
    ("ask QUESTION | OPTION | OPTION", "asks you back"),
    ("think TEXT", "thinks aloud"),
    ("echo TEXT", "says it again"),
    ("help", "shows this list"),
)


class Call(msgspec.Struct, frozen=True):
    """A tool to call."""

    tool: str
    arguments: dict[str, Any]


class Speak(msgspec.Struct, frozen=True):
    """Words to say, perhaps after a thought."""

    text: str
    thought: str = ""


Wish = Call | Speak


def understand(message: str) -> Wish | None:
    """What the message wants, or None when it is not in this language."""
    words = message.strip().split(maxsplit=1)
    row = _COMMANDS.get(words[0].lower()) if words else None
    if row is None:
        return None
    rest = words[1].strip() if len(words) > 1 else ""
    return row(rest) or _form(words[0].lower())


def command_list() -> str:
    width = max(len(form) for form, _ in FORMS)
    return "\n".join(f"    {form.ljust(width)}  {meaning}" for form, meaning in FORMS)


def _form(word: str) -> Speak:
    form = next(form for form, _ in FORMS if form.split()[0] == word)
    return Speak(f"That command is written `{form}`.")


def _read(rest: str) -> Wish | None:
    return Call("read", {"path": _bare(rest)}) if rest else None


def _list(rest: str) -> Wish | None:
    return Call("list", {"path": _bare(rest) or "."})


def _search(rest: str) -> Wish | None:
    quoted = re.fullmatch(rf"({_QUOTED})(?:\s+in\s+(\S+))?", rest, _FLAGS)
    plain = quoted or re.fullmatch(r"(.+?)(?:\s+in\s+(\S+))?", rest, _FLAGS)
    if plain is None:
        return None
    arguments = {"pattern": _bare(plain[1])}
    place = _bare(plain[2] or "")
    if place:
        # A plain name is a file or directory to look into; only a pattern is a glob.
        arguments["glob" if any(c in place for c in "*?[{") else "path"] = place
    return Call("grep", arguments)


def _run(rest: str) -> Wish | None:
    return Call("shell", {"command": rest}) if rest else None


def _write(rest: str) -> Wish | None:
    found = re.match(rf"({_QUOTED}|.+?)\s*:(?=\s|$)", rest) or re.match(r"(.+?):", rest)
    if found is None:
        return None
    text = rest[found.end() :]
    # One space or line break belongs to the colon; everything behind it is the text, its inner lines included.
    text = text.removeprefix(" ").removeprefix("\r\n" if text.startswith("\r") else "\n")
    return Call("write", {"path": _bare(found[1]), "content": text})


def _replace(rest: str) -> Wish | None:
    form = rf"({_QUOTED}|.+?)\s+with\s+({_QUOTED}|.*?)\s+in\s+({_QUOTED}|\S+)"
    found = re.fullmatch(form, rest, _FLAGS)
    if found is None:
        return None
    change = {"old": _bare(found[1]), "new": _bare(found[2])}
    return Call("edit", {"path": _bare(found[3]), "edits": [change]})


def _todo(rest: str) -> Wish | None:
    entries = [part.strip() for part in rest.split(";") if part.strip()]
    return Call("todo", {"todos": [{"text": entry, "status": "pending"} for entry in entries]}) if entries else None


def _ask(rest: str) -> Wish | None:
    question, *options = (part.strip() for part in rest.split("|"))
    labels = [{"label": option} for option in options if option]
    if not question or len(labels) < 2:
        return None
    return Call("ask_user", {"questions": [{"question": question, "options": labels}]})


def _think(rest: str) -> Wish | None:
    return Speak("I have thought about it.", thought=rest) if rest else None


def _echo(rest: str) -> Wish | None:
    return Speak(rest) if rest else None


def _help(rest: str) -> Wish | None:
    return Speak(f"The commands of the offline model:\n\n{command_list()}")


_COMMANDS: dict[str, Callable[[str], Wish | None]] = {
    "read": _read,
    "list": _list,
    "search": _search,
    "run": _run,
    "write": _write,
    "replace": _replace,
    "todo": _todo,
    "ask": _ask,
    "think": _think,
    "echo": _echo,
    "help": _help,
}
_FLAGS = re.IGNORECASE | re.DOTALL
_QUOTED = r"\"[^\"]*\"|'[^']*'|`[^`]*`"


def _bare(text: str) -> str:
    """Without the quotes around it."""
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'`" else text
