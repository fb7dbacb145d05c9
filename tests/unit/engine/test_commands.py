"""Commands: steer and cancel. Answered on their outcome; what was accepted is never lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from quintet.domain.command import Outcome
from quintet.domain.errors import ProviderFailed, TurnOver
from quintet.domain.event import StepRetried, ToolStarted, TurnSteered
from quintet.domain.item import ResultStatus, ToolCall, ToolResult, UserMessage
from quintet.domain.model import RetryChunk
from quintet.domain.tool import Effect
from quintet.domain.turn import TurnState
from tests.fakes.engine import ME, Process, parts
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool, SlowTool
from tests.fakes.waiting import soon


def steers(bodies: list[Any]) -> list[str]:
    return [b.parts[0].text for b in bodies if isinstance(b, UserMessage) and b.steered]


@pytest.mark.req("mechanisms:M2.steer", "mechanisms:M2.commands")
async def test_a_steer_during_the_last_step_reaches_the_model_before_the_turn_ends(one: Process) -> None:
    thread, gate = await one.thread(), Gate()
    provider = GatedProvider([*text("almost"), gate], text("and this"))
    started = await one.start(thread, provider)
    await gate.stopped()
    command = await soon(one.turns.steer(thread, parts("wait"), ME))
    assert command.outcome is Outcome.ACCEPTED
    gate.open()
    await one.ended(started.turn.id)
    assert len(provider.requests) == 2
    assert steers([i.body for i in provider.requests[1].items]) == ["wait"]
    assert len(await one.payloads(thread, TurnSteered)) == 1


@pytest.mark.req("mechanisms:M2.steer")
async def test_a_steer_during_a_tool_call_reaches_the_model_after_its_result(one: Process) -> None:
    thread, tool = await one.thread(), SlowTool()
    provider = GatedProvider(call("slow"), text("seen"))
    started = await one.start(thread, provider, [tool])
    await tool.started()
    await soon(one.turns.steer(thread, parts("faster"), ME))
    tool.go.set()
    await one.ended(started.turn.id)
    bodies = [i.body for i in provider.requests[1].items]
    assert isinstance(bodies[-2], ToolResult)
    assert steers(bodies[-1:]) == ["faster"]


async def _at_every_moment(one: Process, act: Callable[[str], Awaitable[object]], provider: Any, moments: int) -> None:
    """Do something to a turn 0, 1, 2 … turns of the event loop after it began, each time in a new thread."""
    for moment in range(moments):
        thread = await one.thread()
        made = provider()
        started = await one.start(thread, made, [FakeTool("quick", effect=Effect.WRITE)], say=f"{moment}")
        for _ in range(moment):
            await asyncio.sleep(0)
        accepted: object = None
        with contextlib.suppress(TurnOver):
            accepted = await soon(act(thread))
        turn = await one.ended(started.turn.id)
        given = steers(await one.bodies(thread))
        assert given == (["more"] if accepted is not None else []), f"at moment {moment}"
        if turn.state is TurnState.DONE:
            assert steers([i.body for i in made.requests[-1].items]) == given, f"at moment {moment}"
        assert len(await one.ends(turn.id, thread)) == 1


@pytest.mark.req("mechanisms:M2.steer")
@pytest.mark.parametrize("failing", [False, True])
async def test_a_steer_at_any_moment_is_given_to_the_model_or_refused(one: Process, failing: bool) -> None:
    def provider() -> GatedProvider:
        return GatedProvider(call("quick"), [ProviderFailed("no")] if failing else text("done"))

    async def steer(thread: str) -> object:
        return await one.turns.steer(thread, parts("more"), ME)

    await _at_every_moment(one, steer, provider, 60)
    assert one.defects == []


@pytest.mark.req("mechanisms:M2.steer")
async def test_a_steer_that_is_being_accepted_while_the_model_rests_is_not_lost(
    lone: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The acceptance is in the journal, but the turn's task has not heard of it when the last step ends."""
    thread, gate, slow = await lone.thread(), Gate(), Gate()
    settle = lone.journal.settle

    async def slowly(*given: Any, **more: Any) -> Any:
        done = await settle(*given, **more)
        await slow.pass_through()
        return done

    monkeypatch.setattr(lone.journal, "settle", slowly)
    provider = GatedProvider([gate])
    started = await lone.start(thread, provider)
    await gate.stopped()
    steer = asyncio.create_task(lone.turns.steer(thread, parts("late"), ME))
    await slow.stopped()
    gate.open()
    await lone.seen(lambda e: e.kind == "step.finished", thread)
    slow.open()
    await soon(steer)
    await lone.ended(started.turn.id)
    assert steers([i.body for i in provider.requests[-1].items]) == ["late"]


