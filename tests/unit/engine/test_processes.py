"""Several processes on one store: each sees, answers, steers and stops what another runs, and ends what died."""

from __future__ import annotations

import asyncio

import pytest

from quintet.domain.errors import Busy, TimedOut, TurnOver
from quintet.domain.event import Event, InteractionResolved
from quintet.domain.interaction import Verdict
from quintet.domain.item import AssistantMessage, ResultStatus, ToolResult, UserMessage
from quintet.domain.thread import ThreadQuery
from quintet.domain.tool import Effect
from quintet.domain.turn import Mode, TurnState, WhenBusy
from quintet.engine import inbox
from quintet.engine.interactions import Answer
from tests.fakes.engine import ME, House, parts
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool, SlowTool
from tests.fakes.waiting import soon, until


@pytest.mark.req("mechanisms:M1.publisher")
async def test_another_process_lists_and_follows_a_turn_to_its_end(house: House) -> None:
    one, other = await house.process(), await house.process()
    thread, gate = await one.thread(), Gate()
    heard: list[Event] = []
    with other.feed.follow(0, root=thread) as subscription:

        async def listen() -> None:
            async for event in subscription:
                assert isinstance(event, Event)
                heard.append(event)
                if event.kind == "turn.finished":
                    return

        listening = asyncio.create_task(listen())
        started = await one.start(thread, GatedProvider([*text("a", "b"), gate, *text("c")]))
        await gate.stopped()
        await until(lambda: any(e.kind == "text.delta" for e in heard))
        (listed,) = await other.threads.page(ThreadQuery())
        assert (listed.id, listed.owner) == (thread, one.journal.owner)
        gate.open()
        await soon(listening)
    assert heard == await one.events(thread)
    assert (await other.ended(started.turn.id)).state is TurnState.DONE


@pytest.mark.req("mechanisms:M2.answers")
async def test_another_process_answers_and_the_owner_goes_on(house: House) -> None:
    one, other = await house.process(), await house.process()
    thread, tool = await one.thread(), FakeTool("put", effect=Effect.WRITE)
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [tool], mode=Mode.ASK)
    await soon(other.interactions.answer(await one.asked(thread), Answer(Verdict.ALLOW), ME))
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert tool.count == 1


@pytest.mark.req("mechanisms:M2.commands", "mechanisms:M2.steer")
async def test_another_process_steers_and_cancels(house: House) -> None:
    one, other = await house.process(), await house.process()
    thread, tool = await one.thread(), SlowTool()
    started = await one.start(thread, GatedProvider(call("slow")), [tool])
    await tool.started()
    await soon(other.turns.steer(thread, parts("from afar"), ME))
    with pytest.raises(Busy):
        await other.start(thread, when_busy=WhenBusy.REJECT)
    assert (await soon(other.turns.cancel(started.turn.id, ME, "stop"))).state is TurnState.CANCELLED
    assert tool.cancelled == 1
    assert [b.parts[0].text for b in await other.bodies(thread, UserMessage)] == ["please", "from afar"]
    with pytest.raises(TurnOver):
        await other.turns.cancel(started.turn.id, ME)


@pytest.mark.req("mechanisms:M2.queue")
async def test_a_turn_waits_for_one_of_another_process_and_runs_where_it_was_accepted(house: House) -> None:
    one, other = await house.process(), await house.process()
    thread, gate = await one.thread(), Gate()
    first = await one.start(thread, GatedProvider([gate, *text("1")]))
    await gate.stopped()
    provider = GatedProvider(text("2"))
    second = await other.start(thread, provider)
    assert (await other.journal.turn(second.turn.id)).state is TurnState.QUEUED
    gate.open()
    assert (await one.ended(second.turn.id)).state is TurnState.DONE
    assert len(provider.requests) == 1
    assert (await one.journal.turn(first.turn.id)).state is TurnState.DONE


async def test_another_process_cancels_a_queued_turn(house: House) -> None:
    one, other = await house.process(), await house.process()
    thread, gate = await one.thread(), Gate()
    await one.start(thread, GatedProvider([gate]))
    await gate.stopped()
    second = await one.start(thread)
    assert (await soon(other.turns.cancel(second.turn.id, ME))).state is TurnState.CANCELLED
    gate.open()


