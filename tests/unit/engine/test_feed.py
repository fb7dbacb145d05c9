"""The feed: waiting without lost wake-ups, and looking for other processes only as closely as somebody needs it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quintet.domain.errors import StorageDamaged, TimedOut
from quintet.domain.event import Delta, Draft, Event, ThreadUpdated
from quintet.engine.tailing import FAST_S, SLOW_S
from quintet.engine.unbroken import unbroken
from tests.fakes.engine import House, Process
from tests.fakes.providers import Gate, GatedProvider
from tests.fakes.waiting import soon, until


async def rename(process: Process, thread: str, title: str) -> None:
    await process.feed.append([Draft(ThreadUpdated(title=title), thread)])


async def test_what_happens_while_the_state_is_looked_at_still_wakes_the_waiter(one: Process) -> None:
    thread = await one.thread()
    looks = 0

    async def state() -> int | None:
        nonlocal looks
        looks += 1
        if looks < 5:
            await rename(one, thread, f"{looks}")  # after this look has read, before it waits
            return None
        return looks

    assert await soon(one.feed.until(lambda e: e.thread == thread, state, None)) == 5


async def test_waiting_is_bounded_and_leaves_nothing_behind(one: Process) -> None:
    async def never() -> None:
        return None

    with pytest.raises(TimedOut):
        await soon(one.feed.until(lambda e: True, never, 0.02))
    assert not one.feed._watches
    assert one.feed.tailing.interval_s() is None


async def test_only_a_matching_event_ends_a_watch(one: Process) -> None:
    thread, other = await one.thread(), await one.thread()
    with one.feed.watching(lambda e: e.thread == thread) as seen:
        await rename(one, other, "x")
        await asyncio.sleep(0)
        assert not seen.done()
        await rename(one, thread, "y")
        assert (await soon(seen)).thread == thread


async def test_what_another_process_commits_wakes_a_waiter_here(house: House) -> None:
    one, other = await house.process(), await house.process()
    thread = await one.thread()

    async def renamed() -> str | None:
        return (await other.journal.thread(thread)).title or None

    waiting = asyncio.create_task(other.feed.until(lambda e: e.thread == thread, renamed, 10))
    await until(lambda: bool(other.feed._watches))
    await rename(one, thread, "news")
    assert await soon(waiting) == "news"


@pytest.mark.req("mechanisms:M1.tailing")
async def test_looking_is_fast_while_waiting_slow_while_watching_and_else_not_at_all(house: House) -> None:
    one, other = await house.process(), await house.process()
    tailing = other.feed.tailing
    thread, gate = await one.thread(), Gate()
    assert tailing.interval_s() is None
    assert tailing._task is None
    with other.feed.follow(root=thread) as subscription:
        reader = aiter(subscription)
        assert tailing.interval_s() == SLOW_S
        started = await one.start(thread, GatedProvider([gate]))
        await gate.stopped()
        async with asyncio.timeout(10):
            async for event in reader:
                if event.kind == "turn.started":  # type: ignore[union-attr]
                    break
        assert tailing.interval_s() == FAST_S
        gate.open()
        await one.ended(started.turn.id)
        async with asyncio.timeout(10):
            async for event in reader:
                if event.kind == "turn.finished":  # type: ignore[union-attr]
                    break
        assert tailing.interval_s() == SLOW_S
        await reader.aclose()  # type: ignore[attr-defined]
    assert tailing.interval_s() is None
    assert tailing._task is not None
    await soon(tailing._task)


@pytest.mark.req("mechanisms:M1.tailing")
async def test_who_begins_to_follow_a_foreign_running_turn_looks_fast_at_once(house: House) -> None:
    one, other = await house.process(), await house.process()
    thread, gate = await one.thread(), Gate()
    await one.start(thread, GatedProvider([gate]))
    await gate.stopped()
    with other.feed.follow(0, root=thread) as subscription:
        await soon(anext(aiter(subscription)))
        assert other.feed.tailing.interval_s() == FAST_S
    gate.open()


async def test_a_foreign_turn_that_ends_while_its_owner_is_looked_up_is_not_taken_for_running(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await house.process(), await house.process()
    thread, gate = await one.thread(), Gate()
    started = await one.start(thread, GatedProvider([gate]))
    await gate.stopped()
    look = other.journal.thread

    async def slowly(name: str) -> Any:
        found = await look(name)
        gate.open()
        await one.ended(started.turn.id)
        await other.journal.tail()
        await asyncio.sleep(0)
        return found

    monkeypatch.setattr(other.journal, "thread", slowly)
    with other.feed.follow(0, root=thread) as subscription:
        await soon(anext(aiter(subscription)))
        assert other.feed.tailing.interval_s() == SLOW_S


@pytest.mark.req("mechanisms:M1.tailing")
async def test_a_process_that_rests_does_not_ask_the_store(one: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = await one.thread()
    await one.run(thread)
    await asyncio.wait(one.turns._runs.tasks or [asyncio.create_task(asyncio.sleep(0))])
    assert one.feed.tailing._task is not None
    await soon(one.feed.tailing._task)
    asked = 0

    def count() -> bool:
        nonlocal asked
        asked += 1
        return False

    monkeypatch.setattr(one.journal, "changed_elsewhere", count)
    await asyncio.sleep(3 * FAST_S)
    assert asked == 0


async def test_tailing_tries_again_what_could_not_be_read(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = await house.process(), await house.process()
    thread = await one.thread()
    tail, failed = other.journal.tail, 0

    async def broken() -> None:
        nonlocal failed
        failed += 1
        if failed < 3:
            raise StorageDamaged("cannot be read now")
        await tail()

    monkeypatch.setattr(other.journal, "tail", broken)
    with other.feed.watching(lambda e: e.thread == thread) as seen:
        await rename(one, thread, "x")
        await soon(seen)
    assert failed >= 3


async def test_unbroken_work_ends_before_its_caller_is_cancelled() -> None:
    go, log = asyncio.Event(), []

    async def work() -> str:
        await go.wait()
        log.append("worked")
        return "result"

    async def caller() -> None:
        log.append(await unbroken(work()))
        await asyncio.sleep(0)
        log.append("never")

    task = asyncio.create_task(caller())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
    assert log == ["worked", "result"]


async def test_unbroken_work_keeps_a_timeout_a_timeout() -> None:
    async def work() -> None:
        await asyncio.sleep(0.03)

    async def caller() -> None:
        async with asyncio.timeout(0.01):
            await unbroken(work())
            await asyncio.sleep(10)

    with pytest.raises(TimeoutError):
        await caller()


async def test_the_engines_own_parts_hear_every_fact_and_no_delta(one: Process) -> None:
    thread = await one.thread()
    heard: list[Event] = []
    stop = one.feed.handle(heard.append)
    with one.feed.watching(lambda e: isinstance(e.payload, Delta)) as seen:
        await one.run(thread, "repeat: 40 text: x")
        assert not seen.done()
    stop()
    said = await one.events(thread)
    assert [e for e in heard if e.thread == thread] == [e for e in said if not isinstance(e.payload, Delta)][1:]
