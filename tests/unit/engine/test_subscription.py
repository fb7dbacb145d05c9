"""Subscription: everything once, in order, however slow its reader is; and never more memory than its bound."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from quintet.domain.event import KIND_BY_NAME, Draft, Durability, Event, Gap, ThreadUpdated
from quintet.domain.turn import TurnState
from quintet.engine.subscription import BATCH, PAGE, QUEUE_LIMIT, Subscription, facts, replay
from tests.fakes.engine import House, Process
from tests.fakes.waiting import soon


async def write(process: Process, thread: str, count: int) -> None:
    """So many facts in one commit."""
    await process.feed.append([Draft(ThreadUpdated(title=f"{n}"), thread) for n in range(count)])


async def take(reader: AsyncIterator[Event | Gap], count: int) -> list[Event | Gap]:
    return [await soon(anext(reader)) for _ in range(count)]


async def rest(reader: AsyncIterator[Event | Gap], last: int) -> list[Event | Gap]:
    """Everything up to that number."""
    got: list[Event | Gap] = []
    while not got or not isinstance(got[-1], Event) or got[-1].seq < last:
        got.append(await soon(anext(reader)))
    return got


@pytest.mark.req("mechanisms:M1.publisher", "reliability:R6")
@pytest.mark.parametrize("start", ["beginning", "now"])
async def test_a_slow_reader_that_overflows_again_and_again_misses_nothing(one: Process, start: str) -> None:
    thread, noise = await one.thread(), await one.thread()
    chance = random.Random(7)
    with one.feed.follow(0 if start == "beginning" else None, root=thread) as subscription:
        before = (await one.journal.marks()).last if start == "now" else 0
        reader = aiter(subscription)
        got: list[Event | Gap] = []
        for _ in range(30):
            for _ in range(chance.randint(1, 4)):
                await write(one, thread, chance.choice([1, 7, 300, 499, 501, 999, 1_001]))
                await write(one, noise, 3)
                assert len(subscription._queue) <= QUEUE_LIMIT
            if chance.random() < 0.5:
                got += await take(reader, chance.choice([1, 2, 40, 450]))
                continue
            got += await rest(reader, (await one.events(thread, subscription.cursor))[-1].seq)  # now it reads live
            await write(one, thread, 3)
            got += await take(reader, 1)
        wanted = await one.events(thread, before)
        got += await rest(reader, wanted[-1].seq)
    assert [e.seq for e in got if isinstance(e, Event)] == [e.seq for e in wanted]
    assert len(got) == len(wanted)


async def test_a_reader_that_fell_behind_while_reading_live_goes_back_to_the_store(lone: Process) -> None:
    """The queue was lost and has filled anew before the reader looks again: what was lost comes first."""
    thread = await lone.thread()
    with lone.feed.follow(root=thread) as subscription:
        reader = aiter(subscription)
        await write(lone, thread, 2)
        got = await take(reader, 1)
        await write(lone, thread, QUEUE_LIMIT)
        await write(lone, thread, 5)
        wanted = (await lone.events(thread))[1:]
        got += await rest(reader, wanted[-1].seq)
    assert [e.seq for e in got if isinstance(e, Event)] == [e.seq for e in wanted]


async def test_a_reader_that_waits_when_its_queue_overflows_reads_what_was_lost_first(lone: Process) -> None:
    """More than its queue takes is published, and more after that, before it is its turn."""
    thread = await lone.thread()
    with lone.feed.follow(0, root=thread) as subscription:
        reader = aiter(subscription)
        before = await rest(reader, (await lone.events(thread))[-1].seq)
        waiting = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0)
        lone.feed._subscriptions.discard(subscription)
        await write(lone, thread, QUEUE_LIMIT + 6)
        wanted = await lone.events(thread)
        subscription.offer(wanted[len(before) : -5])
        subscription.offer(wanted[-5:])
        got = [*before, await soon(waiting), *await rest(reader, wanted[-1].seq)]
    assert got == wanted


async def test_a_reader_that_overflows_while_it_reads_its_last_page_misses_nothing(lone: Process) -> None:
    thread = await lone.thread()
    await write(lone, thread, 5)
    with lone.feed.follow(0, root=thread) as subscription:
        reader = aiter(subscription)
        got = await take(reader, 1)
        await write(lone, thread, QUEUE_LIMIT)
        await write(lone, thread, 2)
        wanted = await lone.events(thread)
        got += await rest(reader, wanted[-1].seq)
    assert got == wanted


async def test_what_is_published_while_a_page_is_read_comes_once(
    lone: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, read = await lone.thread(), lone.journal.events

    async def meanwhile(*given: Any, **more: Any) -> list[Event]:
        await write(lone, thread, 3)
        return await read(*given, **more)

    with lone.feed.follow(0, root=thread) as subscription:
        reader = aiter(subscription)
        with monkeypatch.context() as patched:
            patched.setattr(lone.journal, "events", meanwhile)
            got = await take(reader, 1)
        await write(lone, thread, 1)
        wanted = await lone.events(thread)
        got += await rest(reader, wanted[-1].seq)
    assert got == wanted


@pytest.mark.req("mechanisms:M1.gap")
async def test_a_gap_is_told_once_however_many_pages_of_facts_lie_in_it(one: Process) -> None:
    thread = await one.thread()
    await write(one, thread, 1_300)
    await one.run(thread, "repeat: 5 text: x")
    await one.journal.prune(now_ms=one.clock.now_ms() + 1_000, grace_s=0)
    wanted = await one.events(thread)
    with one.feed.follow(0, root=thread) as subscription:
        got = await rest(aiter(subscription), wanted[-1].seq)
    assert [e for e in got if isinstance(e, Gap)] == got[:1]
    assert got[1:] == wanted


@pytest.mark.req("reliability:R6")
async def test_readers_that_never_read_harm_neither_the_turn_nor_others(one: Process) -> None:
    thread = await one.thread()
    stopped = [one.feed.follow(0, root=thread) for _ in range(50)]
    with one.feed.follow(0, root=thread) as healthy:
        turn = await one.run(thread, "repeat: 3000 text: x")
        assert turn.state is TurnState.DONE
        assert all(len(s._queue) <= QUEUE_LIMIT for s in stopped)
        wanted = await one.events(thread)
        assert await rest(aiter(healthy), wanted[-1].seq) == wanted
    assert await rest(aiter(stopped[0]), wanted[-1].seq) == wanted
    for subscription in stopped:
        subscription.close()


async def test_following_from_a_cursor_gives_what_comes_after_it(one: Process) -> None:
    thread = await one.thread()
    await one.run(thread, "repeat: 1200 text: x")
    everything = await one.events(thread)
    for place in (0, 1, 499, 500, 1_000, len(everything) - 2):
        with one.feed.follow(everything[place].seq, root=thread) as subscription:
            assert await rest(aiter(subscription), everything[-1].seq) == everything[place + 1 :]
            assert subscription.cursor == everything[-1].seq


async def test_following_everything_sees_all_threads_in_order(one: Process) -> None:
    threads = [await one.thread() for _ in range(3)]
    with one.feed.follow(0) as subscription:
        for thread in threads * 2:
            await one.run(thread, "scope: turn\ntext: x")
        wanted = await one.events()
        assert await rest(aiter(subscription), wanted[-1].seq) == wanted
        assert {e.thread for e in wanted} >= set(threads)


async def _pruned(one: Process) -> tuple[str, list[Event], int]:
    """A thread whose first turn's deltas are gone, its events before that, and the mark."""
    thread = await one.thread()
    await one.run(thread, "scope: turn\nrepeat: 700 text: x")
    before = await one.events(thread)
    await one.journal.prune(now_ms=one.clock.now_ms() + 1_000, grace_s=0)
    await one.run(thread, "scope: turn\nrepeat: 5 text: y")
    return thread, before, (await one.journal.marks()).pruned_through


