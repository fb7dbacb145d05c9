"""The plain part of YAML that Kimi's agent files are written in: tables, lists of words, quoted and block texts.

No dependency reads it for us; whatever goes beyond this is refused with its line, never guessed at.
"""

from __future__ import annotations

import re
from typing import Any

from quintet.domain.errors import Invalid

_PAIR = re.compile(r"""("[^"]*"|'[^']*'|[^\s#:'"\[\]{}&*!|>%@`-][^:#]*?)\s*:(?:\s+(.*))?$""")
_BEYOND = re.compile(r"[&*!%@`\[{]")


class _Lines:
    """Those that say something, with how far they are indented; blank ones matter only in block texts."""

    def __init__(self, text: str, name: str) -> None:
        self.rows = text.splitlines()
        self.at = 0
        self.name = name

    def peek(self) -> tuple[int, str] | None:
        while self.at < len(self.rows):
            row = self.rows[self.at]
            bare = row.strip()
            if bare and not bare.startswith("#") and bare != "---":
                if "\t" in row[: len(row) - len(row.lstrip())]:
                    raise self.wrong("tabs indent nothing in YAML")
                return len(row) - len(row.lstrip(" ")), bare
            self.at += 1
        return None

    def wrong(self, what: str) -> Invalid:
        return Invalid(f"{self.name}, line {self.at + 1}: {what}.", next_step="Write it as plain `name: value` lines.")


def parse_plain_yaml(text: str, name: str) -> dict[str, Any]:
    lines = _Lines(text, name)
    first = lines.peek()
    if first is None:
        return {}
    found = _block(lines, first[0])
    if lines.peek() is not None:
        raise lines.wrong("this does not belong where it stands")
    if not isinstance(found, dict):
        raise lines.wrong("the file must be a table")
    return found


def _block(lines: _Lines, depth: int) -> Any:
    here = lines.peek()
    assert here is not None
    return _list(lines, depth) if here[1] == "-" or here[1].startswith("- ") else _table(lines, depth)


def _table(lines: _Lines, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    while (here := lines.peek()) is not None and here[0] == depth:
        found = _PAIR.match(here[1])
        if found is None:
            raise lines.wrong(f"{here[1][:60]!r} is no `name: value`")
        key = _scalar(lines, found[1])
        if key in made:
            raise lines.wrong(f"{key!r} is there twice")
        made[key] = _value(lines, depth, (found[2] or "").strip())
    return made


def _list(lines: _Lines, depth: int) -> list[Any]:
    made: list[Any] = []
    while (here := lines.peek()) is not None and here[0] == depth and here[1].startswith("-"):
        word = here[1][1:].strip()
        if _PAIR.match(word) and not word.startswith(("'", '"')):
            raise lines.wrong("a list of tables is not read")
        made.append(_scalar(lines, word))
        lines.at += 1
    return made


def _value(lines: _Lines, depth: int, said: str) -> Any:
    """What stands behind a name: on its line, or below it."""
    if said[:1] in ("|", ">") and said.rstrip("+-")[1:] == "":
        return _text(lines, depth, folded=said[0] == ">")
    word = "" if said.startswith("#") else said
    if word:
        value = [] if word == "[]" else {} if word == "{}" else _scalar(lines, word)
        lines.at += 1
        return value
    lines.at += 1
    below = lines.peek()
    if below is not None and (below[0] > depth or (below[0] == depth and below[1].startswith("- "))):
        return _block(lines, below[0])
    return None


def _text(lines: _Lines, depth: int, *, folded: bool) -> str:
    lines.at += 1
    rows: list[str] = []
    while lines.at < len(lines.rows):
        row = lines.rows[lines.at]
        if row.strip() and len(row) - len(row.lstrip(" ")) <= depth:
            break
        rows.append(row)
        lines.at += 1
    inner = min((len(row) - len(row.lstrip(" ")) for row in rows if row.strip()), default=0)
    whole = "\n".join(row[inner:].rstrip() for row in rows).rstrip("\n")
    return (whole.replace("\n", " ") if folded else whole) + "\n"


def _scalar(lines: _Lines, word: str) -> Any:
    quoted = re.match(r"""("([^"\\]*)"|'([^']*)')\s*(#.*)?$""", word)
    if quoted:
        return quoted[2] if quoted[2] is not None else quoted[3]
    bare = re.sub(r"\s+#.*$", "", word)
    if not bare or _BEYOND.match(bare) or bare[0] in "\"'":
        raise lines.wrong(f"{word[:60]!r} is not read")
    return {"null": None, "~": None, "true": True, "false": False}.get(bare.lower(), bare)
