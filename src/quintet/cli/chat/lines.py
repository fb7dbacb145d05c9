"""Lines: the face for a terminal that can only print and read lines (TERM=dumb). Nothing moves here."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import termios
from collections.abc import Callable, Sequence

from quintet.cli.chat.face import Talk
from quintet.cli.styled import Line, paint
from quintet.cli.terminal import OutputFailed

LONGEST_LINE = 65_536


class Lines:
    def __init__(self, remember: Callable[[str], str]) -> None:
        self._remember = remember
        self._talk: Talk | None = None
        self._typed = b""
        self._asks = False
        self._closed = asyncio.Event()

    def write(self, lines: Sequence[Line]) -> None:
        try:
            sys.stdout.write("".join(f"{paint(line, color=False)}\n" for line in lines))
            sys.stdout.flush()
        except (OSError, ValueError) as error:
            raise OutputFailed(error) from error

    def width(self) -> int:
        return shutil.get_terminal_size().columns - 1

    def refresh(self) -> None:
        """Nothing moves here."""

    def ask(self, label: str) -> None:
        self._asks = bool(label)
        if label:
            self._typed = b""
            with contextlib.suppress(termios.error):
                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    async def run(self, talk: Talk) -> None:
        self._talk = talk
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), self._read)
        try:
            await self._closed.wait()
        finally:
            loop.remove_reader(sys.stdin.fileno())

    def close(self) -> None:
        self._closed.set()

    def _read(self) -> None:
        assert self._talk is not None
        try:
            data = os.read(sys.stdin.fileno(), 4096)
        except OSError:
            data = b""  # the terminal is gone
        if not data:
            self._talk.leave()
            return
        *whole, rest = (self._typed + data).split(b"\n")
        self._typed = rest[-LONGEST_LINE:]
        for line in whole:
            text = line.decode(errors="replace").strip("\r")
            if not self._asks:
                self._remember(text)
            self._talk.submit(text)
