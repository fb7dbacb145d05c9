"""Subagents: their own thread and turn below the caller's, in the same process, ended before the call that waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quintet.domain.agent import Agent
from quintet.domain.errors import AlreadyResolved
from quintet.domain.event import EffectUnknown, InteractionRequested, ThreadUpdated, TurnFinished, TurnQueued
from quintet.domain.grant import Scope
from quintet.domain.hook import HookEvent
from quintet.domain.interaction import Verdict
from quintet.domain.item import AssistantMessage, ResultStatus, TextPart, ToolResult, UserMessage
from quintet.domain.subagent import AT_ONCE, NOT_BELOW
from quintet.domain.thread import ThreadQuery
from quintet.domain.tool import CallScope, Effect, Prepared, ToolSpec
from quintet.domain.turn import Mode, TurnState
from quintet.engine.interactions import Answer, OnAsk
from quintet.engine.prompt import SUBAGENT
from quintet.engine.spending import Budget
from quintet.tools.ask_user import AskUserTool
from quintet.tools.plan_mode import EnterPlanModeTool, ExitPlanModeTool
from quintet.tools.task import TaskTool
from tests.fakes.engine import ME, House, parts
from tests.fakes.family import Family, agents, children, order, process, task
from tests.fakes.hooks import subscription
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool, SlowTool
from tests.fakes.waiting import soon

ANSWER = "---\ntext: the end\n"


async def test_what_was_added_to_the_workspace_is_worked_in_below_too_and_told_the_model(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread(directories=("/project/beside",))
    worker = GatedProvider(text("the report"))
    await Family(task(prompt="find it") + ANSWER, worker=worker).run(one, thread)
    (child,) = await children(one, thread)
    assert child.settings.directories == ("/project/beside",)
    assert "/project/beside" in worker.requests[0].instructions


@pytest.mark.req("mechanisms:M2.subagents", "models:T1")
async def test_a_task_runs_in_a_thread_below_and_its_last_words_are_the_result(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    worker = GatedProvider(call("look"), text("the report"))
    family = Family(task(prompt="find it") + ANSWER, worker=worker)
    turn = await family.run(one, thread, [FakeTool("look")])
    assert turn.state is TurnState.DONE
    (child,) = await children(one, thread)
    assert (child.parent, child.root, child.depth, child.parent_call) == (thread, thread, 1, "call_1_1")
    assert (child.settings.agent, child.title) == ("worker", "work of worker")
    (result,) = await one.bodies(thread, ToolResult)
    assert result.status is ResultStatus.OK
    assert result.text.startswith("the report\n")
    assert child.id in result.text
    assert result.display[0]["thread"] == child.id
    asked, *_ = await one.bodies(child.id)
    assert asked == UserMessage((TextPart("find it"),))
    assert [len(r.items) for r in worker.requests] == [1, 3], "its own context, nothing of the parent's"
    assert SUBAGENT in worker.requests[0].instructions
    assert worker.requests[0].instructions.startswith("You are worker.")
    events = await one.events(thread)
    assert order(events, "turn.finished") == [child.id, thread]
    (below,) = [e.payload.turn for e in events if isinstance(e.payload, TurnQueued) and e.thread == child.id]
    assert (below.for_turn, below.for_call) == (turn.id, "call_1_1")
    assert all(e.root == thread for e in events)


@pytest.mark.req("mechanisms:M2.subagents")
async def test_a_subagent_has_no_tool_that_its_caller_has_not(house: House) -> None:
    """Else an agent that may only look would change files by giving the work away."""
    one = await process(house, "worker")
    thread = await one.thread()
    worker = GatedProvider(call("touch"), text("done"))
    family, touch = Family(task() + ANSWER, worker=worker), FakeTool("touch")
    external = (ToolSpec("look_far", "", {}), ToolSpec("touch_far", "", {}))
    caller = Agent("looker", tools=("look", "look_far", "task"))
    await family.run(one, thread, [FakeTool("look"), touch], agent=caller, external_tools=external)
    assert {spec.name for spec in worker.requests[0].tools} == {"look", "look_far", "task"}
    (child,) = await children(one, thread)
    (result,) = await one.bodies(child.id, ToolResult)
    assert result.status is ResultStatus.ERROR
    assert touch.count == 0


@pytest.mark.req("mechanisms:M2.children")
async def test_lists_show_children_only_when_asked(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    await Family(task() + ANSWER, worker="text: done").run(one, thread)
    assert [t.id for t in await one.threads.page(ThreadQuery())] == [thread]
    assert len(await one.threads.page(ThreadQuery(children=True))) == 2


@pytest.mark.req("models:T2")
async def test_tasks_of_one_step_work_side_by_side(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    first, second = Gate(), Gate()
    worker = GatedProvider([first, *text("a")], [second, *text("b")])
    started = await Family(task() + task() + ANSWER, worker=worker).start(one, thread)
    await first.stopped()
    await second.stopped()
    second.open()
    first.open()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    results = [r.text[0] for r in await one.bodies(thread, ToolResult)]
    assert sorted(results) == ["a", "b"]


@pytest.mark.req("models:T3")
async def test_the_ninth_at_once_is_refused_in_words_and_the_eight_go_on(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    gates = [Gate() for _ in range(AT_ONCE)]
    worker = GatedProvider(*([gate, *text("done")] for gate in gates))
    family = Family(task() * (AT_ONCE + 1) + ANSWER, worker=worker)
    started = await family.start(one, thread)
    for gate in gates:
        await gate.stopped()
    await one.seen(lambda e: e.kind == "tool.finished", thread)
    (refused,) = await one.bodies(thread, ToolResult)
    assert refused.status is ResultStatus.ERROR
    assert "8 subagents are at work" in refused.text
    assert len(await children(one, thread)) == AT_ONCE
    for gate in gates:
        gate.open()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert len([r for r in await one.bodies(thread, ToolResult) if r.status is ResultStatus.OK]) == AT_ONCE
    again = Family("scope: turn\n" + task() + ANSWER, worker="text: more")
    await again.run(one, thread)
    assert (await one.bodies(thread, ToolResult))[-1].status is ResultStatus.OK, "their places are free again"


@pytest.mark.req("models:T4")
async def test_three_deep_works_and_the_fourth_is_not_offered_the_tool(house: House) -> None:
    one = await process(house, "a", "b", "c")
    thread = await one.thread()
    deepest = GatedProvider(call("task", '{"description": "x", "prompt": "y"}'), text("alone then"))
    family = Family(task("a") + ANSWER, a=task("b") + ANSWER, b=task("c") + ANSWER, c=deepest)
    assert (await family.run(one, thread)).state is TurnState.DONE
    here, depths = thread, []
    while below := await children(one, here):
        here = below[0].id
        depths.append(below[0].depth)
    assert depths == [1, 2, 3]
    assert "task" not in [spec.name for spec in deepest.requests[0].tools]
    (refused,) = await one.bodies(here, ToolResult)
    assert refused.status is ResultStatus.ERROR
    assert "Tool `task` not found" in refused.text


@pytest.mark.req("mechanisms:M2.cancel_children")
@pytest.mark.parametrize("how", ["cancel", "shutdown"])
async def test_what_ends_the_parent_ends_its_children_first(house: House, how: str) -> None:
    one, two = await process(house, "a", "b"), await house.process()
    thread = await one.thread()
    gate = Gate()
    family = Family(task("a") + ANSWER, a=task("b") + ANSWER, b=GatedProvider([*text("half"), gate]))
    started = await family.start(one, thread)
    await gate.stopped()
    if how == "cancel":
        await soon(two.turns.cancel(started.turn.id, ME, "enough"))
    else:
        await one.close()
    (a,) = await children(two, thread)
    (b,) = await children(two, a.id)
    events = await two.events(thread)
    assert order(events, "turn.finished") == [b.id, a.id, thread]
    ends = [e.payload for e in events if isinstance(e.payload, TurnFinished)]
    assert {end.state for end in ends} == {TurnState.CANCELLED if how == "cancel" else TurnState.INTERRUPTED}
    (result,) = await two.bodies(thread, ToolResult)
    assert result.status is ResultStatus.CANCELLED
    assert a.id in result.text, "so that a later turn can go on with it"
    assert [m.text for m in await two.bodies(b.id, AssistantMessage)] == ["half"]


@pytest.mark.req("models:T5")
async def test_a_cancel_of_the_child_alone_is_a_result_of_the_parent(house: House) -> None:
    one, two = await process(house, "worker"), await house.process()
    thread = await one.thread()
    gate = Gate()
    family = Family(task() + ANSWER, worker=GatedProvider([gate]))
    started = await family.start(one, thread)
    await gate.stopped()
    (child,) = await children(two, thread)
    await soon(two.turns.cancel((await two.turns.active(child.id)).id, ME, "not this one"))
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    (result,) = await one.bodies(thread, ToolResult)
    assert result.status is ResultStatus.CANCELLED
    assert "not this one" in result.text


@pytest.mark.req("models:T5")
async def test_a_child_that_fails_is_an_error_with_its_words(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    turn = await Family(task() + ANSWER, worker="error: 400 no such thing").run(one, thread)
    assert turn.state is TurnState.DONE
    (result,) = await one.bodies(thread, ToolResult)
    assert result.status is ResultStatus.ERROR
    assert "no such thing" in result.text


@pytest.mark.req("mechanisms:M2.subagents")
async def test_a_child_is_steered_from_another_process(house: House) -> None:
    one, two = await process(house, "worker"), await house.process()
    thread = await one.thread()
    gate = Gate()
    worker = GatedProvider([gate, *text("first")], text("second"))
    started = await Family(task() + ANSWER, worker=worker).start(one, thread)
    await gate.stopped()
    (child,) = await children(two, thread)
    await soon(two.turns.steer(child.id, parts("also this"), ME))
    gate.open()
    await one.ended(started.turn.id)
    assert worker.requests[1].items[-1].body == UserMessage((TextPart("also this"),), steered=True)
    (result,) = await one.bodies(thread, ToolResult)
    assert result.text.startswith("second")


@pytest.mark.req("models:T6")
async def test_a_child_asks_under_its_root_and_a_grant_of_the_root_holds_for_it(house: House) -> None:
    one, two = await process(house, "worker"), await house.process()
    thread = await one.thread()
    put = FakeTool("put", effect=Effect.WRITE)
    script = 'tool_call: put {"paths": ["/project/here/x"]}\n---\n' * 2
    family = Family(
        task() + task() + "---\n" + 'tool_call: put {"paths": ["/project/here/x"]}\n' + ANSWER,
        worker=script + "text: ok",
    )
    started = await family.start(one, thread, [put], mode=Mode.ASK)
    asked = await one.asked(thread)
    found = await two.journal.interaction(asked)
    assert (found.root, found.subagent) == (thread, "worker")
    assert found.thread in {child.id for child in await children(two, thread)}
    both = [i.id for i in await two.interactions.pending(thread)]
    if len(both) < 2:
        await one.seen(
            lambda e: isinstance(e.payload, InteractionRequested) and e.payload.interaction.id != asked, thread
        )
        both = [i.id for i in await two.interactions.pending(thread)]
    await soon(two.interactions.answer(both[0], Answer(Verdict.ALLOW, remember=Scope.THREAD), ME))
    with pytest.raises(AlreadyResolved):  # what is remembered has answered it, too
        await soon(two.interactions.answer(both[1], Answer(Verdict.ALLOW), ME))
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert put.count == 5, "the others were covered by what was remembered for the thread"
    assert len(await one.payloads(thread, InteractionRequested)) == 2


@pytest.mark.req("models:T7")
async def test_the_parents_mode_is_an_upper_bound_also_when_it_is_tightened_later(house: House) -> None:
    one, two = await process(house, "worker"), await house.process()
    thread = await one.thread()
    put = FakeTool("put", effect=Effect.WRITE)
    gate = Gate()
    worker = GatedProvider([gate, *call("put")], text("could not"))
    started = await Family(task() + ANSWER, worker=worker).start(one, thread, [put])
    await gate.stopped()
    await soon(two.turns.set_mode(thread, Mode.READ_ONLY, ME))
    gate.open()
    await one.ended(started.turn.id)
    assert put.count == 0
    (child,) = await children(one, thread)
    (result,) = await one.bodies(child.id, ToolResult)
    assert result.status is ResultStatus.DENIED


@pytest.mark.req("models:T7")
async def test_one_below_neither_asks_nor_plans(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    worker = GatedProvider(text("ok"))
    tools = [AskUserTool(), EnterPlanModeTool(), ExitPlanModeTool(), FakeTool("look")]
    await Family(task() + ANSWER, worker=worker).run(one, thread, tools)
    names = {spec.name for spec in worker.requests[0].tools}
    assert names == {"look", "task"}
    assert not names & NOT_BELOW


@pytest.mark.req("models:T8")
async def test_a_former_child_goes_on_with_what_it_knows(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    worker = GatedProvider(text("first"), text("second"))
    family = Family(task() + ANSWER, worker=worker)
    await family.run(one, thread)
    (child,) = await children(one, thread)
    again = Family("scope: turn\n" + task("", "and now?", resume=child.id) + ANSWER, worker=worker)
    await again.run(one, thread)
    assert [c.id for c in await children(one, thread)] == [child.id]
    assert [i.body for i in worker.requests[1].items][1:] == [
        AssistantMessage("first"),
        UserMessage((TextPart("and now?"),)),
    ]
    assert (await one.bodies(thread, ToolResult))[-1].text.startswith("second")
    other = await one.thread()
    await again.run(one, other)
    (refused,) = await one.bodies(other, ToolResult)
    assert refused.status is ResultStatus.ERROR
    assert "no subagent of this thread" in refused.text


@pytest.mark.req("models:T9")
async def test_after_a_kill_children_end_first_and_the_parent_knows_whom_to_resume(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    slow = SlowTool(effect=Effect.NONE)
    await Family(task() + ANSWER, worker="tool_call: slow {}\n").start(one, thread, [slow])
    await slow.started()
    await one.die()
    two = await process(house, "worker")
    await two.threads.get(thread)
    (child,) = await children(two, thread)
    events = await two.events(thread)
    assert order(events, "turn.finished") == [child.id, thread]
    (result,) = await two.bodies(thread, ToolResult)
    assert result.status is ResultStatus.CANCELLED
    assert child.id in result.text
    assert [e for e in events if isinstance(e.payload, EffectUnknown)] == []
    worker = GatedProvider(text("went on"))
    await Family("scope: turn\n" + task("", resume=child.id) + ANSWER, worker=worker).run(two, thread)
    assert (await two.bodies(thread, ToolResult))[-1].text.startswith("went on")


@pytest.mark.req("models:T9")
async def test_a_task_is_unknown_only_when_something_of_its_child_is(house: House) -> None:
    one = await process(house, "a", "b")
    thread = await one.thread()
    slow = SlowTool(effect=Effect.EXECUTE)
    family = Family(task("a") + ANSWER, a=task("b") + ANSWER, b="tool_call: slow {}\n")
    await family.start(one, thread, [slow])
    await slow.started()
    await one.die()
    two = await house.process()
    recovery = (await two.threads.get(thread)).recovery
    assert len(recovery.turns) == 3
    (a,) = await children(two, thread)
    (b,) = await children(two, a.id)
    unknown = [e.thread for e in await two.events(thread) if isinstance(e.payload, EffectUnknown)]
    assert unknown == [b.id, a.id, thread]
    for here in (thread, a.id, b.id):
        (result,) = await two.bodies(here, ToolResult)
        assert result.status is ResultStatus.UNKNOWN
    assert slow.count == 1


@pytest.mark.req("mechanisms:M2.children")
async def test_deleting_the_root_ends_and_erases_its_children(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    gate = Gate()
    await Family(task() + ANSWER, worker=GatedProvider([gate])).start(one, thread)
    await gate.stopped()
    (child,) = await children(one, thread)
    await soon(one.threads.delete(thread, ME))
    assert await one.threads.page(ThreadQuery(children=True)) == []
    left = [e.kind for e in await one.events(thread) if e.thread == child.id]
    assert set(left) <= {"thread.deleted"}


@pytest.mark.req("models:T11")
async def test_what_a_child_spends_counts_for_the_turn_it_works_for(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    one_dollar = "usage: in=1 out=0\n"
    steps = "---\n".join(f"tool_call: look {{}}\n{one_dollar}" for _ in range(9))
    family = Family(task() + one_dollar + "---\n" + steps, prices=(1_000_000.0, 0.0), worker=steps)
    turn = await family.run(one, thread, [FakeTool("look")], budget=Budget(turn=4.0))
    assert turn.error is not None
    assert (turn.error.code, turn.error.data["spent"]) == ("budget_spent", 4.0)
    (child,) = await children(one, thread)
    assert len(await one.bodies(child.id, ToolResult)) == 3
    (result, *_) = await one.bodies(thread, ToolResult)
    assert "budget of this turn is spent" in result.text


@pytest.mark.req("models:T6")
async def test_where_nobody_can_be_asked_and_that_ends_the_turn_it_does_so_below_too(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    put = FakeTool("put", effect=Effect.WRITE)
    family = Family(task() + ANSWER, worker="tool_call: put {}\n---\ntext: x\n")
    turn = await family.run(one, thread, [put], mode=Mode.ASK, on_ask=OnAsk.FAIL)
    assert (turn.state, put.count) == (TurnState.FAILED, 0)
    assert turn.error is not None
    assert turn.error.code == "denied"


@pytest.mark.req("models:T7")
async def test_plan_mode_of_the_thread_above_holds_below(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread(plan_mode=True)
    put = FakeTool("put", effect=Effect.WRITE)
    await Family(task() + ANSWER, worker="tool_call: put {}\n---\ntext: x\n").run(one, thread, [put])
    assert put.count == 0


@pytest.mark.req("models:T1")
async def test_an_unknown_agent_is_a_result_that_names_those_there_are_and_no_thread(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    boss = GatedProvider(call("task", '{"description": "x", "prompt": "y", "agent": "nobody"}'), text("end"))
    await Family(boss, worker="text: x").run(one, thread)
    assert await children(one, thread) == []
    (result,) = await one.bodies(thread, ToolResult)
    assert result.status is ResultStatus.ERROR
    assert "coder, explorer, planner, worker" in result.text
    (told,) = [spec.description for spec in boss.requests[0].tools if spec.name == "task"]
    assert "- worker: does worker" in told


@pytest.mark.req("models:T7")
async def test_one_who_may_only_read_cannot_have_it_written_by_another(house: House) -> None:
    one = await house.process(agents=agents("boss", "worker", boss=Mode.READ_ONLY))
    thread = await one.thread(agent="boss")
    put = FakeTool("put", effect=Effect.WRITE)
    await Family(task() + ANSWER, worker="tool_call: put {}\n---\ntext: x\n").run(one, thread, [put])
    assert put.count == 0
    (child,) = await children(one, thread)
    assert [turn.mode for turn in await one.journal.turns(child.id)] == [Mode.READ_ONLY]


@pytest.mark.req("models:T7", "models:P4")
async def test_plan_mode_set_above_while_one_below_works_holds_from_its_next_step(house: House) -> None:
    one, two = await process(house, "worker"), await house.process()
    thread = await one.thread()
    put = FakeTool("put", effect=Effect.WRITE)
    gate = Gate()
    worker = GatedProvider([gate, *call("put")], text("could not"))
    started = await Family(task() + ANSWER, worker=worker).start(one, thread, [put])
    await gate.stopped()
    await two.threads.configure(thread, ThreadUpdated(plan_mode=True))
    gate.open()
    await one.ended(started.turn.id)
    assert put.count == 0


@pytest.mark.req("models:T8")
async def test_one_that_is_at_work_is_not_resumed_a_second_time(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    gate = Gate()
    worker = GatedProvider(text("first"), [gate, *text("second")])
    await Family(task() + ANSWER, worker=worker).run(one, thread)
    (child,) = await children(one, thread)
    twice = task("", resume=child.id) * 2
    started = await Family(f"scope: turn\n{twice}{ANSWER}", worker=worker).start(one, thread)
    await gate.stopped()
    after = (await one.journal.turn(started.turn.id)).started_ms
    await one.seen(lambda e: e.kind == "tool.finished" and e.turn == started.turn.id and e.at_ms >= after, thread)
    gate.open()
    await one.ended(started.turn.id)
    statuses = [r.status for r in await one.bodies(thread, ToolResult)]
    assert sorted(statuses[1:]) == [ResultStatus.ERROR, ResultStatus.OK]


@pytest.mark.req("models:T9")
async def test_an_answer_that_was_lost_on_the_way_up_is_still_with_the_child(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    family = Family(task() + ANSWER, worker="text: the report")
    await family.start(one, thread, hooks=[subscription(HookEvent.SUBAGENT_RESTS)])
    await one.asked(thread)  # the child has ended, and what it came to waits for a hook that nobody answers
    await one.die()
    two = await house.process()
    await two.threads.get(thread)
    (child,) = await children(two, thread)
    (result,) = await two.bodies(thread, ToolResult)
    assert result.status is ResultStatus.OK
    assert f"ended (done), but Quintet stopped before its answer was kept here. It stands in its thread {child.id}" in (
        result.text
    )


@pytest.mark.req("models:T5")
async def test_a_child_deleted_while_it_works_is_a_result_and_the_parent_goes_on(house: House) -> None:
    one, two = await process(house, "worker"), await house.process()
    thread = await one.thread()
    gate = Gate()
    started = await Family(task() + ANSWER, worker=GatedProvider([gate])).start(one, thread)
    await gate.stopped()
    (child,) = await children(one, thread)
    await soon(two.threads.delete(child.id, ME))
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    (result,) = await one.bodies(thread, ToolResult)
    assert result.status in (ResultStatus.CANCELLED, ResultStatus.ERROR)
    assert await children(one, thread) == []


@pytest.mark.req("mechanisms:M2.cancel_children")
async def test_a_call_beside_that_ends_the_turn_ends_the_children_first(house: House) -> None:
    one = await process(house, "worker")
    thread = await one.thread()
    gate = Gate()
    begin = asyncio.Event()

    class Held(FakeTool):
        async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
            await begin.wait()
            return await super().prepare(arguments, scope)

    put = Held("put", effect=Effect.WRITE)
    boss = task() + "tool_call: put {}\n" + ANSWER
    started = await Family(boss, worker=GatedProvider([gate])).start(
        one, thread, [put], mode=Mode.ASK, on_ask=OnAsk.FAIL
    )
    await gate.stopped()
    begin.set()
    assert (await one.ended(started.turn.id)).state is TurnState.FAILED
    (child,) = await children(one, thread)
    assert order(await one.events(thread), "turn.finished") == [child.id, thread]
    assert (await one.journal.turns(child.id))[0].state is TurnState.CANCELLED


async def test_agents_that_a_starter_brings_along_can_be_given_work(house: House) -> None:
    process = await house.process()
    brought = Agent("looker", "Looks.", "You only look.", tools=("read",))
    model = GatedProvider(
        call("task", '{"description": "d", "prompt": "p", "agent": "looker"}', "t1"), text("seen"), text("done")
    )
    thread = await process.thread()
    await process.run(thread, model, [TaskTool(), FakeTool("read"), FakeTool("shell")], subagents=[brought])
    above, below, _ = model.requests
    (told,) = (spec.description for spec in above.tools if spec.name == "task")
    assert "- looker: Looks." in told
    assert "You only look." in below.instructions
    assert [spec.name for spec in below.tools] == ["read"]
    (child,) = await children(process, thread)
    assert child.settings.agent == "looker"
