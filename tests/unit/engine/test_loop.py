"""The loop: what the model says becomes deltas, then items; what it asks for becomes results; and again."""

from __future__ import annotations

import pytest

from quintet.domain.errors import Invalid, ProviderFailed
from quintet.domain.event import (
    ItemAdded,
    ReasoningDelta,
    StepFinished,
    StepRetried,
    TextDelta,
    ToolFinished,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
)
from quintet.domain.item import AssistantMessage, Reasoning, ResultStatus, ToolCall, ToolResult, UserMessage
from quintet.domain.model import Finish, FinishChunk, ReasoningChunk, RetryChunk, ToolInput, ToolStart, Usage
from quintet.domain.ports import ToolContext
from quintet.domain.tool import Effect, Prepared, Todo, ToolOutcome
from quintet.domain.turn import TurnState
from tests.fakes.engine import ME, Process
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool, SlowTool, failing, printing
from tests.fakes.waiting import soon, until

ALL_AT_ONCE = """
think: hm
think: , so
text: Let me
text:  look
tool_call: read#c1
tool_call_part: {"a"
tool_call_part: : 1}
tool_call: read#c2 {}
usage: in=10 out=5 cached=2
---
text: done
"""


@pytest.mark.req("mechanisms:M1.index")
async def test_one_step_streams_its_items_with_indexes_and_names(one: Process) -> None:
    thread = await one.thread()
    await one.run(thread, ALL_AT_ONCE, [FakeTool("read")])
    bodies = await one.bodies(thread)
    assert bodies[1:5] == [
        Reasoning("hm, so"),
        AssistantMessage("Let me look"),
        ToolCall("c1", "read", '{"a": 1}'),
        ToolCall("c2", "read", "{}"),
    ]
    items = {i.id: i for i in await one.threads.items(thread)}
    for kind in (TextDelta, ReasoningDelta, ToolInputDelta):
        deltas = await one.payloads(thread, kind)
        for name in {d.item for d in deltas}:
            mine = [d for d in deltas if d.item == name]
            assert [d.index for d in mine] == list(range(len(mine)))
            whole = "".join(d.text for d in mine)
            body = items[name].body
            assert whole == (body.input if isinstance(body, ToolCall) else body.text)  # type: ignore[union-attr]
            if kind is ToolInputDelta:
                assert isinstance(body, ToolCall)
                assert {(d.call_id, d.name) for d in mine} == {(body.call_id, "read")}


@pytest.mark.req("mechanisms:M1.index", "mechanisms:M5.ordinals")
async def test_items_carry_their_turn_and_ordinals_without_gaps(one: Process) -> None:
    thread = await one.thread()
    turns = [await one.run(thread, "scope: turn\n" + ALL_AT_ONCE, [FakeTool("read")]) for _ in range(2)]
    added = [p.item for p in await one.payloads(thread, ItemAdded)]
    assert [i.ordinal for i in added] == list(range(1, len(added) + 1))
    assert added == await one.threads.items(thread)
    assert {i.turn for i in added} == {t.id for t in turns}


async def test_items_come_after_their_deltas_and_usage_with_the_end_of_the_step(one: Process) -> None:
    thread = await one.thread()
    await one.run(thread, ALL_AT_ONCE, [FakeTool("read")])
    kinds = [e.kind for e in await one.events(thread)]
    assert kinds.index("text.delta") < kinds.index("step.finished")
    first, second = await one.payloads(thread, StepFinished)
    assert first.usage == Usage(input_tokens=10, output_tokens=5, cached_tokens=2)
    assert (first.finish, second.finish) == (Finish.TOOL_CALLS, Finish.STOP)
    assert (first.number, second.number) == (1, 2)


async def test_parallel_calls_run_at_once(one: Process) -> None:
    thread, tool = await one.thread(), SlowTool()
    calls = [line for n in range(3) for line in call("slow", call_id=f"c{n}")]
    started = await one.start(thread, GatedProvider(calls), [tool])
    await until(lambda: tool.running == 3)
    tool.go.set()
    await one.ended(started.turn.id)
    assert tool.most_at_once == 3
    assert len(await one.bodies(thread, ToolResult)) == 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (call("read", '{"broken'), "not valid JSON"),
        (call("read", "[1]"), "must be a JSON object"),
        (call("nothing"), "Tool `nothing` not found"),
        (call("fail"), "RuntimeError"),
        (call("refuse"), "give a path"),
    ],
    ids=["json", "no-object", "unknown", "exception", "refusal"],
)
async def test_what_goes_wrong_in_a_call_is_told_to_the_model_and_the_turn_goes_on(
    one: Process, given: list[object], words: str
) -> None:
    thread = await one.thread()
    provider = GatedProvider(given, text("I see"))  # type: ignore[arg-type]
    tools = [FakeTool("read"), failing(RuntimeError("secret detail")), failing(Invalid("give a path"), "refuse")]
    turn = await one.run(thread, provider, tools)
    assert turn.state is TurnState.DONE
    (result,) = await one.bodies(thread, ToolResult)
    assert result.status is ResultStatus.ERROR
    assert words in result.text
    assert "secret detail" not in result.text
    assert provider.requests[1].items[-1].body == result


async def test_repeated_call_ids_are_made_unique_also_over_turns(one: Process) -> None:
    thread, tool = await one.thread(), FakeTool("read")
    for _ in range(2):
        twice = [*call("read", '{"n": 1}', "same"), *call("read", '{"n": 2}', "same")]
        await one.run(thread, GatedProvider(twice, call("read", '{"n": 3}', "same"), text("x")), [tool])
    calls = await one.bodies(thread, ToolCall)
    assert len({c.call_id for c in calls}) == len(calls) == 6
    assert [c.input for c in calls] == ['{"n": 1}', '{"n": 2}', '{"n": 3}'] * 2
    assert {r.call_id for r in await one.bodies(thread, ToolResult)} == {c.call_id for c in calls}


