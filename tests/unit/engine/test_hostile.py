"""What models, tools and callers should never do, and do: it harms one call or one turn, never the thread."""

from __future__ import annotations

import asyncio

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.event import InteractionRequested, TextDelta, ToolOutputDelta
from quintet.domain.item import AssistantMessage, ResultStatus, ToolCall, ToolResult
from quintet.domain.ports import ToolContext
from quintet.domain.tool import Prepared, ToolOutcome, ToolSpec
from quintet.domain.turn import TurnState
from tests.fakes.engine import ME, House, Process, parts
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool, failing
from tests.fakes.waiting import soon

HALF = "\ud83d"  # half of a character, as a stream cut inside one gives it


async def test_half_a_character_from_the_model_does_not_end_the_turn(one: Process) -> None:
    thread = await one.thread()
    provider = GatedProvider([*text("a", HALF, "b"), *call("read", f'{{"a": "{HALF}"}}')], text("x"))
    turn = await one.run(thread, provider, [FakeTool("read")])
    assert turn.state is TurnState.DONE
    assert (await one.bodies(thread, AssistantMessage))[0] == AssistantMessage("a\ufffdb")
    assert "".join(d.text for d in await one.payloads(thread, TextDelta)).startswith("a\ufffdb")
    assert [c.input for c in await one.bodies(thread, ToolCall)] == ['{"a": "\ufffd"}']


async def test_a_whole_character_in_two_halves_is_made_whole(one: Process) -> None:
    thread = await one.thread()
    await one.run(thread, GatedProvider(text("\ud83d\ude00")))
    assert await one.bodies(thread, AssistantMessage) == [AssistantMessage("\U0001f600")]


@pytest.mark.parametrize(
    "outcome",
    [
        ToolOutcome(f"out {HALF}", message=HALF, diff=HALF, changed_files=(HALF,)),
        ToolOutcome("out", display=({"a": HALF},)),
        ToolOutcome("out", display=({"a": object()},)),
    ],
    ids=["text", "display", "unknown-type"],
)
async def test_what_cannot_be_stored_of_a_tools_outcome_does_not_end_the_turn(
    one: Process, outcome: ToolOutcome
) -> None:
    async def run(prepared: Prepared, context: ToolContext) -> ToolOutcome:
        context.emit_output("stdout", f"1{HALF}2")
        return outcome

    thread = await one.thread()
    turn = await one.run(thread, GatedProvider(call("odd"), text("x")), [FakeTool("odd", run)])
    assert turn.state is TurnState.DONE
    assert len(await one.bodies(thread, ToolResult)) == 1
    assert [d.text for d in await one.payloads(thread, ToolOutputDelta)] == ["1\ufffd2"]


@pytest.mark.parametrize("secrets", [(), ("canary-7f3a9c1e55d0",)], ids=["none-known", "secrets-known"])
async def test_an_input_that_is_no_text_is_refused_and_changes_nothing(house: House, secrets: tuple[str, ...]) -> None:
    one = await house.process(secrets=secrets)
    thread, gate = await one.thread(), Gate()
    before = len(await one.events())
    with pytest.raises(Invalid):
        await one.start(thread, say=f"hi {HALF}")
    with pytest.raises(Invalid):
        await one.threads.rename(thread, HALF)
    assert len(await one.events()) == before
    started = await one.start(thread, GatedProvider([gate]))
    await gate.stopped()
    with pytest.raises(Invalid):
        await soon(one.turns.steer(thread, parts(HALF), ME))
    gate.open()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE


async def test_a_tool_that_gives_up_as_if_cancelled_only_fails_its_call(one: Process) -> None:
    thread = await one.thread()
    tool = failing(asyncio.CancelledError())  # type: ignore[arg-type]
    turn = await one.run(thread, GatedProvider(call("fail"), text("x")), [tool])
    assert turn.state is TurnState.DONE
    assert [b.status for b in await one.bodies(thread, ToolResult)] == [ResultStatus.ERROR]


async def test_a_model_that_gives_up_as_if_cancelled_fails_the_turn(one: Process) -> None:
    thread = await one.thread()
    turn = await one.run(thread, GatedProvider([*text("half"), asyncio.CancelledError()]))
    assert turn.state is TurnState.FAILED
    assert await one.bodies(thread, AssistantMessage) == [AssistantMessage("half", partial=True)]


async def test_a_deny_rule_holds_for_a_clients_own_tool_too(house: House) -> None:
    one = await house.process(rules={"theirs": "deny"})
    thread, spec = await one.thread(), ToolSpec("theirs", "", {}, external=True)
    turn = await one.run(thread, GatedProvider(call("theirs"), text("x")), external_tools=[spec])
    assert turn.state is TurnState.DONE
    assert [b.status for b in await one.bodies(thread, ToolResult)] == [ResultStatus.DENIED]
    assert await one.payloads(thread, InteractionRequested) == []
