"""Layout: a name and what is said of it, side by side where there is room, below each other where there is none."""

from __future__ import annotations

import os
from typing import TextIO

from quintet.cli.styled import Line, plain, text_of, wrapped

UNDER = "      "  # what stands below its name begins here


def terminal_width(stream: TextIO) -> int:
    """The columns of the terminal behind a stream; 0 where there is none: what a program reads is never broken."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


def entry(head: str, text: str, width: int) -> list[str]:
    """`head` stands before the text's first line, and further lines begin where the text does. Where the head takes
    more than half of the width, the text stands below it. Without a width nothing is broken."""
    if not width or len(head) + len(text) <= width:
        return [f"{head}{text}".rstrip()]
    if len(head) > width // 2:
        below = f"{' ' * (len(head) - len(head.lstrip()))}{UNDER}"
        return [*_rows(head.strip(), width, head[: len(head) - len(head.lstrip())]), *_rows(text, width, below)]
    return _rows(text, width, head, " " * len(head))


def _rows(text: str, width: int, first: str, rest: str | None = None) -> list[str]:
    hanging: Line = plain(first if rest is None else rest)
    return [text_of(row) for row in wrapped(plain(text), width, plain(first), hanging)]
