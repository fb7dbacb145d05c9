"""Asides: a question beside the thread is answered from its context, counted, and leaves nothing in it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quintet.domain.errors import Busy, Overloaded, ProviderFailed, TurnOver
from quintet.domain.event import AsideAnswered, AsideAsked, StepFinished
from quintet.domain.item import ToolCall, ToolResult, text_of
from quintet.domain.model import ToolInput, ToolStart, Usage, UsageChunk
from quintet.domain.ports import Provider
from quintet.domain.surroundings import Surroundings
from quintet.domain.turn import Turn, TurnState, WhenBusy
from quintet.engine.asides import AT_ONCE, LONGEST, Asides
from quintet.engine.spending import Budget
from tests.fakes.engine import ME, House, Process
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool, SlowTool
from tests.fakes.waiting import soon, until

DOLLAR = {"input_price": 1_000_000.0, "output_price": 0.0}
SPENDS_ONE = UsageChunk(Usage(1, 0))


async def ask(process: Process, thread: str, model: Provider, *tools: Any, **more: Any) -> Turn:
    started = await soon(process.turns.aside(thread, process.starter(model, tools, **more), "why?"))
    return await process.ended(started.turn.id)


async def answers(process: Process, thread: str) -> list[tuple[str, str]]:
    found = await process.payloads(thread, AsideAnswered)
    return [(p.answer, p.error.message if p.error else "") for p in found]


@pytest.mark.req("mechanisms:M5.aside")
async def test_it_sees_the_whole_thread_with_its_tools_declared_and_leaves_no_item(one: Process) -> None:
    thread, look = await one.thread(), FakeTool("look")
    model = GatedProvider(text("hello"), text("be", "cause"), text("bye"))
    await one.run(thread, model, [look], say="hi")
    turn = await ask(one, thread, model, look)
    assert turn.state is TurnState.DONE
    assert await answers(one, thread) == [("because", "")]
    first, beside = model.requests
    assert (beside.instructions, beside.tools) == (first.instructions, first.tools)
    assert [text_of(i.body) for i in beside.items[:-1]] == ["hi", "hello"]
    assert text_of(beside.items[-1].body).endswith("\n\nwhy?")
    assert [text_of(b) for b in await one.bodies(thread)] == ["hi", "hello"]
    await one.run(thread, model, [look], say="and?")
    assert [text_of(i.body) for i in model.requests[2].items] == ["hi", "hello", "and?"]


@pytest.mark.req("mechanisms:M5.aside")
async def test_a_call_is_denied_once_and_then_the_model_may_answer_in_words(lone: Process) -> None:
    thread, look = await lone.thread(), FakeTool("look")
    model = GatedProvider([*text("let me see"), *call("look", '{"a": 1}')], text("words"))
    await ask(lone, thread, model, look)
    assert await answers(lone, thread) == [("words", "")]
    told = [i.body for i in model.requests[1].items]
    assert [(type(b), b.name) for b in told if isinstance(b, ToolCall | ToolResult)] == [
        (ToolCall, "look"),
        (ToolResult, "look"),
    ]
    assert look.count == 0
    assert await lone.bodies(thread) == []


async def test_a_model_that_only_calls_or_says_nothing_or_fails_is_told_as_no_answer(lone: Process) -> None:
    thread, look = await lone.thread(), FakeTool("look")
    for steps in ([call("look"), call("look")], [[]], [[ProviderFailed("The server is down.")]]):
        turn = await ask(lone, thread, GatedProvider(*steps), look)
        assert turn.state is TurnState.DONE
    words = [error for _, error in await answers(lone, thread)]
    assert "look" in words[0]
    assert words[1:] == ["The model gave no answer.", "The server is down."]
    assert look.count == 0
    assert len(await lone.payloads(thread, StepFinished)) == 4


@pytest.mark.req("mechanisms:M5.aside", "models:B2")
async def test_what_it_uses_is_counted_and_bound_by_the_budget(lone: Process) -> None:
    thread = await lone.thread()
    model = GatedProvider([*text("one"), SPENDS_ONE], [*text("two"), SPENDS_ONE])
    for _ in range(2):
        await ask(lone, thread, model, budget=Budget(thread=1.0), known=DOLLAR)
    assert len(model.requests) == 1
    (step,) = await lone.payloads(thread, StepFinished)
    assert (step.number, step.usage.input_tokens) == (0, 1)
    first, second = await answers(lone, thread)
    assert first == ("one", "")
    assert "budget of this thread is spent" in second[1]


@pytest.mark.req("mechanisms:M5.aside")
async def test_one_beside_a_running_turn_neither_steers_nor_stops_it_and_the_turn_ends_after_it(one: Process) -> None:
    thread, slow, gate = await one.thread(), SlowTool(), Gate()
    model = GatedProvider(call("slow"), [gate, *text("beside")], text("done"))
    started = await one.start(thread, model, [slow])
    await soon(slow.begun.wait())
    await one.turns.ask_beside(thread, "why?")
    await gate.stopped()
    slow.go.set()
    await one.seen(lambda e: isinstance(e.payload, StepFinished) and e.payload.number == 2, thread)
    assert (await one.journal.turn(started.turn.id)).state is TurnState.RUNNING
    gate.open()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert await answers(one, thread) == [("beside", "")]
    assert "why?" not in repr(model.requests[2].items)
    assert "why?" not in repr(await one.bodies(thread))
    with pytest.raises(TurnOver):
        await one.turns.ask_beside(thread, "too late?")


async def test_a_steer_that_comes_while_the_turn_waits_for_one_is_heard_at_once(one: Process) -> None:
    thread, slow, gate = await one.thread(), SlowTool(), Gate()
    model = GatedProvider(call("slow"), [gate, *text("beside")], text("done"), text("again"))
    started = await one.start(thread, model, [slow])
    await soon(slow.begun.wait())
    await one.turns.ask_beside(thread, "why?")
    await gate.stopped()
    slow.go.set()
    await one.seen(lambda e: isinstance(e.payload, StepFinished) and e.payload.number == 2, thread)
    await one.start(thread, model, say="more", when_busy=WhenBusy.STEER)
    await one.seen(lambda e: isinstance(e.payload, StepFinished) and e.payload.number == 3, thread)
    gate.open()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE


@pytest.mark.parametrize("beside", [True, False])
async def test_a_cancel_cuts_it_off_and_says_so_in_the_turns_last_commit(one: Process, beside: bool) -> None:
    thread, slow, gate = await one.thread(), SlowTool(), Gate()
    if beside:
        started = await one.start(thread, GatedProvider(call("slow"), [gate]), [slow])
        await soon(slow.begun.wait())
        await one.turns.ask_beside(thread, "why?")
    else:
        started = await soon(one.turns.aside(thread, one.starter(GatedProvider([gate])), "why?"))
    await gate.stopped()
    assert (await soon(one.turns.cancel(started.turn.id, ME))).state is TurnState.CANCELLED
    (asked,) = await one.payloads(thread, AsideAsked)
    (answered,) = await one.payloads(thread, AsideAnswered)
    assert (asked.id, asked.question, answered.error.code) == (answered.id, "why?", "cancelled")
    steps = await one.payloads(thread, StepFinished)
    assert [s.error.code for s in steps if not s.number] == ["cancelled"]


async def test_one_that_may_not_wait_is_refused_while_a_turn_runs(lone: Process) -> None:
    thread, gate = await lone.thread(), Gate()
    started = await lone.start(thread, GatedProvider([gate]))
    await gate.stopped()
    with pytest.raises(Busy):
        await lone.turns.aside(thread, lone.starter("text: no"), "why?", when_busy=WhenBusy.REJECT)
    gate.open()
    await lone.ended(started.turn.id)


async def test_known_secrets_are_masked_in_question_and_answer(house: House) -> None:
    process = await house.process(secrets=("hunter2-hunter2",))
    thread = await process.thread()
    starter = process.starter(GatedProvider(text("it is hunter2-hunter2")))
    started = await process.turns.aside(thread, starter, "hunter2-hunter2?")
    await process.ended(started.turn.id)
    assert await answers(process, thread) != []
    assert "hunter2" not in repr(await process.events(thread))


async def test_one_that_comes_before_the_turn_is_ready_waits_for_that(house: House) -> None:
    reached, go = asyncio.Event(), asyncio.Event()

    class Slowly:
        async def look(self, cwd: str) -> Surroundings:
            reached.set()
            await go.wait()
            return Surroundings()

    process = await house.process(surroundings=Slowly())
    thread = await process.thread()
    model = GatedProvider(text("one"), text("two"))
    started = await process.start(thread, model)
    await soon(reached.wait())
    asking = asyncio.ensure_future(process.turns.ask_beside(thread, "why?"))
    await asyncio.sleep(0)
    assert not asking.done()
    go.set()
    await soon(asking)
    await process.ended(started.turn.id)
    assert len(await answers(process, thread)) == 1


async def test_one_that_goes_on_for_ever_is_ended_whether_it_speaks_or_calls(lone: Process) -> None:
    thread, look = await lone.thread(), FakeTool("look")
    piece = "x" * (LONGEST // 2)
    calls = [ToolStart("c1", "look"), *(ToolInput("c1", piece) for _ in range(3))]
    for lines in (text(piece, piece, piece), calls):
        model = GatedProvider(lines, text("because"))
        await ask(lone, thread, model, look)
        assert len(model.requests) == 1
    assert [(words, "did not end" in why) for words, why in await answers(lone, thread)] == [("", True)] * 2


async def test_one_that_comes_while_the_turn_ends_is_refused_and_an_accepted_one_is_told_in_any_case(
    lone: Process,
) -> None:
    thread, slow = await lone.thread(), SlowTool()
    started = await lone.start(thread, GatedProvider(call("slow"), text("done")), [slow])
    await soon(slow.begun.wait())
    running = lone.turns._runs.running[started.turn.id]
    asides = Asides(lone.feed, running, running.models, lambda: None, lambda: None)  # type: ignore[arg-type, return-value]
    asides.begin("why?")
    await asides.close()  # before it had a chance to begin
    with pytest.raises(TurnOver):
        asides.begin("and why that?")
    asked, answered = asides.leftovers(None)
    assert isinstance(asked, AsideAsked)
    assert isinstance(answered, AsideAnswered)
    assert (asked.id, asked.question, answered.error and answered.error.code) == (answered.id, "why?", "turn_over")
    slow.go.set()
    await lone.ended(started.turn.id)


@pytest.mark.req("mechanisms:M5.aside", "mechanisms:M2.recovery")
async def test_after_a_kill_its_end_is_told_once(house: House) -> None:
    one = await house.process()
    thread, gate = await one.thread(), Gate()
    await one.turns.aside(thread, one.starter(GatedProvider([gate])), "why?")
    await gate.stopped()
    await one.die()
    two = await house.process()
    for _ in range(2):
        await two.run(thread)
    (asked,) = await two.payloads(thread, AsideAsked)
    (answered,) = await two.payloads(thread, AsideAnswered)
    assert (asked.id, answered.error.code) == (answered.id, "interrupted")


async def test_only_so_many_are_open_beside_one_turn(lone: Process) -> None:
    thread, slow, gate = await lone.thread(), SlowTool(), Gate()
    model = GatedProvider(call("slow"), *([gate, *text("beside")] for _ in range(AT_ONCE)), text("done"))
    started = await lone.start(thread, model, [slow])
    await soon(slow.begun.wait())
    for _ in range(AT_ONCE):
        await lone.turns.ask_beside(thread, "why?")
    with pytest.raises(Overloaded):
        await lone.turns.ask_beside(thread, "and why that?")
    await until(lambda: len(model.requests) == AT_ONCE + 1)
    gate.open()
    slow.go.set()
    await lone.ended(started.turn.id)
    assert await answers(lone, thread) == [("beside", "")] * AT_ONCE
