"""Markdown for a terminal: from lines of source to styled lines, one source line at a time, so that a line that is
complete never changes again. Pure; knows no terminal.

What cannot be known from one line is left out on purpose: tables are shown row by row, paragraphs keep their lines. A
link always shows where it leads.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from quintet.cli.styled import NARROWEST, Line, Span, columns, plain, without_tabs, wrapped
from quintet.cli.terminal import safe

LONGEST_STYLED = 4_000  # characters of a line that are looked at for emphasis; longer ones are shown as they are
DEEPEST = 4
RULE = 40

Render = Callable[[str, str, int], tuple[list[Line], str]]  # a line, the open fence, the width; rows, the fence behind

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6}) +(.*?)(?: +#+)? *")
_RULE = re.compile(r" {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})")
_LISTED = re.compile(r"( *)([-*+]|\d{1,9}[.)]) +(.*)")
_TASK = re.compile(r"\[([ xX])\] +(.*)")
_QUOTE = re.compile(r" {0,3}> ?(.*)")
_CELLS = re.compile(r"(?<!\\)\|")
_DASHES = re.compile(r" *:?-+:? *")
_TARGET = r"\(((?:[^()\s]|\([^()\s]*\))*)(?:\s+\"[^\"]*\")?\)"
_INLINE = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<code>(?P<ticks>`+)(?!`)(?:.+?)(?<!`)(?P=ticks)(?!`))"
    rf"|(?P<image>!\[(?P<alt>[^\]]*)\](?P<source>{_TARGET}))"
    rf"|(?P<link>\[(?P<words>[^\]]+)\](?P<target>{_TARGET}))"
    r"|(?P<strong>\*\*(?=\S)(?P<stars>.+?)(?<=\S)\*\*|(?<!\w)__(?=\S)(?P<bars>.+?)(?<=\S)__(?!\w))"
    r"|(?P<soft>(?<!\*)\*(?=[^\s*])(?P<star>[^*]+?)(?<=\S)\*(?!\*)|(?<!\w)_(?=[^\s_])(?P<bar>[^_]+?)(?<=\S)_(?!\w))"
    r"|(?P<gone>~~(?=\S)(?P<struck>.+?)(?<=\S)~~)"
)


class Growing:
    """A text that grows. What `feed` returns is final; `growing` is the line that is not complete yet."""

    def __init__(self, width: Callable[[], int], render: Render | None = None) -> None:
        self._width = width
        self._render = render or rendered
        self._open: list[str] = []
        self._fence = ""

    def feed(self, text: str) -> list[Line]:
        *whole, rest = text.split("\n")
        out: list[Line] = []
        for line in whole:
            out += self._finish("".join([*self._open, line]))
            self._open = []
        if rest:
            self._open.append(rest)
        return out

    def growing(self) -> list[Line]:
        """As it would be if it were complete."""
        return self._render("".join(self._open), self._fence, self._width())[0] if self._open else []

    def unfinished(self) -> str:
        """Its source."""
        return "".join(self._open)

    def end(self) -> list[Line]:
        """The last line, which no newline has ended."""
        source, self._open = "".join(self._open), []
        return self._finish(source) if source else []

    def _finish(self, source: str) -> list[Line]:
        lines, self._fence = self._render(source, self._fence, self._width())
        return lines


def rendered(source: str, fence: str, width: int) -> tuple[list[Line], str]:
    """One line of source in rows, and the fence that is open behind it (its characters, or nothing)."""
    text = without_tabs(safe(source.removesuffix("\r")))
    found = _FENCE.fullmatch(text)
    if fence:
        if found and found[1].startswith(fence) and not found[2].strip():
            return wrapped(plain(text, "dim"), width), ""
        return wrapped(plain(text, "cyan"), width) if text else [()], fence
    if found and "`" not in found[2]:
        return wrapped(plain(text, "dim"), width), found[1]
    return _block(text, width), ""


def _block(text: str, width: int) -> list[Line]:
    if not text.strip():
        return [()]
    if heading := _HEADING.fullmatch(text):
        style = "bold underline" if len(heading[1]) == 1 else "bold"
        return wrapped((("dim", f"{heading[1]} "), *_inline(heading[2], style)), width)
    if _RULE.fullmatch(text):
        return [plain("─" * min(width, RULE), "dim")]
    if width > NARROWEST and (quote := _QUOTE.fullmatch(text)):
        bar = plain("│ ", "dim")
        return [(*bar, *row) for row in _block(quote[1], width - 2)]
    if listed := _LISTED.fullmatch(text):
        return _item(listed, width)
    if text.lstrip().startswith("|") and text.count("|") > 1:
        return _table_row(text, width)
    indent = text[: len(text) - len(text.lstrip())]
    return wrapped(_inline(text.strip()), width, plain(indent), plain(indent))


def _item(found: re.Match[str], width: int) -> list[Line]:
    mark = found[2] if found[2][0].isdigit() else "•"
    words = found[3]
    if task := _TASK.fullmatch(words):
        mark, words = ("☐" if task[1] == " " else "☑"), task[2]
    lead = f"{found[1]}{mark} "
    return wrapped(_inline(words), width, plain(lead, "bold"), plain(" " * columns(lead)))


def _table_row(text: str, width: int) -> list[Line]:
    cells = _CELLS.split(text.strip().removeprefix("|").removesuffix("|"))
    if all(_DASHES.fullmatch(cell) for cell in cells):
        return [plain("─" * min(width, RULE), "dim")]
    row: list[Span] = []
    for number, cell in enumerate(cells):
        row += [("dim", " │ ")] * bool(number)
        row += _inline(cell.strip().replace("\\|", "|"))
    return wrapped(tuple(row), width)


def _inline(text: str, style: str = "", depth: int = 0) -> Line:
    """Emphasis, code and links within a line."""
    if len(text) > LONGEST_STYLED or depth > DEEPEST:
        return plain(text, style)
    out: list[Span] = []
    at = 0
    for found in _INLINE.finditer(text):
        out += plain(text[at : found.start()], style)
        out += _marked(found, style, depth + 1)
        at = found.end()
    return (*out, *plain(text[at:], style))


def _marked(found: re.Match[str], style: str, depth: int) -> Line:
    def inner(words: str, more: str) -> Line:
        return _inline(words, " ".join(dict.fromkeys(f"{style} {more}".split())), depth)

    if found["escape"]:
        return plain(found["escape"][1:], style)
    if found["code"]:
        return plain(found["code"], f"{style} cyan".strip())
    if found["image"]:
        return (*plain(f"[image: {found['alt']}]", style), *plain(f" {found['source']}", "dim"))
    if found["link"]:
        target = found["target"][1:-1].strip()
        if target == found["words"]:
            return inner(target, "underline")
        return (*inner(found["words"], "underline"), *plain(f" ({target})", "dim"))
    if found["strong"]:
        return inner(found["stars"] or found["bars"], "bold")
    if found["soft"]:
        return inner(found["star"] or found["bar"], "italic")
    return inner(found["struck"], "strike")