@pytest.mark.parametrize("end", ["cancel", "failure"])
async def test_a_steer_that_is_being_accepted_while_the_turn_stops_stays_as_an_item(
    lone: Process, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    thread, gate, slow = await lone.thread(), Gate(), Gate()
    settle = lone.journal.settle

    async def slowly(command: str, *given: Any, **more: Any) -> Any:
        done = await settle(command, *given, **more)
        if (await lone.journal.command(command)).kind == "steer":
            await slow.pass_through()
        return done

    monkeypatch.setattr(lone.journal, "settle", slowly)
    started = await lone.start(thread, GatedProvider([gate, ProviderFailed("broken")]))
    await gate.stopped()
    steer = asyncio.create_task(lone.turns.steer(thread, parts("late"), ME))
    await slow.stopped()
    if end == "cancel":
        cancel = asyncio.create_task(lone.turns.cancel(started.turn.id, ME))
        await lone.seen(lambda e: e.kind == "turn.cancel_requested", thread)
    gate.open()
    slow.open()
    await soon(steer)
    assert (await lone.ended(started.turn.id)).state is not TurnState.DONE
    assert steers(await lone.bodies(thread)) == ["late"]
    if end == "cancel":
        await soon(cancel)


@pytest.mark.req("mechanisms:M2.commands")
async def test_a_steer_after_the_end_is_refused(one: Process) -> None:
    thread = await one.thread()
    await one.run(thread)
    with pytest.raises(TurnOver):
        await soon(one.turns.steer(thread, parts("too late"), ME))
    assert steers(await one.bodies(thread)) == []


async def test_accepted_steers_survive_a_cancel_as_items(one: Process) -> None:
    thread, tool = await one.thread(), SlowTool()
    started = await one.start(thread, GatedProvider(call("slow")), [tool])
    await tool.started()
    for word in ("one", "two"):
        await soon(one.turns.steer(thread, parts(word), ME))
    await soon(one.turns.cancel(started.turn.id, ME))
    assert steers(await one.bodies(thread)) == ["one", "two"]
    assert len(await one.payloads(thread, TurnSteered)) == 2


async def test_a_cancel_at_any_moment_settles_everything_once(one: Process) -> None:
    """Also while a result or a step is being committed: nothing is there twice, every call has one result."""
    for moment in range(60):
        thread, tool = await one.thread(), FakeTool("quick", effect=Effect.WRITE)
        provider = GatedProvider([*text("a"), *call("quick", call_id="c1"), *call("quick", call_id="c2")], text("b"))
        started = await one.start(thread, provider, [tool])
        for _ in range(moment):
            await asyncio.sleep(0)
        with contextlib.suppress(TurnOver):
            await soon(one.turns.cancel(started.turn.id, ME))
        turn = await one.ended(started.turn.id)
        assert turn.state in (TurnState.CANCELLED, TurnState.DONE), turn
        events = await one.events(thread)
        for kind in ("step.started", "step.finished"):
            names = [e.payload.step for e in events if e.kind == kind]  # type: ignore[union-attr]
            assert len(names) == len(set(names)), f"{kind} at moment {moment}"
        results = [b.call_id for b in await one.bodies(thread, ToolResult)]
        assert len(results) == len(set(results)), f"results at moment {moment}"
        calls = [b.call_id for b in await one.bodies(thread, ToolCall) if not b.partial]
        assert set(results) == set(calls), f"calls at moment {moment}"
        begun = {e.payload.call_id for e in events if e.kind == "tool.started"}  # type: ignore[union-attr]
        done = [e.payload.call_id for e in events if e.kind == "tool.finished"]  # type: ignore[union-attr]
        assert begun == set(done), f"intents at moment {moment}"
        assert len(done) == len(set(done))
        assert [e.kind for e in events][-1] == "turn.finished"
    assert one.defects == []


async def test_a_call_whose_turn_was_cancelled_while_its_intent_was_written_does_not_run(
    lone: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, slow, tool = await lone.thread(), Gate(), FakeTool("put", effect=Effect.WRITE)
    append = lone.journal.append

    async def slowly(drafts: Any, **more: Any) -> Any:
        done = await append(drafts, **more)
        if isinstance(drafts[0].payload, ToolStarted):
            await slow.pass_through()
        return done

    monkeypatch.setattr(lone.journal, "append", slowly)
    started = await lone.start(thread, GatedProvider(call("put")), [tool])
    await slow.stopped()
    cancel = asyncio.create_task(lone.turns.cancel(started.turn.id, ME))
    await lone.seen(lambda e: e.kind == "command.settled", thread)
    slow.open()
    assert (await soon(cancel)).state is TurnState.CANCELLED
    assert tool.count == 0
    assert [b.status for b in await lone.bodies(thread, ToolResult)] == [ResultStatus.CANCELLED]


async def test_a_cancel_while_the_first_of_two_steers_is_given_keeps_both_once(
    lone: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, gate, slow = await lone.thread(), Gate(), Gate()
    append = lone.journal.append

    async def slowly(drafts: Any, **more: Any) -> Any:
        done = await append(drafts, **more)
        if any(isinstance(d.payload, TurnSteered) for d in drafts):
            await slow.pass_through()
        return done

    monkeypatch.setattr(lone.journal, "append", slowly)
    started = await lone.start(thread, GatedProvider([gate]))
    await gate.stopped()
    for word in ("one", "two"):
        await soon(lone.turns.steer(thread, parts(word), ME))
    gate.open()
    await slow.stopped()
    cancel = asyncio.create_task(lone.turns.cancel(started.turn.id, ME))
    await lone.seen(lambda e: e.kind == "turn.cancel_requested", thread)
    slow.open()
    assert (await soon(cancel)).state is TurnState.CANCELLED
    assert steers(await lone.bodies(thread)) == ["one", "two"]


async def test_a_model_is_stopped_also_when_the_cancel_comes_while_it_is_not_speaking(
    lone: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, slow = await lone.thread(), Gate()
    append = lone.journal.append

    async def slowly(drafts: Any, **more: Any) -> Any:
        done = await append(drafts, **more)
        if isinstance(drafts[0].payload, StepRetried):
            await slow.pass_through()
        return done

    monkeypatch.setattr(lone.journal, "append", slowly)
    provider = GatedProvider([RetryChunk(1, 0, "busy"), Gate()])
    started = await lone.start(thread, provider)
    await slow.stopped()
    cancel = asyncio.create_task(lone.turns.cancel(started.turn.id, ME))
    await lone.seen(lambda e: e.kind == "turn.cancel_requested", thread)
    slow.open()
    assert (await soon(cancel)).state is TurnState.CANCELLED
    assert provider.closed == 1


async def test_what_the_owner_remembers_of_commands_goes_with_the_turn(lone: Process) -> None:
    thread, tool = await lone.thread(), SlowTool()
    started = await lone.start(thread, GatedProvider(call("slow")), [tool])
    await tool.started()
    for _ in range(10):
        await soon(lone.turns.steer(thread, parts("x"), ME))
    tool.go.set()
    await lone.ended(started.turn.id)
    await asyncio.wait(lone.turns._runs.tasks or [asyncio.create_task(asyncio.sleep(0))])
    assert not lone.turns._runs.inbox._seen
