"""Styled text: lines of spans, how wide they are, how they wrap, and how they are painted for a terminal.

Pure. Painting is the only place that writes an escape sequence, and it lets none through that came in a span.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

from quintet.cli.terminal import safe

Span = tuple[str, str]  # words of _CODES separated by spaces, and the text
Line = tuple[Span, ...]

NARROWEST = 10  # columns; below that nothing can be laid out
TAB = 4
_CODES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "underline": "4",
    "strike": "9",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
}
_JOINERS = "\u200c\u200d"


def plain(text: str, style: str = "") -> Line:
    return ((style, text),) if text else ()


def text_of(line: Line) -> str:
    return "".join(text for _, text in line)


def paint(line: Line, *, color: bool) -> str:
    """The line as a terminal gets it."""
    if not color:
        return "".join(safe(text) for _, text in line)
    return "".join(_painted(style, safe(text)) for style, text in line)


def _painted(style: str, text: str) -> str:
    codes = ";".join(_CODES[word] for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text


def columns(text: str) -> int:
    """How many columns the text takes."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if character < "\u0300":
        return 1
    if character in _JOINERS or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def without_tabs(text: str) -> str:
    """Tabs as blanks: a tab's width depends on where it stands, which wrapping changes."""
    if "\t" not in text:
        return text
    out, at = [], 0
    for piece in text.split("\t"):
        at += columns(piece)
        gap = TAB - at % TAB
        out.append(piece + " " * gap)
        at += gap
    return "".join(out)[:-gap]


def wrapped(line: Line, width: int, first: Line = (), rest: Line = ()) -> list[Line]:
    """The line in rows of at most so many columns, broken between words where that is possible; `first` stands before
    the first row and `rest` before each other."""
    rows: list[list[Span]] = [list(first)]
    begins = at = columns(text_of(first))
    wide = max(width, NARROWEST)
    if begins > wide // 2 or columns(text_of(rest)) > wide // 2:
        return wrapped((*first, *line), width)  # no room to hang anything
    for style, piece in _pieces(line):
        size = columns(piece)
        if at + size > wide and at > begins:
            if not piece.strip():
                at = wide  # blanks at the end of a row are seen by nobody; what follows them begins the next
                continue
            rows.append(list(rest))
            begins = at = columns(text_of(rest))
        for part in _cut(piece, wide - at, wide - columns(text_of(rest))) if at + size > wide else (piece,):
            if at > begins and at + columns(part) > wide:
                rows.append(list(rest))
                begins = at = columns(text_of(rest))
            rows[-1].append((style, part))
            at += columns(part)
    return [*(_trimmed(_joined(row)) for row in rows[:-1]), _joined(rows[-1])]


def cut(text: str, width: int) -> str:
    """The text's beginning in so many columns; an ellipsis says that there is more."""
    if columns(text) <= width:
        return text
    kept = next(_cut(text, max(width - 1, 1), max(width - 1, 1)))
    return f"{kept}…"


def _pieces(line: Line) -> Iterator[Span]:
    """Words and the blanks between them, each with its style. A word that changes style stays two pieces."""
    for style, text in line:
        at = 0
        while at < len(text):
            blank = text[at] == " "
            end = at
            while end < len(text) and (text[end] == " ") == blank:
                end += 1
            yield style, text[at:end]
            at = end


def _cut(piece: str, room: int, later: int) -> Iterator[str]:
    """A piece that fits into no row, in parts: the first as wide as there is room, the others as rows are."""
    start = used = 0
    room = max(room, 0)
    for place, character in enumerate(piece):
        wide = _columns_of(character)
        if used + wide > room and place > start:
            yield piece[start:place]
            start, used, room = place, 0, max(later, 2)
        used += wide
    yield piece[start:]


def _trimmed(row: Line) -> Line:
    """Without the blanks at its end, which stood between two words."""
    if not row:
        return row
    style, text = row[-1]
    return (*row[:-1], (style, text.rstrip(" "))) if text.strip(" ") else row[:-1]


def _joined(row: Iterable[Span]) -> Line:
    """Neighbours of one style as one span."""
    out: list[Span] = []
    for style, text in row:
        if out and out[-1][0] == style:
            out[-1] = (style, out[-1][1] + text)
        elif text:
            out.append((style, text))
    return tuple(out)
