"""Flow charts in Mermaid: nodes in their brackets, arrows with their labels.

What only says how it looks is passed over. Each line is looked at once, from left to right; one that means nothing here
is told and not skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from quintet.domain.flow import Chart, Flow, wrong

_ID = re.compile(r"\w+(?:[-.]\w+)*")
_HEADER = re.compile(r"(?:flowchart|graph)(?:[ \t]+(?:TB|TD|BT|RL|LR))?", re.IGNORECASE)
_LOOKS = re.compile(
    r"(?:classdef|class|style|linkstyle|click|subgraph|direction|acctitle|accdescr)(?:$|\s*:|\s+[^\s=.-])",
    re.IGNORECASE,
)
_CLASS = re.compile(r":::[\w-]+")
_STROKE = re.compile(r"[-=.]+")  # of an arrow
_SECOND = re.compile(r"(?<![-=.])(?:[-=.]{2,}+>|-{3,}+(?![=.])|={3,}+(?![-.]))")  # behind a text in its middle
_BRACKETS = (
    *(("(((", ")))"), ("([", "])"), ("((", "))"), ("[[", "]]"), ("[(", ")]"), ("{{", "}}")),
    *(("[", "]"), ("(", ")"), ("{", "}")),
)


def read(lines: Sequence[str], first: int) -> Flow:
    """`first` is the number of the first line."""
    chart = Chart()
    for number, statement in _statements(lines, first):
        _Statement(statement, number).into(chart)
    return chart.flow()


def _statements(lines: Sequence[str], first: int) -> Iterator[tuple[int, str]]:
    begins = next((n for n, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[begins].strip() == "---":  # a title and settings
        begins = next((n + 1 for n in range(begins + 1, len(lines)) if lines[n].strip() == "---"), begins)
    for number, line in enumerate(lines[begins:], first + begins):
        for part in _parts(line):
            if part and part.casefold() != "end" and not _HEADER.fullmatch(part) and not _LOOKS.match(part):
                yield number, part


def _parts(line: str) -> Iterator[str]:
    """What stands between semicolons, up to a comment; within quotes and brackets neither is one."""
    begins, depth, quoted = 0, 0, False
    for at, sign in enumerate(line):
        if sign == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif sign in "[({":
            depth += 1
        elif sign in "])}":
            depth = max(depth - 1, 0)
        elif sign == ";" and not depth:
            yield line[begins:at].strip()
            begins = at + 1
        elif sign == "%" and line.startswith("%%", at) and not depth:
            line = line[:at]
            break
    yield line[begins:].strip()


class _Statement:
    """A node, or nodes with arrows between them."""

    def __init__(self, text: str, line: int) -> None:
        self._text = text
        self._line = line
        self._at = 0

    def into(self, chart: Chart) -> None:
        start = self._node(chart)
        while self._at < len(self._text):
            label = self._arrow()
            end = self._node(chart)
            chart.edge(start, end, self._line, label)
            start = end

    def _node(self, chart: Chart) -> str:
        self._blanks()
        found = _ID.match(self._text, self._at)
        if found is None:
            raise wrong(self._line, f"a node is expected where {self._here()}.")
        self._at = found.end()
        chart.node(found[0], self._line, self._bracketed())
        if named := _CLASS.match(self._text, self._at):
            self._at = named.end()
        self._blanks()
        return found[0]

    def _bracketed(self) -> str | None:
        begins = self._at
        for opening, closing in _BRACKETS:
            if not self._text.startswith(opening, begins):
                continue
            self._at = begins + len(opening)
            text = self._quoted() if self._next() == '"' else self._until(closing)
            if text is not None and self._take(closing):
                return text.strip()
            if len(opening) == 1:
                raise wrong(self._line, f"a text that begins with {opening} does not end with {closing}.")
        self._at = begins
        return None

    def _until(self, closing: str) -> str | None:
        end = self._text.find(closing, self._at)
        if end < 0:
            return None
        text, self._at = self._text[self._at : end], end
        return text

    def _quoted(self) -> str:
        text, end = unquoted(self._text, self._at)
        if end < 0:
            raise wrong(self._line, "a quoted text is not closed.")
        self._at = end
        return text

    def _arrow(self) -> str:
        """Past an arrow; the label it has, if any."""
        begins = self._at
        stroke = _STROKE.match(self._text, begins)
        if stroke is None:
            raise wrong(self._line, f"an arrow is expected where {self._here()}.")
        self._at = stroke.end()
        label = "" if self._take(">") or len(stroke[0]) > 2 else self._within()
        if self._next() == "|":
            self._at += 1
            label = self._quoted() if self._next() == '"' else self._until("|") or ""
            if not self._take("|"):
                raise wrong(self._line, "a label that begins with | does not end with one.")
        return label

    def _within(self) -> str:
        """The text of an arrow that has it in its middle."""
        quoted = self._quoted() if self._next() == '"' else None
        head = _SECOND.search(self._text, self._at)
        if head is None:
            raise wrong(self._line, "an arrow has no end; write it as --> or as -- label -->.")
        between, self._at = self._text[self._at : head.start()].strip(), head.end()
        return between if quoted is None else quoted

    def _next(self) -> str:
        self._blanks()
        return self._text[self._at : self._at + 1]

    def _take(self, sign: str) -> bool:
        self._blanks()
        there = self._text.startswith(sign, self._at)
        self._at += len(sign) if there else 0
        return there

    def _blanks(self) -> None:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1

    def _here(self) -> str:
        rest = self._text[self._at : self._at + 20]
        return f"{rest!r} stands" if rest else "the line ends"


def unquoted(text: str, at: int) -> tuple[str, int]:
    """The text of the quotes that begin at `at`, and the place behind them; -1 where they are not closed."""
    quote, said, at = text[at], list[str](), at + 1
    while at < len(text) and text[at] != quote:
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
            said.append("\n" if text[at] == "n" else text[at])
        else:
            said.append(text[at])
        at += 1
    return "".join(said), at + 1 if at < len(text) else -1
