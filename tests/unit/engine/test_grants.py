"""Grants and deferred requests: what outlives the call it was made for, and how often it serves."""

from __future__ import annotations

import pytest

from quintet.domain.event import Draft, GrantMade, InteractionRequested, ToolStarted
from quintet.domain.grant import Grant, Scope, Subject
from quintet.domain.ids import new_id
from quintet.domain.interaction import Approval, Interaction, Verdict
from quintet.domain.item import ResultStatus, ToolResult
from quintet.domain.tool import Effect
from quintet.domain.turn import Mode, TurnState
from quintet.engine.interactions import Answer
from tests.fakes.clock import SettableClock
from tests.fakes.engine import ME, House, Process
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon

DENY = Answer(Verdict.DENY)


async def granted(process: Process, thread: str, **more: object) -> str:
    fields: dict[str, object] = {
        "id": new_id("grt"), "tool": "put", "subject": Subject.TOOL, "pattern": (), "scope": Scope.THREAD, "by": ME,
        "made_ms": 0, "thread": thread,
    }  # fmt: skip
    grant = Grant(**{**fields, **more})  # type: ignore[arg-type]
    await process.feed.append([Draft(GrantMade(grant), thread)])
    return grant.id


async def test_a_grant_serves_as_often_as_it_says(one: Process) -> None:
    thread, tool = await one.thread(), FakeTool("put", effect=Effect.WRITE)
    grant = await granted(one, thread, uses_left=2)
    provider = GatedProvider(*[call("put", call_id=f"c{n}") for n in range(3)], text("x"))
    started = await one.start(thread, provider, [tool], mode=Mode.ASK)
    await soon(one.interactions.answer(await one.asked(thread), DENY, ME))
    await one.ended(started.turn.id)
    assert tool.count == 2
    assert [p.rule for p in await one.payloads(thread, ToolStarted)] == [grant, grant]


async def test_of_two_calls_at_once_only_one_uses_the_last_use(one: Process) -> None:
    thread, tool = await one.thread(), FakeTool("put", effect=Effect.WRITE)
    await granted(one, thread, uses_left=1)
    both = [*call("put", call_id="c1"), *call("put", call_id="c2")]
    started = await one.start(thread, GatedProvider(both, text("x")), [tool], mode=Mode.ASK)
    await soon(one.interactions.answer(await one.asked(thread), DENY, ME))
    await one.ended(started.turn.id)
    assert tool.count == 1
    statuses = sorted(b.status for b in await one.bodies(thread, ToolResult))
    assert statuses == [ResultStatus.DENIED, ResultStatus.OK]


async def test_an_expired_grant_does_not_serve(house: House) -> None:
    clock = SettableClock()
    one = await house.process(clock=clock)
    thread, tool = await one.thread(), FakeTool("put", effect=Effect.WRITE)
    await granted(one, thread, expires_ms=clock.now_ms() + 1_000)
    await one.run(thread, GatedProvider(call("put"), text("x")), [tool], mode=Mode.ASK)
    clock.step(2)
    started = await one.start(thread, GatedProvider(call("put", call_id="c2"), text("x")), [tool], mode=Mode.ASK)
    await soon(one.interactions.answer(await one.asked(thread), DENY, ME))
    await one.ended(started.turn.id)
    assert tool.count == 1


@pytest.mark.req("mechanisms:M4.holds")
async def test_a_deferred_request_outlives_its_turn_and_can_still_be_answered(one: Process) -> None:
    thread, gate = await one.thread(), Gate()
    started = await one.start(thread, GatedProvider([gate]))
    await gate.stopped()
    lease = one.turns._runs.running[started.turn.id].lease
    asked = Interaction(new_id("int"), thread, thread, started.turn.id, "c1", Approval("put", "put it"), 0, holds=False)
    await one.feed.say(lease, InteractionRequested(asked))
    gate.open()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert [i.id for i in await one.interactions.pending(thread)] == [asked.id]
    answered = await soon(one.interactions.answer(asked.id, Answer(Verdict.ALLOW), ME))
    assert answered.decision is not None
    assert await one.interactions.pending(thread) == []


@pytest.mark.req("mechanisms:M2.answers")
async def test_an_answer_nobody_here_heard_of_still_comes_before_the_timeout(house: House) -> None:
    one, other = await house.process(), await house.process()
    thread, tool = await one.thread(), FakeTool("put", effect=Effect.WRITE)
    started = await one.start(
        thread, GatedProvider(call("put"), text("x")), [tool], mode=Mode.ASK, interaction_timeout_s=0.3
    )
    asked = await one.asked(thread)
    await one.feed.tailing.close()  # this process is deaf now
    await soon(other.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    assert (await other.ended(started.turn.id)).state is TurnState.DONE
    assert tool.count == 1