async def test_what_came_before_a_failure_in_mid_stream_is_kept_and_marked(one: Process) -> None:
    thread = await one.thread()
    lines = [ReasoningChunk("why"), *text("half a sen"), ToolStart("c1", "read"), ToolInput("c1", '{"pa')]
    turn = await one.run(thread, GatedProvider([*lines, ProviderFailed("reset")]), [tool := FakeTool("read")])
    assert turn.state is TurnState.FAILED
    assert (await one.bodies(thread))[1:] == [
        Reasoning("why"),
        AssistantMessage("half a sen"),
        ToolCall("c1", "read", '{"pa', partial=True),
    ]
    assert tool.count == 0
    (step,) = await one.payloads(thread, StepFinished)
    assert step.error.code == "provider_failed"


async def test_what_the_model_was_saying_when_it_was_cancelled_is_kept_and_marked(one: Process) -> None:
    thread, gate = await one.thread(), Gate()
    provider = GatedProvider([*text("half ", "way"), gate])
    started = await one.start(thread, provider)
    await gate.stopped()
    await soon(one.turns.cancel(started.turn.id, ME))
    assert (await one.bodies(thread))[1:] == [AssistantMessage("half way", partial=True)]
    assert provider.closed == 1


@pytest.mark.req("security:S27")
async def test_the_intent_is_in_the_journal_before_the_tool_runs_and_its_result_after(one: Process) -> None:
    seen: list[list[str]] = []

    async def look(prepared: Prepared, context: ToolContext) -> ToolOutcome:
        seen.append([e.kind for e in await one.events(thread) if e.kind.startswith("tool.")])
        return ToolOutcome("ok")

    thread, tool = await one.thread(), FakeTool("put", look, Effect.WRITE)
    await one.run(thread, GatedProvider(call("put"), text("x")), [tool])
    assert seen == [["tool.called", "tool.input_delta", "tool.started"]]
    (intent,), (done,) = await one.payloads(thread, ToolStarted), await one.payloads(thread, ToolFinished)
    assert (intent.call_id, intent.name, intent.effect, intent.rule) == ("c1", "put", Effect.WRITE, "mode allow")
    assert (done.call_id, done.name, done.status) == ("c1", "put", ResultStatus.OK)


async def test_a_cancelled_call_leaves_a_cancelled_result(one: Process) -> None:
    thread, tool = await one.thread(), SlowTool(effect=Effect.EXECUTE)
    started = await one.start(thread, GatedProvider(call("slow")), [tool])
    await tool.started()
    await soon(one.turns.cancel(started.turn.id, ME))
    (result,) = await one.bodies(thread, ToolResult)
    (done,) = await one.payloads(thread, ToolFinished)
    assert result.status is done.status is ResultStatus.CANCELLED
    assert await one.journal.unknown_effects(thread) == []


async def test_a_tool_that_swallows_its_cancel_does_not_keep_the_turn_alive(one: Process) -> None:
    slow = SlowTool()

    async def swallow(prepared: Prepared, context: ToolContext) -> ToolOutcome:
        try:
            return await slow._wait(prepared, context)
        except BaseException:
            return ToolOutcome("what cancel?")

    thread, provider = await one.thread(), GatedProvider(call("swallow"), text("never"))
    started = await one.start(thread, provider, [FakeTool("swallow", swallow)])
    await slow.started()
    assert (await soon(one.turns.cancel(started.turn.id, ME))).state is TurnState.CANCELLED
    assert len(provider.requests) == 1


async def test_output_of_a_running_tool_is_streamed_with_indexes(one: Process) -> None:
    thread = await one.thread()
    await one.run(thread, GatedProvider(call("print"), text("x")), [printing("a", "b", "c")])
    deltas = await one.payloads(thread, ToolOutputDelta)
    assert [(d.call_id, d.name, d.index, d.stream, d.text) for d in deltas] == [
        ("c1", "print", n, "stdout", t) for n, t in enumerate("abc")
    ]


async def test_todos_and_retries_are_told(one: Process) -> None:
    async def plan(prepared: Prepared, context: ToolContext) -> ToolOutcome:
        await context.set_todos([Todo("first", "done")])
        return ToolOutcome("ok")

    thread = await one.thread()
    await one.run(thread, GatedProvider([RetryChunk(1, 0.5, "busy"), *call("plan")]), [FakeTool("plan", plan)])
    assert [r.reason for r in await one.payloads(thread, StepRetried)] == ["busy"]
    assert "todo.updated" in [e.kind for e in await one.events(thread)]


async def test_a_signature_without_words_is_kept(one: Process) -> None:
    thread = await one.thread()
    await one.run(thread, GatedProvider([ReasoningChunk("", "sig"), *text("x"), FinishChunk(Finish.STOP)]))
    assert await one.bodies(thread, Reasoning) == [Reasoning("", "sig")]


async def test_a_turn_of_thousands_of_deltas_keeps_them_all_in_order(one: Process) -> None:
    thread = await one.thread()
    await one.run(thread, "repeat: 5000 text: x")
    deltas = await one.payloads(thread, TextDelta)
    assert [d.index for d in deltas] == list(range(5000))
    assert await one.bodies(thread, AssistantMessage) == [AssistantMessage("x" * 5000)]
    assert len(await one.bodies(thread, UserMessage)) == 1
