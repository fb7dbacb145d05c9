"""Turns: accepted in order, run once, ended exactly once, whatever happens in them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quintet.domain.errors import Busy, Conflict, Invalid, NotFound, ProviderFailed, StorageFull, TimedOut
from quintet.domain.event import TurnFinished, TurnStarted
from quintet.domain.item import AssistantMessage, UserMessage
from quintet.domain.turn import ClientKey, Mode, Turn, TurnState, WhenBusy
from quintet.engine import runs
from quintet.engine.starter import Starter
from quintet.providers.table import ModelTable
from tests.fakes.engine import ME, House, Process, parts
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool, SlowTool, failing
from tests.fakes.waiting import LIMIT_S, soon


async def test_a_turn_leaves_its_input_and_the_answer(one: Process) -> None:
    thread = await one.thread()
    turn = await one.run(thread, "text: hel\ntext: lo", say="hi")
    assert turn.state is TurnState.DONE
    assert [type(b) for b in await one.bodies(thread)] == [UserMessage, AssistantMessage]
    assert (await one.bodies(thread))[1] == AssistantMessage("hello")


@pytest.mark.req("mechanisms:M2.queue")
async def test_queued_turns_run_first_in_first_out(one: Process) -> None:
    thread, gate = await one.thread(), Gate()
    first = await one.start(thread, GatedProvider([gate, *text("1")]), say="first")
    await gate.stopped()
    more = [await one.start(thread, GatedProvider(text("x")), say=f"input {n}") for n in range(4)]
    assert {(await one.journal.turn(s.turn.id)).state for s in more} == {TurnState.QUEUED}
    gate.open()
    for started in (first, *more):
        assert (await one.ended(started.turn.id)).state is TurnState.DONE
    said = [b.parts[0].text for b in await one.bodies(thread, UserMessage)]
    assert said == ["first", "input 0", "input 1", "input 2", "input 3"]


async def test_turns_of_different_threads_run_at_once(one: Process) -> None:
    gates = [Gate(), Gate()]
    turns = [await one.start(await one.thread(), GatedProvider([gate, *text("x")])) for gate in gates]
    for gate in gates:
        await gate.stopped()
    for gate in reversed(gates):
        gate.open()
    for started in turns:
        assert (await one.ended(started.turn.id)).state is TurnState.DONE


async def test_a_busy_thread_refuses_who_will_not_wait(one: Process) -> None:
    thread, gate = await one.thread(), Gate()
    first = await one.start(thread, GatedProvider([gate]))
    await gate.stopped()
    with pytest.raises(Busy):
        await one.start(thread, when_busy=WhenBusy.REJECT)
    gate.open()
    await one.ended(first.turn.id)
    assert len(await one.bodies(thread, UserMessage)) == 1
    assert (await one.run(thread, when_busy=WhenBusy.REJECT)).state is TurnState.DONE


async def test_a_busy_thread_takes_the_input_as_a_steer(one: Process) -> None:
    thread, gate = await one.thread(), Gate()
    provider = GatedProvider([gate, *text("one")], text("two"))
    first = await one.start(thread, provider)
    await gate.stopped()
    started = await one.start(thread, say="also this", when_busy=WhenBusy.STEER)
    assert started.steered
    assert started.turn.id == first.turn.id
    gate.open()
    await one.ended(first.turn.id)
    assert [b.parts[0].text for b in await one.bodies(thread, UserMessage)] == ["please", "also this"]
    assert len(await one.journal.turns(thread)) == 1


async def test_a_resting_thread_takes_a_steering_input_as_a_turn(one: Process) -> None:
    thread = await one.thread()
    started = await one.start(thread, when_busy=WhenBusy.STEER)
    assert not started.steered
    assert (await one.ended(started.turn.id)).state is TurnState.DONE


async def test_waiting_has_an_end(one: Process) -> None:
    thread, gate = await one.thread(), Gate()
    started = await one.start(thread, GatedProvider([gate]))
    with pytest.raises(TimedOut):
        await soon(one.turns.wait(started.turn.id, 0.02))
    gate.open()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE


async def test_an_empty_input_and_an_unknown_thread_are_refused(one: Process) -> None:
    starter = one.starter("text: x")
    with pytest.raises(Invalid):
        await one.turns.start(await one.thread(), (), starter)
    with pytest.raises(NotFound):
        await one.turns.start("thr_00000000000000000000000000", parts("x"), starter)


@pytest.mark.parametrize(
    ("provider", "code"),
    [
        (GatedProvider([*text("par"), ProviderFailed("it broke")]), "provider_failed"),
        (GatedProvider([*text("par"), ValueError("a defect")]), "internal"),
        (GatedProvider(call("fail")), "storage_full"),
    ],
    ids=["provider", "defect", "tool-storage"],
)
async def test_a_failing_turn_ends_once_and_says_why(one: Process, provider: GatedProvider, code: str) -> None:
    thread = await one.thread()
    provider.requests.clear()
    turn = await one.run(thread, provider, [failing(StorageFull("no space"))])
    assert turn.state is TurnState.FAILED
    assert turn.error is not None
    assert turn.error.code == code
    assert [end.state for end in await one.ends(turn.id, thread)] == [TurnState.FAILED]
    assert (await one.run(thread)).state is TurnState.DONE


async def test_a_turn_that_never_rests_ends_at_its_step_limit(one: Process) -> None:
    thread, tool = await one.thread(), FakeTool("again")
    provider = GatedProvider(*[call("again", call_id=f"c{n}") for n in range(9)])
    turn = await one.run(thread, provider, [tool], max_steps=3)
    assert turn.error is not None
    assert turn.error.code == "step_limit"
    assert len(provider.requests) == tool.count == 3
    assert [e.steps for e in await one.ends(turn.id, thread)] == [3]


async def test_a_cancelled_turn_ends_once(one: Process) -> None:
    thread, tool = await one.thread(), SlowTool()
    started = await one.start(thread, GatedProvider(call("slow")), [tool])
    await tool.started()
    turns = await soon(
        asyncio.gather(*[one.turns.cancel(started.turn.id, ME, "enough") for _ in range(5)], return_exceptions=True)
    )
    assert all(not isinstance(t, BaseException) and t.state is TurnState.CANCELLED for t in turns)
    assert [e.state for e in await one.ends(started.turn.id, thread)] == [TurnState.CANCELLED]
    assert tool.cancelled == 1
    assert one.defects == []


async def test_a_queued_turn_can_be_cancelled_and_never_runs(one: Process) -> None:
    thread, gate = await one.thread(), Gate()
    first = await one.start(thread, GatedProvider([gate]))
    await gate.stopped()
    provider = GatedProvider(text("never"))
    second = await one.start(thread, provider)
    assert (await soon(one.turns.cancel(second.turn.id, ME))).state is TurnState.CANCELLED
    gate.open()
    await one.ended(first.turn.id)
    assert provider.requests == []
    assert len(await one.ends(second.turn.id, thread)) == 1


async def test_shutdown_interrupts_what_runs_and_cancels_what_waits(house: House) -> None:
    one, other = await house.process(), await house.process()
    thread, tool = await one.thread(), SlowTool()
    first = await one.start(thread, GatedProvider(call("slow")), [tool])
    await tool.started()
    second = await one.start(thread)
    await one.close()
    assert (await other.journal.turn(first.turn.id)).state is TurnState.INTERRUPTED
    assert (await other.journal.turn(second.turn.id)).state is TurnState.CANCELLED
    assert len(await other.ends(first.turn.id, thread)) == len(await other.ends(second.turn.id, thread)) == 1


async def test_nothing_starts_while_quintet_shuts_down(one: Process) -> None:
    thread = await one.thread()
    await one.turns.shutdown()
    with pytest.raises(Busy):
        await one.start(thread)


async def test_the_same_client_key_makes_one_turn(one: Process) -> None:
    thread, key = await one.thread(), ClientKey("me", "k1", "digest")
    started = await asyncio.gather(*[one.start(thread, key=key) for _ in range(20)])
    assert len({s.turn.id for s in started}) == 1
    assert sum(not s.folded for s in started) == 1
    assert one.defects == []
    await one.ended(started[0].turn.id)
    assert len(await one.bodies(thread, UserMessage)) == 1
    with pytest.raises(Conflict):
        await one.start(thread, key=ClientKey("me", "k1", "another body"))


async def test_an_accepted_input_runs_even_when_the_caller_has_gone(one: Process) -> None:
    thread = await one.thread()
    for pauses in range(6):
        task = asyncio.create_task(one.turns.start(thread, parts(f"{pauses}"), one.starter("scope: turn\ntext: x")))
        for _ in range(pauses):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    last = await one.run(thread, "scope: turn\ntext: x")
    assert last.state is TurnState.DONE
    assert {t.state for t in await one.journal.turns(thread)} == {TurnState.DONE}


@pytest.mark.req("mechanisms:M3.model")
async def test_a_model_that_cannot_be_resolved_ends_the_turn_and_names_usable_ones(one: Process) -> None:
    thread = await one.thread(model="nowhere/big")
    starter = Starter(ME, ModelTable(), [])
    turn = await one.ended((await one.turns.start(thread, parts("x"), starter)).turn.id)
    assert turn.state is TurnState.FAILED
    assert turn.error is not None
    assert turn.error.code == "not_configured"
    assert "nowhere/big" in turn.error.message
    assert "offline/offline" in turn.error.message


@pytest.mark.req("mechanisms:M3.starter")
async def test_tools_mode_and_model_of_a_starter_are_not_kept_with_the_thread(one: Process) -> None:
    thread = await one.thread()
    before = (await one.journal.thread(thread)).settings
    first = GatedProvider(text("a"))
    await one.run(thread, first, [FakeTool("mine")], mode=Mode.READ_ONLY, model="fake/one")
    second = GatedProvider(text("b"))
    await one.run(thread, second, [FakeTool("other")], mode=Mode.ALLOW)
    assert [s.name for s in first.requests[0].tools] == ["mine"]
    assert [s.name for s in second.requests[0].tools] == ["other"]
    assert (await one.journal.thread(thread)).settings == before
    assert [p.mode for p in await one.payloads(thread, TurnStarted)] == [Mode.READ_ONLY, Mode.ALLOW]


@pytest.mark.req("mechanisms:M2.cancelling")
async def test_who_is_refused_because_of_a_turn_being_cancelled_waits_for_its_end(one: Process) -> None:
    thread, tool = await one.thread(), _Stubborn()
    first = await one.start(thread, GatedProvider(call("slow")), [tool])
    await tool.started()
    cancel = asyncio.create_task(one.turns.cancel(first.turn.id, ME))
    await one.seen(lambda e: e.kind == "turn.cancel_requested", thread)
    assert (await one.journal.turn(first.turn.id)).cancelling
    again = asyncio.create_task(one.start(thread, when_busy=WhenBusy.REJECT))
    await asyncio.sleep(0)
    assert not again.done()
    tool.go.set()
    await soon(cancel)
    assert (await one.ended((await soon(again)).turn.id)).state is TurnState.DONE


class _Stubborn(SlowTool):
    """Takes its time to stop."""

    async def _wait(self, prepared, context):  # type: ignore[no-untyped-def]
        try:
            return await super()._wait(prepared, context)
        except asyncio.CancelledError:
            await self.go.wait()
            raise


async def test_a_turn_that_cannot_even_say_its_end_is_reported_to_who_waits(
    lone: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("the store is gone")

    thread, gate = await lone.thread(), Gate()
    started = await lone.start(thread, GatedProvider([gate]))
    await gate.stopped()
    monkeypatch.setattr(lone.journal, "finish", broken)
    gate.open()
    with pytest.raises(Exception, match="unexpectedly"):
        await soon(lone.turns.wait(started.turn.id))
    assert [type(d).__name__ for d in lone.defects] == ["InternalFailure"]


async def test_a_turn_whose_beginning_could_not_be_written_is_ended_as_failed(
    lone: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "TRY_AGAIN_S", 0.01)
    working, refusals = lone.journal.claim, iter(range(1))

    async def full(*given: Any, **named: Any) -> Any:
        if next(refusals, None) is not None:
            raise StorageFull("no room")
        return await working(*given, **named)

    monkeypatch.setattr(lone.journal, "claim", full)
    thread = await lone.thread()
    started = await lone.start(thread)

    async def failed() -> Turn | None:
        turn = await lone.journal.turn(started.turn.id)
        return turn if turn.state is TurnState.FAILED else None

    ended = await lone.feed.until(lambda e: isinstance(e.payload, TurnFinished), failed, LIMIT_S)
    assert ended.error is not None
    assert ended.error.code == "storage_full"
    assert len(await lone.ends(started.turn.id, thread)) == 1
    assert (await lone.run(thread)).state is TurnState.DONE  # the thread is free again
