"""Plan mode: nothing is changed until a person agrees to what they were shown."""

from __future__ import annotations

import msgspec
import pytest

from quintet.domain.event import ThreadUpdated
from quintet.domain.interaction import Approval, Verdict
from quintet.domain.item import ResultStatus, ToolResult
from quintet.domain.tool import Effect
from quintet.domain.turn import Mode, TurnState
from quintet.engine.interactions import Answer, OnAsk
from quintet.engine.prompt import PLANNING
from quintet.tools.plan_mode import EnterPlanModeTool, ExitPlanModeTool
from tests.fakes.engine import ME, House, Process
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon

PLAN = msgspec.json.encode({"plan": "1. look\n2. write"}).decode()


def tools() -> tuple[FakeTool, list[object]]:
    put = FakeTool("put", effect=Effect.WRITE)
    return put, [put, EnterPlanModeTool(), ExitPlanModeTool()]


async def statuses(process: Process, thread: str) -> list[ResultStatus]:
    return [body.status for body in await process.bodies(thread, ToolResult)]


@pytest.mark.req("models:P1")
async def test_a_write_is_refused_in_plan_mode_also_in_mode_allow_and_the_model_is_told_why(one: Process) -> None:
    thread = await one.thread(plan_mode=True)
    put, given = tools()
    provider = GatedProvider(call("put"), text("a plan"))
    await one.run(thread, provider, given, mode=Mode.ALLOW)
    assert put.count == 0
    (result,) = await one.bodies(thread, ToolResult)
    assert result.status is ResultStatus.DENIED
    assert "exit_plan_mode" in result.text
    assert PLANNING in provider.requests[0].instructions


@pytest.mark.req("models:P2")
async def test_after_the_yes_to_the_plan_shown_the_turn_goes_on_in_its_former_mode(one: Process) -> None:
    thread = await one.thread(plan_mode=True)
    put, given = tools()
    provider = GatedProvider(call("exit_plan_mode", PLAN, "a"), call("put", call_id="b"))
    started = await one.start(thread, provider, given, mode=Mode.ALLOW)
    asked = await one.asked(thread)
    request = (await one.journal.interaction(asked)).request
    assert isinstance(request, Approval)
    assert request.plan == "1. look\n2. write"
    assert request.offers == ()  # nobody agrees to all plans at once
    assert put.count == 0
    await soon(one.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    await one.ended(started.turn.id)
    assert await statuses(one, thread) == [ResultStatus.OK, ResultStatus.OK]
    assert put.count == 1
    assert [u.plan_mode for u in await one.payloads(thread, ThreadUpdated) if u.plan_mode is not None] == [False]
    assert not (await one.journal.thread(thread)).settings.plan_mode
    assert PLANNING not in provider.requests[1].instructions


@pytest.mark.req("models:P3")
async def test_a_no_with_words_goes_to_the_model_and_planning_goes_on(one: Process) -> None:
    thread = await one.thread(plan_mode=True)
    put, given = tools()
    provider = GatedProvider(call("exit_plan_mode", PLAN, "a"), call("put", call_id="b"))
    started = await one.start(thread, provider, given, mode=Mode.ALLOW)
    asked = await one.asked(thread)
    await soon(one.interactions.answer(asked, Answer(Verdict.DENY, "tests first"), ME))
    await one.ended(started.turn.id)
    assert await statuses(one, thread) == [ResultStatus.DENIED, ResultStatus.DENIED]
    assert "tests first" in (await one.bodies(thread, ToolResult))[0].text
    assert (await one.journal.thread(thread)).settings.plan_mode
    assert put.count == 0


@pytest.mark.req("models:P2")
async def test_where_nobody_can_be_asked_plan_mode_stays(lone: Process) -> None:
    thread = await lone.thread(plan_mode=True)
    _, given = tools()
    turn = await lone.run(
        thread, GatedProvider(call("exit_plan_mode", PLAN)), given, mode=Mode.ALLOW, on_ask=OnAsk.DENY
    )
    assert turn.state is TurnState.DONE
    assert (await lone.journal.thread(thread)).settings.plan_mode


@pytest.mark.req("models:P1")
async def test_the_model_can_enter_plan_mode_by_itself_and_leave_only_what_it_is_in(lone: Process) -> None:
    thread = await lone.thread()
    put, given = tools()
    provider = GatedProvider(
        call("exit_plan_mode", PLAN, "a"), call("enter_plan_mode", call_id="b"), call("put", call_id="c")
    )
    await lone.run(thread, provider, given, mode=Mode.ALLOW)
    assert await statuses(lone, thread) == [ResultStatus.ERROR, ResultStatus.OK, ResultStatus.DENIED]
    assert (await lone.journal.thread(thread)).settings.plan_mode
    assert put.count == 0


@pytest.mark.req("models:P4")
async def test_plan_mode_set_by_another_process_holds_before_the_next_call_runs(house: House) -> None:
    here, there = await house.process(), await house.process()
    thread = await here.thread()
    put, given = tools()
    gate = Gate()
    provider = GatedProvider(call("put", call_id="a"), [gate, *call("put", call_id="b")])
    started = await here.start(thread, provider, given, mode=Mode.ALLOW)
    await gate.stopped()
    assert put.count == 1
    await soon(there.threads.configure(thread, ThreadUpdated(plan_mode=True)))
    gate.open()
    await here.ended(started.turn.id)
    assert await statuses(here, thread) == [ResultStatus.OK, ResultStatus.DENIED]
    assert put.count == 1
    assert [PLANNING in r.instructions for r in provider.requests] == [False, False, True]


async def test_a_call_beside_the_one_that_asks_to_leave_is_still_in_plan_mode(lone: Process) -> None:
    thread = await lone.thread(plan_mode=True)
    put, given = tools()
    both = [*call("exit_plan_mode", PLAN, "a"), *call("put", call_id="b")]
    started = await lone.start(thread, GatedProvider(both), given, mode=Mode.ALLOW)
    asked = await lone.asked(thread)
    await lone.seen(
        lambda e: e.kind == "item.added" and "put" in repr(e.payload) and "denied" in repr(e.payload), thread
    )
    await soon(lone.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    await lone.ended(started.turn.id)
    assert put.count == 0
