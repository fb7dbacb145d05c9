"""sessions/compact, and what a client is told when a thread is made shorter by itself."""

from __future__ import annotations

from typing import Any

from quintet.domain.event import CompactionFinished
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client, Opened
from quintet.protocols.kward.times import iso
from quintet.rpc.connection import Connection


class Shortening:
    """One compaction of a session, as its client is told of it."""

    def __init__(self, connection: Connection[Client], session: Opened) -> None:
        self._connection = connection
        self._house = connection.state.house
        self._session = session

    async def begun(self) -> None:
        await self._tell("compactionStart", {})

    async def over(self, finished: CompactionFinished) -> None:
        words = finished.error.message if finished.error else None
        await self.end(None, words)

    async def end(self, result: wire.Compacted | None, words: str | None) -> None:
        told = {"result": result, "aborted": words is not None, "willRetry": False, "errorMessage": words}
        await self._tell("compactionEnd", told)

    async def _tell(self, type: str, payload: Any) -> None:
        now = iso(self._house.feed.clock.now_ms())
        await self._connection.notify("session/event", wire.SessionEvent(now, self._session.id, type, payload))
