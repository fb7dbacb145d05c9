"""Budgets: asked before each model call, kept across turns, threads and processes, and never silently ignored."""

from __future__ import annotations

import os
import time

import pytest

from quintet.domain.errors import ProviderFailed
from quintet.domain.event import StepFinished
from quintet.domain.ids import new_id
from quintet.domain.item import AssistantMessage, ToolResult
from quintet.domain.model import Usage, UsageChunk
from quintet.domain.thread import Thread
from quintet.domain.turn import TurnState
from quintet.engine.spending import Budget, local_midnight_ms
from tests.fakes.clock import SettableClock
from tests.fakes.engine import House, Process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool

DOLLAR = {"input_price": 1_000_000.0, "output_price": 0.0}  # a token of input costs a dollar
SPENDS_ONE = UsageChunk(Usage(1, 0))


def child_of(root: Thread) -> Thread:
    return Thread(
        new_id("thr"), root.id, root.project, root.profile, root.settings, root.created_ms, root.created_ms,
        parent=root.id, depth=1,
    )  # fmt: skip


def spender(steps: int = 100) -> GatedProvider:
    """Calls a tool in each step, and each step costs a dollar."""
    return GatedProvider(*[[*text(f"step {n}"), *call("look", call_id=f"c{n}"), SPENDS_ONE] for n in range(steps)])


@pytest.mark.req("models:B2")
async def test_a_turn_ends_when_its_budget_is_spent_and_what_was_done_is_kept(one: Process) -> None:
    thread, provider = await one.thread(), spender()
    turn = await one.run(thread, provider, [FakeTool("look")], budget=Budget(turn=3.0), known=DOLLAR)
    assert (turn.state, turn.error and turn.error.code) == (TurnState.FAILED, "budget_spent")
    assert turn.error is not None
    assert "$3.00 of $3.00" in turn.error.message
    assert turn.error.data == {"budget": "turn", "spent": 3.0, "limit": 3.0}
    assert len(provider.requests) == 3
    assert [b.text for b in await one.bodies(thread, AssistantMessage)] == ["step 0", "step 1", "step 2"]
    assert len(await one.bodies(thread, ToolResult)) == 3
    [finished] = await one.ends(turn.id, thread)
    assert finished.steps == 3


@pytest.mark.req("models:B2")
async def test_each_turn_has_its_own_budget_and_a_thread_one_for_all_of_them(one: Process) -> None:
    thread = await one.thread()
    for expected in (2, 2, 1, 0):
        provider = spender()
        budget = Budget(turn=2.0, thread=5.0)
        turn = await one.run(thread, provider, [FakeTool("look")], budget=budget, known=DOLLAR)
        assert (turn.error and turn.error.code, len(provider.requests)) == ("budget_spent", expected)
    assert turn.error is not None
    assert turn.error.data["budget"] == "thread"
    other = await one.run(await one.thread(), spender(2), [FakeTool("look")], budget=Budget(thread=5.0), known=DOLLAR)
    assert other.state is TurnState.DONE


@pytest.mark.req("models:B2")
async def test_a_turn_within_its_budget_ends_as_usual(one: Process) -> None:
    budget = Budget(turn=3.0, thread=3.0, day=3.0)
    turn = await one.run(await one.thread(), spender(2), [FakeTool("look")], budget=budget, known=DOLLAR)
    assert turn.state is TurnState.DONE


@pytest.mark.req("models:B3")
async def test_a_days_budget_counts_what_other_processes_spend_while_a_turn_runs(house: House) -> None:
    here, there = await house.process(), await house.process()
    first = await there.run(await there.thread(), spender(2), [FakeTool("look")], known=DOLLAR)
    assert first.state is TurnState.DONE

    class Meanwhile(GatedProvider):
        async def stream(self, request):  # type: ignore[no-untyped-def]
            async for chunk in super().stream(request):
                yield chunk
            if len(self.requests) == 1:
                await there.run(await there.thread(), spender(2), [FakeTool("look")], known=DOLLAR)

    provider = Meanwhile(*[[*call("look", call_id=f"c{n}"), SPENDS_ONE] for n in range(9)])
    turn = await here.run(await here.thread(), provider, [FakeTool("look")], budget=Budget(day=6.0), known=DOLLAR)
    assert turn.error is not None
    assert turn.error.data == {"budget": "day", "spent": 6.0, "limit": 6.0}
    assert len(provider.requests) == 2