@pytest.mark.req("mechanisms:M1.gap")
async def test_a_cursor_below_the_mark_gets_one_gap_then_every_fact_and_every_kept_delta(one: Process) -> None:
    thread, before, mark = await _pruned(one)
    facts = [e for e in before if KIND_BY_NAME[e.kind].durability is Durability.FACT]
    wanted = await one.events(thread)
    with one.feed.follow(3, root=thread) as subscription:
        got = await rest(aiter(subscription), wanted[-1].seq)
    assert got[0] == Gap(4, mark)
    assert got[1:] == [e for e in wanted if e.seq > 3]
    assert [e for e in facts if e.seq > 3] == [e for e in got[1:] if isinstance(e, Event) and e.seq <= before[-1].seq]
    assert sum(isinstance(e, Event) and e.kind == "text.delta" for e in got) == 5
    assert [e async for e in replay(one.journal, 3, thread)] == got


@pytest.mark.req("mechanisms:M1.gap")
async def test_a_cursor_at_or_above_the_mark_gets_no_gap(one: Process) -> None:
    thread, _, mark = await _pruned(one)
    wanted = [e for e in await one.events(thread) if e.seq > mark]
    with one.feed.follow(mark, root=thread) as subscription:
        assert await rest(aiter(subscription), wanted[-1].seq) == wanted


