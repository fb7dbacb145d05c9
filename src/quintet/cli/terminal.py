"""The terminal: colours only where they are wanted, and nothing from models, tools or files that could drive it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

# Control characters, direction marks and what takes no room on the screen.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)


def safe(text: str) -> str:
    """Text with control and direction characters shown instead of obeyed; newlines and tabs stay."""
    return _UNSAFE.sub(lambda m: f"\\x{ord(m[0]):02x}" if ord(m[0]) < 256 else f"\\u{ord(m[0]):04x}", text)


def safe_line(text: str) -> str:
    """The same for one line of a list."""
    return safe(text).replace("\n", "\\n").replace("\t", " ")


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

    def write(self, text: str) -> None:
        with _told():
            self._out.write(safe(text))
            self._out.flush()

    def line(self, text: str = "") -> None:
        self.write(text + "\n")

    def raw(self, data: bytes) -> None:
        """Machine-readable output: already free of anything a terminal would obey."""
        with _told():
            self._out.buffer.write(data)
            self._out.flush()

    def note(self, text: str) -> None:
        """Progress, for people; dimmed on a terminal."""
        words = safe(text)
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
