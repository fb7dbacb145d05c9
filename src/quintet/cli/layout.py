"""Layout: a name and what is said of it, side by side where there is room, else one below the other. Pure."""

from __future__ import annotations

from quintet.cli.styled import columns, plain, text_of, wrapped
from quintet.cli.terminal import safe

UNDER = 4  # columns by which what stands below its name is set in


def entry(head: str, text: str, width: int) -> list[str]:
    """`head` stands before the text's first line, and further lines begin where the text does. Where the head takes
    more than half of the width, the text stands below it. Without a width nothing is broken."""
    head, text = safe(head), safe(text)
    if not width or columns(head) + columns(text) <= width:
        return [f"{head}{text}".rstrip()]
    bare = head.lstrip(" ")
    indent = len(head) - len(bare)
    if columns(head) > width // 2:
        below = " " * (indent + UNDER)
        return [*_rows(bare.rstrip(), width, head[:indent], below), *_rows(text, width, below, below)]
    return _rows(text, width, head, " " * columns(head))


def sentence(text: str, width: int) -> list[str]:
    """One line of ours, broken between words where it is too long, further lines set in."""
    text = safe(text)
    bare = text.lstrip(" ")
    indent = " " * (len(text) - len(bare))
    if not width or columns(text) <= width:
        return [text]
    return _rows(bare, width, indent, indent + " " * UNDER)


def _rows(text: str, width: int, first: str, rest: str) -> list[str]:
    return [text_of(row) for row in wrapped(plain(text), width, plain(first), plain(rest))] if text else []
