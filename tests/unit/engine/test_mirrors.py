"""The end of a turn is told when its files are written; whatever follows keeps its order."""

from __future__ import annotations

import asyncio

import pytest

from quintet.domain.event import Event, TurnFinished
from tests.fakes.engine import House
from tests.fakes.waiting import soon


@pytest.mark.req("mechanisms:M6.before")
async def test_an_end_waits_for_the_files_and_what_follows_waits_with_it(house: House) -> None:
    process = await house.process()
    one, other = await process.thread(), await process.thread()
    writing, written = asyncio.Event(), asyncio.Event()

    async def mirror(thread: str) -> None:
        if thread == one:
            writing.set()
            await written.wait()

    process.feed.mirror = mirror
    told: list[Event] = []
    process.feed.handle(told.append)
    first = await process.start(one)
    await soon(writing.wait())
    assert (await process.journal.turn(first.turn.id)).state.ended
    second = await process.start(other)

    async def ended() -> bool:
        return (await process.journal.turn(second.turn.id)).state.ended

    while not await soon(ended()):
        await asyncio.sleep(0)
    assert not [e for e in told if isinstance(e.payload, TurnFinished)]
    written.set()
    await process.ended(second.turn.id)
    await soon(process.seen(lambda e: e.turn == second.turn.id and isinstance(e.payload, TurnFinished), other))
    ends = [e.turn for e in told if isinstance(e.payload, TurnFinished)]
    assert ends == [first.turn.id, second.turn.id]
    assert [e.seq for e in told] == sorted(e.seq for e in told)


@pytest.mark.req("mechanisms:M6.before")
async def test_a_shutdown_waits_for_files_that_are_being_written(house: House) -> None:
    process = await house.process()
    thread = await process.thread()
    writing, written = asyncio.Event(), []

    async def mirror(thread: str) -> None:
        writing.set()
        await asyncio.sleep(0.05)
        written.append(thread)

    process.feed.mirror = mirror
    await process.start(thread)
    await soon(writing.wait())
    await soon(process.turns.shutdown())
    assert written == [thread]