@pytest.mark.req("models:B3")
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Kiritimati"])
async def test_a_new_local_day_has_a_new_budget(house: House, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setitem(os.environ, "TZ", zone)
    time.tzset()
    try:
        evening = int(time.mktime((2026, 10, 24, 23, 59, 0, 0, 0, -1)) * 1000)  # the next day has 25 hours in Berlin
        clock = SettableClock(evening)
        process = await house.process(clock=clock)

        async def spend() -> int:
            provider = spender()
            await process.run(
                await process.thread(), provider, [FakeTool("look")], budget=Budget(day=2.0), known=DOLLAR
            )
            return len(provider.requests)

        assert [await spend(), await spend()] == [2, 0]
        clock.ms += 2 * 60_000
        assert [await spend(), await spend()] == [2, 0]
        clock.ms -= 3 * 60_000  # the clock is set back: the first day's money is still spent
        assert await spend() == 0
        assert local_midnight_ms(clock.now_ms()) == int(time.mktime((2026, 10, 24, 0, 0, 0, 0, 0, -1)) * 1000)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.req("models:B4")
@pytest.mark.parametrize("budget", [Budget(turn=1.0), Budget(thread=1.0), Budget(day=1.0)])
async def test_with_a_budget_a_model_without_a_price_is_refused_before_it_is_asked(one: Process, budget) -> None:
    provider = spender()
    thread = await one.thread()
    turn = await one.run(thread, provider, [FakeTool("look")], budget=budget, known={"input_price": 1.0})
    assert turn.error is not None
    assert turn.error.code == "not_configured"
    assert "output_price" in turn.error.next_step
    assert provider.requests == []
    without = await one.run(thread, spender(1), [FakeTool("look")])
    assert without.state is TurnState.DONE


@pytest.mark.req("models:B4")
@pytest.mark.parametrize("budget", [Budget(turn=9.0), Budget(day=9.0)])
async def test_with_a_budget_an_answer_without_usage_is_the_last_one(one: Process, budget) -> None:
    silent = GatedProvider(*[call("look", call_id=f"c{n}") for n in range(5)])
    turn = await one.run(await one.thread(), silent, [FakeTool("look")], budget=budget, known=DOLLAR)
    assert turn.error is not None
    assert (turn.error.code, len(silent.requests)) == ("budget_spent", 1)
    assert "did not say" in turn.error.message


@pytest.mark.req("models:B4")
async def test_a_failed_call_without_usage_does_not_stop_a_later_turn(one: Process) -> None:
    thread = await one.thread()
    broken = GatedProvider([ProviderFailed("no")])
    assert (await one.run(thread, broken, budget=Budget(turn=9.0), known=DOLLAR)).state is TurnState.FAILED
    turn = await one.run(thread, spender(), [FakeTool("look")], budget=Budget(thread=1.0), known=DOLLAR)
    assert turn.error is not None
    assert "not counting one step whose cost is unknown" in turn.error.message


@pytest.mark.req("models:B2")
async def test_a_subagents_steps_are_paid_from_the_turn_it_works_for(one: Process) -> None:
    root = await one.thread()
    before = await one.run(root, spender(2), [FakeTool("look")], known=DOLLAR)
    assert before.state is TurnState.DONE
    inner: list[int] = []

    class Outer(GatedProvider):
        async def stream(self, request):  # type: ignore[no-untyped-def]
            if len(self.requests) == 1:
                child = await one.journal.create_thread(child_of(await one.journal.thread(root)))
                provider = spender()
                await one.run(child.id, provider, [FakeTool("look")], budget=Budget(turn=4.0), known=DOLLAR)
                inner.append(len(provider.requests))
            async for chunk in super().stream(request):
                yield chunk

    outer = Outer(*[[*call("look", call_id=f"o{n}"), SPENDS_ONE] for n in range(9)])
    turn = await one.run(root, outer, [FakeTool("look")], budget=Budget(turn=4.0), known=DOLLAR)
    assert turn.error is not None
    assert (inner, len(outer.requests)) == ([3], 2)  # one outside, three inside, and the one that was under way
    assert turn.error.data["spent"] == 5.0


async def test_without_a_budget_nothing_is_read_for_it(one: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(**_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(one.journal, "usage", never, raising=True)
    assert (await one.run(await one.thread(), spender(2), [FakeTool("look")])).state is TurnState.DONE
    assert len(await one.payloads("", StepFinished)) == 3
