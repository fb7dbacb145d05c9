"""Requests of our own that wait for the other side's answer. Knows ids and answers, not how they travel."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from quintet.rpc.faults import AlreadyOpen, BadReply, Ended, Remote
from quintet.rpc.messages import ErrorResponse, Id, Response


class Question:
    __slots__ = ("_settled", "id")

    def __init__(self, id: str | int, settled: "asyncio.Future[Response | ErrorResponse]") -> None:
        self.id = id
        self._settled = settled

    async def answer(self, result: Any) -> Any:
        got = await self._settled
        if isinstance(got, ErrorResponse):
            raise Remote(got.error)
        try:
            return msgspec.json.decode(got.result, type=result)
        except ValueError as why:
            raise BadReply(str(why)) from why


class Questions:
    """Open while their asker waits, and no longer: an answer that comes later finds nobody."""

    def __init__(self) -> None:
        self._open: dict[Id, asyncio.Future[Response | ErrorResponse]] = {}
        self._last = 0
        self._ended = False

    @contextmanager
    def open(self, id: str | int | None = None) -> Iterator[Question]:
        if self._ended:
            raise Ended("the connection is over")
        if id is None:
            self._last += 1
            id = self._last
        if id in self._open:
            raise AlreadyOpen(f"a request with id {id!r} is already open")
        settled: asyncio.Future[Response | ErrorResponse] = asyncio.get_running_loop().create_future()
        self._open[id] = settled
        try:
            yield Question(id, settled)
        finally:
            del self._open[id]
            if not settled.cancel() and not settled.cancelled():
                settled.exception()  # fetched, so that an end nobody was told of is not reported as forgotten

    def settle(self, message: Response | ErrorResponse) -> bool:
        """False if nobody waits for it."""
        settled = self._open.get(message.id)
        if settled is None or settled.done():
            return False
        settled.set_result(message)
        return True

    def end(self) -> None:
        """No answer can come any more."""
        self._ended = True
        for settled in self._open.values():
            if not settled.done():
                settled.set_exception(Ended("the connection is over"))

    def __len__(self) -> int:
        return len(self._open)
