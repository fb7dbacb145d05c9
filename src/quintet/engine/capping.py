"""Capping: what the model gets of a long result, and the whole of it kept beside the thread, masked."""

from __future__ import annotations

import asyncio

import msgspec

from quintet.domain.errors import NotFound, QuintetError
from quintet.domain.excerpt import excerpt
from quintet.domain.ports import Journal, Results
from quintet.domain.tool import ToolOutcome
from quintet.engine.feed import Feed
from quintet.engine.redaction import RedactedStream

PIECE = 65_536  # characters masked before other tasks get their turn
NOT_KEPT = "the rest is not kept"


def cut(outcome: ToolOutcome, how_to_read: str = NOT_KEPT) -> ToolOutcome:
    if len(outcome.text) <= outcome.limit:
        return outcome
    return msgspec.structs.replace(outcome, text=excerpt(outcome.text, outcome.limit, how_to_read))


class Capping:
    def __init__(self, feed: Feed, results: Results | None) -> None:
        self._feed = feed
        self._results = results

    async def of(self, thread: str, outcome: ToolOutcome) -> ToolOutcome:
        """The outcome as the model reads it. That the whole could not be kept is said, and is no failure of the call:
        it has happened."""
        if len(outcome.text) <= outcome.limit or self._results is None:
            return cut(outcome)
        whole = msgspec.structs.replace(outcome, text=await self._masked(outcome.text))
        try:
            name = await self._results.keep(thread, whole.text)
        except QuintetError as error:
            return cut(whole, f"{NOT_KEPT}: {error.message}")
        return cut(whole, f'read on with read_result {{"id": "{name}", "from_line": {{line}}}}')

    async def _masked(self, text: str) -> str:
        redactor = self._feed.redactor
        if redactor.idle:
            return text
        stream, pieces = RedactedStream(redactor), []
        for at in range(0, len(text), PIECE):
            pieces.append(stream.add(text[at : at + PIECE]))
            await asyncio.sleep(0)
        return "".join([*pieces, stream.release()])


async def sweep_results(journal: Journal, results: Results) -> tuple[int, int]:
    """Let go of what was kept for threads that are gone. (how many, their bytes)"""
    count = size = 0
    for thread in await results.owners():
        try:
            await journal.thread(thread)
        except NotFound:
            gone = await results.forget(thread)
            count, size = count + gone[0], size + gone[1]
    return count, size
