"""The terminal: colours only where they are wanted, and nothing from models, tools or files that could drive it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

# Control characters of both sets, what turns the direction of text, what is invisible or spells in tags, line ends that
# are no newlines, and halves of characters. The joiners stay: whole scripts are written with them.
# Compiled with the first text that needs it, which is seldom the first.
_UNSAFE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def safe(text: str) -> str:
    """The one way of text from models, tools, files and clients to a terminal: what would drive it, or turn and hide
    its words, is spelled out instead of obeyed. Newlines and tabs stay. Looks at each character by itself, so text that
    comes in pieces is as safe as the whole."""
    return text if text.isascii() and text.isprintable() else re.sub(_UNSAFE, _spelled, text)


def _spelled(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def safe_line(text: str) -> str:
    """The same for one line of a list."""
    return safe(text).replace("\n", "\\n").replace("\t", " ")


def terminal_width(stream: TextIO) -> int:
    """The columns of the terminal behind a stream; 0 where there is none: what a program reads is never broken."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


def one_line(text: str, stream: TextIO) -> str:
    """A sentence of ours, safe, in as many rows as the terminal behind the stream needs for it."""
    width = terminal_width(stream)
    if not width or len(text) <= width:
        return safe(text)
    from quintet.cli.layout import sentence

    return "\n".join(row for line in text.split("\n") for row in sentence(line, width))


class OutputFailed(Exception):
    """Nobody can be told any more: the reader is gone, the terminal is gone, or no space is left."""

    def __init__(self, error: OSError | ValueError) -> None:
        super().__init__(str(error))
        self.error = error


class Screen:
    """Where a command writes: results to stdout, progress to stderr."""

    def __init__(self, *, color: bool = True, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = sys.stdout if out is None else out
        self._err = sys.stderr if err is None else err
        self._color = color and "NO_COLOR" not in os.environ

    @property
    def columns(self) -> int:
        """Of the terminal that results go to; 0 where they go elsewhere."""
        return terminal_width(self._out)

    def write(self, text: str) -> None:
        with _told():
            self._out.write(safe(text))
            self._out.flush()

    def line(self, text: str = "") -> None:
        self.write(text + "\n")

    def row(self, words: str, text: str = "") -> None:
        """A line of our own making, which a narrow terminal must not tear: with a text, `words` is what stands before
        it. What models, tools and files said is written by `line`, as it is."""
        from quintet.cli.layout import entry, sentence

        for line in entry(words, text, self.columns) if text else sentence(words, self.columns):
            self.line(line)

    def raw(self, data: bytes) -> None:
        """Machine-readable output: already free of anything a terminal would obey."""
        with _told():
            self._out.buffer.write(data)
            self._out.flush()

    def note(self, text: str) -> None:
        """Progress, for people; dimmed on a terminal."""
        laid_out = "\n" in text.strip("\n")
        words = safe(text) if laid_out else one_line(text, self._err)
        with _told():
            dim = self._color and self._err.isatty()
            self._err.write(f"\x1b[2m{words}\x1b[0m\n" if dim else words + "\n")
            self._err.flush()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise OutputFailed(error) from error
