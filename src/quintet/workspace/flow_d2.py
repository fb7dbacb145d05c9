"""Flow charts in D2: `a -> b: label`, `a: text`, texts over several lines. Shapes, styles and what stands in braces are
passed over; a line that means nothing here is told and not skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from quintet.domain.flow import Chart, Flow, wrong
from quintet.workspace.flow_mermaid import unquoted

_ID = re.compile(r"\w+(?:[./-]\w+)*")
_BLOCK = re.compile(r"(\|+)[A-Za-z]*[ \t]*")  # behind a colon: a text until a line of the same strokes
_ONE_LINE = re.compile(r"(\|{1,3})(?:md|markdown|text)?[ \t](.*)\1", re.DOTALL)
_LOOKS = frozenset(
    {"shape", "style", "link", "icon", "near", "width", "height", "direction", "tooltip", "constraint", "class"}
    | {"grid-rows", "grid-columns", "grid-gap", "font-size", "font-family", "font-color", "stroke", "fill", "opacity"}
    | {"padding", "border-radius", "shadow", "sketch", "animated", "multiple"}
)


def read(lines: Sequence[str], first: int) -> Flow:
    """`first` is the number of the first line."""
    chart = Chart()
    for number, statement, text in _statements(lines, first):
        _take(chart, number, statement, text)
    return chart.flow()


def _take(chart: Chart, line: int, statement: str, block: str | None) -> None:
    """A node or a chain of arrows; `block` is the text over several lines that belongs to it."""
    key, label = _split(statement)
    if label is not None or block is not None:
        label = block if block is not None else _text(label or "", line)
    nodes = [part.strip() for part in key.removesuffix(".label").split("->")]
    if key.startswith("(") or any(_is_look(node) for node in nodes):
        return
    for node in nodes:
        if _ID.fullmatch(node) is None:
            hint = "arrows are written ->" if "<" in node or "--" in node else "names have no blanks and no quotes"
            raise wrong(line, f"{node[:40]!r} is no name of a node; {hint}.")
    if len(nodes) == 1:
        chart.node(nodes[0], line, label or None)
        return
    for node in nodes:
        chart.node(node, line)
    last = len(nodes) - 2
    for at, (start, end) in enumerate(pairwise(nodes)):
        chart.edge(start, end, line, (label or "") if at == last else "")


def _is_look(name: str) -> bool:
    """Whether it says how something looks: `a.shape`, `direction`."""
    first, *more = name.split(".")
    return any(part in _LOOKS for part in more) or (not more and first in ("direction", "classes", "vars"))


def _text(text: str, line: int) -> str:
    text = text.strip()
    if text[:1] not in ("'", '"'):
        block = _ONE_LINE.fullmatch(text)
        return block[2].strip() if block else text
    said, end = unquoted(text, 0)
    if text[end:].strip():
        raise wrong(line, f"{text[end:].strip()[:40]!r} stands behind a quoted text.")
    return said


# --- statements ---------------------------------------------------------------------------------------------------
def _statements(lines: Sequence[str], first: int) -> Iterator[tuple[int, str, str | None]]:
    """Each with the number of its line; without comments and without what is in braces."""
    scan = _Scan()
    at = 0
    while at < len(lines):
        number = first + at
        said = scan.line(lines[at])
        at += 1
        if scan.closes_nothing:
            raise wrong(number, "a } closes nothing.")
        if said is None:
            continue  # it goes on
        begun, statement = number - said[0], said[1].strip()
        value = _split(statement)[1]
        opened = _BLOCK.fullmatch(value) if value else None
        if opened is not None:
            text, at = _block(lines, at, opened[1], number)
            yield begun, statement[: -len(opened[0])], text
        elif statement:
            yield begun, statement, None
    if scan.open:
        raise wrong(first + len(lines) - 1, f"{scan.open} is not closed.")


def _block(lines: Sequence[str], at: int, strokes: str, begun: int) -> tuple[str, int]:
    """The text up to the line that closes it, without the indent its lines share; and the place behind it."""
    end = next((n for n in range(at, len(lines)) if lines[n].strip() == strokes), None)
    if end is None:
        raise wrong(begun, f"a text that begins with {strokes} is not closed by a line with {strokes} alone.")
    inside = [line.expandtabs(4).rstrip() for line in lines[at:end]]
    indent = min((len(line) - len(line.lstrip()) for line in inside if line), default=0)
    return "\n".join(line[indent:] for line in inside).strip("\n"), end + 1


class _Scan:
    """Line after line: which of its signs count. Quotes and braces may be open from one line to the next."""

    def __init__(self) -> None:
        self._quote = ""
        self._depth = 0
        self._kept: list[str] = []
        self._lines = 0  # before this one, of the same statement

    @property
    def closes_nothing(self) -> bool:
        return self._depth < 0

    @property
    def open(self) -> str:
        return "a quoted text" if self._quote else "a brace" if self._depth else ""

    def line(self, line: str) -> tuple[int, str] | None:
        """(how many lines before, the statement) once it is whole. A brace ends one: what is in it does not count."""
        at = 0
        while at < len(line):
            at += self._sign(line, at)
        if self._quote or (line.endswith("\\") and not self._depth):
            self._kept += "\n" if self._quote and not self._depth else ""
            self._lines += 1
            return None
        if self._depth:
            self._lines += 1
            return None
        said = (self._lines, "".join(self._kept))
        self._kept, self._lines = [], 0
        return said

    def _sign(self, line: str, at: int) -> int:
        """How far it went."""
        sign, keeps = line[at], not self._depth
        if sign == "\\" and (self._quote or at + 1 == len(line)):
            self._kept += line[at : at + 2] if keeps and self._quote else ""
            return 2
        if self._quote:
            self._quote = "" if sign == self._quote else self._quote
        elif sign == "#" and (at == 0 or line[at - 1].isspace()):
            return len(line) - at
        elif sign in "{}":
            self._depth += 1 if sign == "{" else -1
            return 1
        elif sign in "\"'" and _opens(line, at):
            self._quote = sign
        self._kept += sign if keeps else ""
        return 1


def _opens(line: str, at: int) -> bool:
    """An apostrophe within a word is none: a quoted text begins behind a colon, an arrow or at the line's beginning."""
    before = line[:at].rstrip()
    return not before or before.endswith((":", "->", "{", ";"))


def _split(statement: str) -> tuple[str, str | None]:
    """What stands before the colon, which has no quotes; and behind it, if there is one."""
    key, found, value = statement.partition(":")
    return key.strip(), value.strip() if found else None