@pytest.mark.req("mechanisms:M2.recovery", "mechanisms:M2.nolist")
async def test_reading_a_thread_ends_what_a_dead_owner_left_and_listing_does_not(house: House) -> None:
    one, other = await house.process(), await house.process()
    thread, tool = await one.thread(), SlowTool(effect=Effect.WRITE)
    reads = SlowTool("reads")
    lines = [*text("I will"), *call("slow", call_id="w"), *call("reads", call_id="r")]
    started = await one.start(thread, GatedProvider(lines), [tool, reads])
    await tool.started()
    await reads.started()
    await one.die()
    assert (await other.threads.page(ThreadQuery()))[0].owner == one.journal.owner
    assert (await other.journal.turn(started.turn.id)).state is TurnState.RUNNING
    opened = await other.threads.get(thread)
    assert opened.recovery.turns == (started.turn.id,)
    assert [title.split()[0] for title in opened.recovery.unknown] == ["slow"]
    assert (opened.thread.owner, opened.thread.active_turn) == ("", "")
    assert [e.state for e in await other.ends(started.turn.id, thread)] == [TurnState.INTERRUPTED]
    statuses = {b.call_id: b.status for b in await other.bodies(thread, ToolResult)}
    assert (statuses["w"], statuses["r"]) == (ResultStatus.UNKNOWN, ResultStatus.CANCELLED)
    assert (await other.threads.get(thread)).recovery.turns == ()
    assert (await other.run(thread)).state is TurnState.DONE


@pytest.mark.req("mechanisms:M2.recovery")
async def test_a_dead_owners_words_are_kept_and_its_questions_denied(house: House) -> None:
    one, other = await house.process(), await house.process()
    thread, tool = await one.thread(), FakeTool("put", effect=Effect.WRITE)
    await one.start(thread, GatedProvider(call("put")), [tool], mode=Mode.ASK)
    asked = await one.asked(thread)
    second, gate = await one.thread(), Gate()
    await one.start(second, GatedProvider([*text("half ", "a"), gate]))
    await gate.stopped()
    await one.seen(lambda e: e.kind == "text.delta" and e.payload.index == 1, second)  # type: ignore[union-attr]
    await one.die()
    for name in (thread, second):
        await other.threads.get(name)
    decision = (await other.journal.interaction(asked)).decision
    assert decision is not None
    assert (decision.verdict, decision.reason) == (Verdict.DENY, "interrupted")
    assert len(await other.payloads(thread, InteractionResolved)) == 1
    assert await other.bodies(second, AssistantMessage) == [AssistantMessage("half a", partial=True)]


@pytest.mark.req("mechanisms:M2.queue_death")
async def test_a_queued_turn_of_a_dead_runner_is_ended_and_does_not_block_the_thread(house: House) -> None:
    one, other, third = await house.process(), await house.process(), await house.process()
    thread, gate = await one.thread(), Gate()
    first = await one.start(thread, GatedProvider([gate]))
    await gate.stopped()
    dead = await other.start(thread)
    last = await third.start(thread)
    await other.die()
    gate.open()
    assert (await third.ended(last.turn.id)).state is TurnState.DONE
    assert (await third.ended(dead.turn.id)).state is TurnState.INTERRUPTED
    assert (await third.ended(first.turn.id)).state is TurnState.DONE


@pytest.mark.req("mechanisms:M2.queue_death")
async def test_a_runner_that_exits_cleanly_cancels_its_own_queued_turns_only(house: House) -> None:
    one, other = await house.process(), await house.process()
    thread, gate = await one.thread(), Gate()
    first = await one.start(thread, GatedProvider([gate]))
    await gate.stopped()
    mine, theirs = await other.start(thread), await one.start(thread)
    await other.close()
    assert (await one.journal.turn(mine.turn.id)).state is TurnState.CANCELLED
    gate.open()
    assert (await one.ended(theirs.turn.id)).state is TurnState.DONE
    assert (await one.ended(first.turn.id)).state is TurnState.DONE


async def test_who_waits_for_a_turn_learns_of_its_owners_death(house: House) -> None:
    one, other = await house.process(), await house.process()
    thread, gate = await one.thread(), Gate()
    started = await one.start(thread, GatedProvider([gate]))
    await gate.stopped()
    waiting = asyncio.create_task(other.ended(started.turn.id))
    await one.die()
    assert (await soon(waiting)).state is TurnState.INTERRUPTED


@pytest.mark.req("mechanisms:M2.probe")
@pytest.mark.parametrize("dead", [True, False], ids=["dead", "stopped"])
async def test_an_owner_that_does_not_answer_is_probed(
    house: House, monkeypatch: pytest.MonkeyPatch, dead: bool
) -> None:
    monkeypatch.setattr(inbox, "OWNER_ANSWERS_WITHIN_S", 0.05)
    one, other = await house.process(), await house.process()
    thread, gate = await one.thread(), Gate()
    started = await one.start(thread, GatedProvider([gate]))
    await gate.stopped()
    if dead:
        await one.die()
    else:
        one.turns._runs.inbox._stop()  # as a process that was suspended
    with pytest.raises(TurnOver if dead else TimedOut):
        await soon(other.turns.steer(thread, parts("hello?"), ME))
    state = (await other.journal.turn(started.turn.id)).state
    assert state is (TurnState.INTERRUPTED if dead else TurnState.RUNNING)
