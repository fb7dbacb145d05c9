"""Arrivals: an answer's bytes, read ahead while the last ones are being worked on. Servers send each word as a piece of
its own; taken together, a hundred small pieces cost little more than one. Knows neither HTTP nor events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

AHEAD = 128 * 1024  # bytes; then the server has to wait for whoever reads


class Arrivals:
    """Reads in a task of its own; `close` ends it."""

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        self._source = source
        self._pieces: list[bytes] = []
        self._size = 0
        self._some = asyncio.Event()  # something has come, or nothing more will
        self._room = asyncio.Event()
        self._error: Exception | None = None
        self._task = asyncio.create_task(self._read())

    async def take(self) -> bytes:
        """Everything that has come since; waits for the first of it. Nothing: it has ended. What had come before a
        failure is given first."""
        await self._some.wait()
        if self._pieces:
            taken = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            self._room.set()
            if not self._task.done():
                self._some.clear()
            return taken
        if self._error is not None:
            raise self._error
        return b""

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _read(self) -> None:
        try:
            async for piece in self._source:
                self._pieces.append(piece)
                self._size += len(piece)
                self._some.set()
                if self._size > AHEAD:
                    self._room.clear()
                    await self._room.wait()
        except Exception as error:
            self._error = error
        finally:
            self._some.set()
