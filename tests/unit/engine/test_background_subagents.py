"""Subagents in the background: the call returns at once, the turn ends after them, their end is a notice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from quintet.domain.errors import ProviderFailed, StepLimit
from quintet.domain.event import HookResolved, NoticePosted, StepFinished, TurnFinished
from quintet.domain.hook import HookEvent
from quintet.domain.interaction import Verdict
from quintet.domain.item import Item, ToolResult, UserMessage, text_of
from quintet.domain.subagent import AT_ONCE
from quintet.domain.tool import Effect
from quintet.domain.turn import Mode, TurnState, WhenBusy
from quintet.engine.interactions import Answer, OnAsk
from quintet.tools.shell_output import ShellOutputTool
from quintet.tools.shell_stop import ShellStopTool
from quintet.workspace.background import Background
from tests.fakes.engine import ME, House, Process
from tests.fakes.family import Family, children, order, process
from tests.fakes.hooks import subscription
from tests.fakes.providers import Gate, GatedProvider, Line, call, text
from tests.fakes.tools import FakeTool, SlowTool
from tests.fakes.waiting import soon, until

LOOKING = (ShellOutputTool(Background()), ShellStopTool(Background()))


def give(call_id: str = "t1", agent: str = "worker", **more: Any) -> list[Line]:
    given = {"description": f"work of {agent}", "prompt": "do it", "agent": agent, "background": True, **more}
    return call("task", json.dumps(given), call_id)


def told(items: Sequence[Item]) -> list[str]:
    return [text_of(i.body) for i in items if isinstance(i.body, UserMessage) and i.body.notice]


async def step_over(one: Process, thread: str, number: int) -> None:
    def over(event: Any) -> bool:
        return isinstance(event.payload, StepFinished) and event.payload.number == number and event.thread == thread

    await one.seen(over, thread)


@pytest.mark.req("mechanisms:M2.background", "mechanisms:M2.tree_lease")
async def test_the_caller_goes_on_beside_it_and_its_turn_ends_after_it_with_one_more_step(house: House) -> None:
    one = await process(house, "worker")
    thread, gate = await one.thread(), Gate()
    boss = GatedProvider(give(), call("look", call_id="c2"), text("I wait"), text("the end"))
    family = Family(boss, worker=GatedProvider([gate, *text("the report")]))
    started = await family.start(one, thread, [FakeTool("look"), *LOOKING])
    await gate.stopped()
    await step_over(one, thread, 3)
    (child,) = await children(one, thread)
    first, second = await one.bodies(thread, ToolResult)
    assert child.id in first.text
    assert "the report" not in first.text
    assert second.text == "look done"
    assert (await one.journal.turn(started.turn.id)).state is TurnState.RUNNING
    gate.open()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert len(boss.requests) == 4
    (words,) = told(boss.requests[3].items)
    assert "Background subagent is done: work of worker" in words
    assert child.id in words
    assert "shell_output" in words
    assert "the report" not in words  # what it says is data, and is looked at
    assert order(await one.events(thread), "turn.finished") == [child.id, thread]


@pytest.mark.req("mechanisms:M2.background")
async def test_it_is_looked_at_and_stopped_like_a_command(house: House) -> None:
    one = await process(house, "worker", "other")
    thread, gate = await one.thread(), Gate()
    (boss_goes_on,) = (Gate(),)
    boss = GatedProvider([*give("t1"), *give("t2", "other")], [boss_goes_on, *text("-")])
    family = Family(boss, worker=GatedProvider(text("the report")), other=GatedProvider([*text("so far"), gate]))
    started = await family.start(one, thread, LOOKING)
    await gate.stopped()
    await boss_goes_on.stopped()
    below = {child.settings.agent: child.id for child in await children(one, thread)}
    running = one.turns._runs.running[started.turn.id]
    look, stop = one.turns.subagents.look, one.turns.subagents.stop
    done = await soon(look(running, below["worker"], 10.0))
    assert (done.state, done.text) == (TurnState.DONE, "the report")
    assert (await look(running, below["other"], 0.0)).state is TurnState.RUNNING
    assert (await soon(stop(running, below["other"]))).state is TurnState.CANCELLED
    assert (await soon(stop(running, below["worker"]))).state is TurnState.DONE  # over already: as it is
    boss_goes_on.open()
    await one.ended(started.turn.id)
    assert len(told(boss.requests[2].items)) == 2


async def test_the_model_reads_how_it_stands_and_its_words_with_the_tools_for_commands(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    family = Family(GatedProvider(give(), text("wait")), worker=GatedProvider(text("the report")))
    await family.run(one, thread, LOOKING)
    (child,) = await children(one, thread)
    asks = call("shell_output", json.dumps({"id": child.id, "wait_s": 5}), "c9")
    other = call("shell_output", json.dumps({"id": thread}), "c10")
    await Family(GatedProvider([*asks, *other], text("end"))).run(one, thread, LOOKING)
    results = {body.call_id: body.text for body in await one.bodies(thread, ToolResult)}
    assert results["c9"].startswith("the report\n")  # also of an earlier turn
    assert "is no subagent of this thread" in results["c10"]


@pytest.mark.req("mechanisms:M2.background", "mechanisms:M2.cancel_children")
async def test_a_cancel_ends_it_first_and_the_next_turn_is_told(house: House) -> None:
    one = await process(house, "worker")
    thread, gate = await one.thread(), Gate()
    family = Family(GatedProvider(give(), text("I wait")), worker=GatedProvider([gate]))
    started = await family.start(one, thread, LOOKING)
    await gate.stopped()
    await step_over(one, thread, 2)
    assert (await soon(one.turns.cancel(started.turn.id, ME))).state is TurnState.CANCELLED
    (child,) = await children(one, thread)
    assert order(await one.events(thread), "turn.finished") == [child.id, thread]
    model = GatedProvider(text("hm"))
    await Family(model).run(one, thread, LOOKING)
    (words,) = told(model.requests[0].items)
    assert "was stopped" in words


@pytest.mark.req("mechanisms:M2.background", "mechanisms:M2.recovery")
async def test_after_a_kill_its_end_is_told_once(house: House) -> None:
    one = await process(house, "worker")
    thread, gate = await one.thread(), Gate()
    family = Family(GatedProvider(give(), text("I wait")), worker=GatedProvider([gate]))
    await family.start(one, thread, LOOKING)
    await gate.stopped()
    await step_over(one, thread, 2)
    await one.die()
    two = await process(house, "worker")
    model = GatedProvider(text("hm"), text("hm"))
    for _ in range(2):
        await Family(model).run(two, thread, LOOKING)
    assert [len(told(request.items)) for request in model.requests] == [1, 1]
    (posted,) = await two.payloads(thread, NoticePosted)
    assert "interrupted" in posted.notice.body


async def test_a_steer_is_heard_while_the_turn_waits_for_one(house: House) -> None:
    one = await process(house, "worker")
    thread, gate = await one.thread(), Gate()
    boss = GatedProvider(give(), text("I wait"), text("I heard"), text("the end"))
    family = Family(boss, worker=GatedProvider([gate]))
    started = await family.start(one, thread, LOOKING)
    await gate.stopped()
    await step_over(one, thread, 2)
    await one.start(thread, "text: no", say="more", when_busy=WhenBusy.STEER)
    await step_over(one, thread, 3)
    gate.open()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert [len(told(request.items)) for request in boss.requests] == [0, 0, 0, 1]


@pytest.mark.req("mechanisms:M2.background")
async def test_eight_at_once_is_the_bound_and_one_that_has_ended_makes_room(house: House) -> None:
    one = await process(house, "worker", "quick")
    thread, slow = await one.thread(), SlowTool()
    calls = [line for n in range(AT_ONCE + 1) for line in give(f"t{n}")]
    boss = GatedProvider(calls, text("I wait"), *[text("-")] * AT_ONCE)
    workers = GatedProvider(*[call("slow")] * AT_ONCE, *[text("done")] * AT_ONCE)
    family = Family(boss, worker=workers)
    started = await family.start(one, thread, [slow, *LOOKING])
    await step_over(one, thread, 2)
    results = [r for r in await one.bodies(thread, ToolResult) if "already" in r.text]
    assert len(results) == 1
    slow.go.set()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert not one.turns.subagents._at_work
    again = Family(GatedProvider(give("x")), worker=GatedProvider(text("fine")))
    assert (await again.run(one, thread, LOOKING)).state is TurnState.DONE


async def test_whatever_else_ends_the_turn_ends_it_first(house: House) -> None:
    one = await process(house, "worker")
    thread, gate = await one.thread(), Gate()
    family = Family(GatedProvider(give(), call("slow", call_id="c2")), worker=GatedProvider([gate]))
    slow = SlowTool()
    started = await family.start(one, thread, [slow, *LOOKING], max_steps=2)
    await gate.stopped()
    slow.go.set()
    ended = await one.ended(started.turn.id)
    assert (ended.state, ended.error and ended.error.code) == (TurnState.FAILED, StepLimit.code)
    (child,) = await children(one, thread)
    assert order(await one.events(thread), "turn.finished") == [child.id, thread]


async def test_a_plain_no_above_ends_those_below_and_no_further_step_is_made(house: House) -> None:
    one = await process(house, "worker")
    thread, gate = await one.thread(), Gate()
    tool = FakeTool("shell", effect=Effect.EXECUTE)
    boss = GatedProvider(give(), call("shell", '{"command": "ls"}', "c2"))
    family = Family(boss, worker=GatedProvider([gate]))
    started = await family.start(one, thread, [tool, *LOOKING], mode=Mode.ASK)
    await gate.stopped()
    await one.interactions.answer(await one.asked(thread), Answer(Verdict.DENY, ends_turn=True), ME)
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert len(boss.requests) == 2
    states = [p.state for p in await one.payloads(thread, TurnFinished)]
    assert states == [TurnState.CANCELLED, TurnState.DONE]


async def test_where_nobody_can_be_asked_and_that_ends_the_turn_it_does_so_from_below_too(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    tool = FakeTool("shell", effect=Effect.EXECUTE)
    family = Family(
        GatedProvider(give(), text("I wait")), worker=GatedProvider(call("shell", '{"command": "ls"}', "c2"))
    )
    turn = await family.run(one, thread, [tool, *LOOKING], mode=Mode.ASK, on_ask=OnAsk.FAIL)
    assert (turn.state, turn.error and turn.error.code) == (TurnState.FAILED, "denied")


async def test_several_that_end_together_are_told_in_as_few_steps_as_it_takes(house: House) -> None:
    one = await process(house, "worker", "other")
    thread, slow = await one.thread(), SlowTool()
    boss = GatedProvider([*give("t1"), *give("t2", "other")], text("I wait"), *[text("-")] * 5)
    does = (call("slow"), text("done"))
    family = Family(boss, worker=GatedProvider(*does), other=GatedProvider(*does))
    started = await family.start(one, thread, [slow, *LOOKING])
    await step_over(one, thread, 2)
    slow.go.set()
    await one.ended(started.turn.id)
    assert len(told(boss.requests[-1].items)) == 2
    assert len(boss.requests) <= 4
    await asyncio.sleep(0)
    assert not one.defects


@pytest.mark.req("mechanisms:M2.background")
async def test_one_that_is_sent_on_before_all_of_its_first_end_is_over_is_waited_for_too(house: House) -> None:
    """A hook is still asked about the first end; that it is over must not be taken for the end of the second."""
    one = await process(house, "worker")
    thread, slow, gate, last = await one.thread(), SlowTool(), Gate(), Gate()
    sends_on: list[Line] = []
    boss = GatedProvider(give(), call("slow", call_id="c2"), sends_on, [last, *text("I wait")], text("the end"))
    family = Family(boss, worker=GatedProvider(text("first"), [gate, *text("second")]))
    hooks = [subscription(HookEvent.SUBAGENT_RESTS)]
    started = await family.start(one, thread, [slow, *LOOKING], hooks=hooks)
    await slow.started()
    asked = await one.asked(thread)
    (child,) = await children(one, thread)
    sends_on += give("t3", "", resume=child.id)
    slow.go.set()
    await gate.stopped()
    await one.interactions.answer(asked, Answer(Verdict.ALLOW), ME)
    await one.seen(lambda e: isinstance(e.payload, HookResolved), thread)
    last.open()
    await step_over(one, thread, 4)
    for _ in range(5):
        assert (await one.journal.turn(started.turn.id)).state is TurnState.RUNNING
    gate.open()
    await one.interactions.answer(await one.asked(thread), Answer(Verdict.ALLOW), ME)
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert order(await one.events(thread), "turn.finished") == [child.id, child.id, thread]


async def test_a_steer_that_comes_while_the_turn_looks_for_reports_is_heard_at_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await process(house, "worker")
    thread, gate, second = await one.thread(), Gate(), Gate()
    boss = GatedProvider(give(), [second, *text("I wait")], text("I heard"), text("the end"))
    family = Family(boss, worker=GatedProvider([gate]))
    started = await family.start(one, thread, LOOKING)
    await gate.stopped()
    await second.stopped()
    look, spoken = one.journal.thread, asyncio.Event()

    async def looked(name: str) -> Any:
        found = await look(name)
        if not spoken.is_set():
            spoken.set()
            await one.start(thread, "text: no", say="more", when_busy=WhenBusy.STEER)
        return found

    monkeypatch.setattr(one.journal, "thread", looked)
    second.open()
    await soon(spoken.wait())
    await step_over(one, thread, 3)
    gate.open()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE


class Clinging(SlowTool):
    """Takes its time also when it is cancelled."""

    def __init__(self) -> None:
        super().__init__("cling")
        self.lets_go = asyncio.Event()

    async def _wait(self, prepared: Any, context: Any) -> Any:
        try:
            return await super()._wait(prepared, context)
        except asyncio.CancelledError:
            await self.lets_go.wait()
            raise


@pytest.mark.req("mechanisms:M2.background")
async def test_a_turn_that_has_failed_and_is_cancelled_then_leaves_nothing_going_on(house: House) -> None:
    one = await process(house, "worker")
    thread, gate, cling = await one.thread(), Gate(), Clinging()
    boss = GatedProvider(give(), [gate, ProviderFailed("The server is down.")], [Gate()])
    started = await Family(boss, worker=GatedProvider(call("cling"))).start(one, thread, [cling])
    await cling.started()
    running = one.turns._runs.running[started.turn.id]
    await gate.stopped()
    await one.turns.ask_beside(thread, "why?")
    await until(lambda: len(boss.requests) == 3)
    gate.open()
    await until(lambda: cling.cancelled == 1)
    cancelling = asyncio.ensure_future(one.turns.cancel(started.turn.id, ME))
    await until(lambda: running.stopped_as is not None)
    for _ in range(5):
        assert (await one.journal.turn(started.turn.id)).state is TurnState.RUNNING
    cling.lets_go.set()
    await soon(cancelling)
    (child,) = await children(one, thread)
    assert order(await one.events(thread), "turn.finished") == [child.id, thread]
    assert boss.closed == 3
