"""Typed: lines of stdin as they come, beside everything else that goes on. Knows not what they mean."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
from collections.abc import AsyncIterator

LONGEST_LINE = 1024 * 1024


class Typed:
    def __init__(self, descriptor: int | None = None) -> None:
        self._source = sys.stdin.fileno() if descriptor is None else descriptor
        self._news: asyncio.Queue[bytes | None] = asyncio.Queue()  # lines, and at last that no more come
        self._rest = b""

    async def lines(self) -> AsyncIterator[str]:
        """Without a thread that could not be stopped. A file, or nothing, gives none."""
        loop = asyncio.get_running_loop()
        try:
            loop.add_reader(self._source, self._read)
        except (PermissionError, ValueError, OSError):
            return
        try:
            while (line := await self._news.get()) is not None:
                yield line.decode(errors="replace")
        finally:
            loop.remove_reader(self._source)

    def forget(self) -> bool:
        """What was typed until now cannot be meant for what is shown from now on. Whether there was anything of it."""
        with contextlib.suppress(termios.error):  # no terminal
            termios.tcflush(self._source, termios.TCIFLUSH)
        kept, lost = [], bool(self._rest.strip())
        while not self._news.empty():
            line = self._news.get_nowait()
            lost = lost or bool(line and line.strip())
            kept += [None] if line is None else []
        for end in kept:
            self._news.put_nowait(end)
        self._rest = b""
        return lost

    def _read(self) -> None:
        try:
            data = os.read(self._source, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:  # nobody types that: it is passed on as it is
            lines, self._rest = [*lines, self._rest], b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._source)
            lines += [self._rest] if self._rest else []
        for line in lines:
            self._news.put_nowait(line)
        if not data:
            self._news.put_nowait(None)