async def test_closing_the_feed_ends_every_reader(lone: Process) -> None:
    thread = await lone.thread()
    subscription = lone.feed.follow(root=thread)
    reader = aiter(subscription)
    await write(lone, thread, 1)
    await take(reader, 1)
    await lone.feed.close()
    with pytest.raises(StopAsyncIteration):
        await soon(anext(reader))


async def test_a_closed_reader_is_forgotten(house: House) -> None:
    one = await house.process()
    subscription = one.feed.follow()
    assert isinstance(subscription, Subscription)
    subscription.close()
    subscription.close()
    assert not one.feed._subscriptions
    assert one.feed.tailing.interval_s() is None


async def batch_of(reader: AsyncIterator[list[Event | Gap]]) -> list[Event | Gap]:
    return await soon(anext(reader))


async def test_batches_are_what_there_is_within_their_bound(lone: Process) -> None:
    thread = await lone.thread()
    with lone.feed.follow(root=thread) as subscription:
        reader = aiter(subscription.batches())
        await write(lone, thread, BATCH + 3)
        await write(lone, thread, 1)
        wanted = await lone.events(thread)
        wanted = wanted[-BATCH - 4 :]
        assert await batch_of(reader) == wanted[:BATCH]
        assert subscription.cursor == wanted[BATCH - 1].seq
        assert await batch_of(reader) == wanted[BATCH:]
        await write(lone, thread, 1)
        assert len(await batch_of(reader)) == 1


@pytest.mark.req("mechanisms:M1.publisher", "reliability:R6")
async def test_a_slow_reader_of_batches_that_overflows_misses_nothing(one: Process) -> None:
    thread = await one.thread()
    chance = random.Random(11)
    with one.feed.follow(0, root=thread) as subscription:
        reader = aiter(subscription.batches())
        got: list[Event | Gap] = []
        for _ in range(20):
            await write(one, thread, chance.choice([1, 7, 300, 501, 999, 1_001]))
            assert len(subscription._queue) <= QUEUE_LIMIT
            if chance.random() < 0.6:
                got += await batch_of(reader)
        wanted = await one.events(thread)
        while got[-1] != wanted[-1]:
            got += await batch_of(reader)
    assert got == wanted


@pytest.mark.req("mechanisms:M1.gap")
async def test_a_gap_comes_before_the_events_of_its_batch(one: Process) -> None:
    thread = await one.thread()
    await one.run(thread, "repeat: 5 text: x")
    await one.journal.prune(now_ms=one.clock.now_ms() + 1_000, grace_s=0)
    wanted = await one.events(thread)
    with one.feed.follow(0, root=thread) as subscription:
        first = await batch_of(aiter(subscription.batches()))
    assert isinstance(first[0], Gap)
    assert first[1:] == wanted


async def test_the_facts_of_a_thread_are_all_it_said_without_its_deltas(one: Process) -> None:
    thread, other = await one.thread(), await one.thread()
    await write(one, thread, PAGE + 3)
    await one.run(thread, "repeat: 1200 text: x")
    await one.run(other, "text: y")
    await write(one, thread, 2)
    wanted = [e for e in await one.events(thread) if KIND_BY_NAME[e.kind].durability is Durability.FACT]
    assert len(wanted) > PAGE
    assert [e async for e in facts(one.journal, 0, thread)] == wanted
    assert [e async for e in facts(one.journal, wanted[3].seq, thread)] == wanted[4:]
    assert [e async for e in facts(one.journal, wanted[-1].seq, thread)] == []


async def test_facts_are_those_of_now_however_much_is_added_while_they_are_read(lone: Process) -> None:
    thread = await lone.thread()
    await write(lone, thread, 2 * PAGE)
    wanted = await lone.events(thread)
    got = []
    async for event in facts(lone.journal, 0, thread):
        got.append(event)
        if len(got) % 300 == 0:
            await write(lone, thread, 5)
    assert got == wanted


@pytest.mark.parametrize("root", ["", "of the thread"])
async def test_a_new_reader_that_missed_the_first_thing_finds_it_in_the_store(one: Process, root: str) -> None:
    thread = await one.thread()
    await write(one, thread, 2)
    with one.feed.follow(root=thread if root else "") as subscription:
        one.feed._subscriptions.discard(subscription)
        await write(one, thread, 1)  # committed, and could not be read when it was published
        one.feed._subscriptions.add(subscription)
        one.feed._missed()
        await write(one, thread, 1)
        got = await take(aiter(subscription), 2)
    assert [e.seq for e in got if isinstance(e, Event)] == [e.seq for e in await one.events(thread)][-2:]
