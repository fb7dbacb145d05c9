"""A tool under another name: the model knows that one, everybody who allows or forbids knows the tool's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quintet.domain.agent import Agent, AgentsFound
from quintet.domain.errors import Invalid
from quintet.domain.event import ToolFinished, ToolStarted
from quintet.domain.grant import Scope
from quintet.domain.hook import Hook, HookEvent, HookScope, HookVerdict, blocked
from quintet.domain.interaction import Approval, ExternalCall, Verdict
from quintet.domain.item import ResultStatus, ToolCall, ToolResult, tool_of
from quintet.domain.tool import Effect, ToolOutcome, ToolSpec
from quintet.domain.turn import Mode
from quintet.engine.agents import Agents
from quintet.engine.interactions import Answer
from quintet.engine.spelling import Respelled, Spelling, Spellings
from quintet.tools.task import TaskTool
from tests.fakes.engine import ME, House, Process
from tests.fakes.hooks import hook, subscription
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.requests import items_of
from tests.fakes.tools import FakeTool


def inward(given: dict[str, Any]) -> dict[str, Any]:
    if "line" not in given:
        raise Invalid("shell: `line` is missing.")
    return {"command": given["line"]}


RUN = Spelling(
    "Run",
    "shell",
    "Runs.",
    {"type": "object"},
    inward,
    lambda given: {"line": given["command"]},
    lambda outcome, prepared: ToolOutcome(f"came of it: {outcome.text}", outcome.status),
)
LINE = '{"line": "ls"}'


def shell() -> FakeTool:
    return FakeTool("shell", effect=Effect.EXECUTE)


async def run(one: Process, tool: FakeTool, *steps: Any, **options: Any) -> tuple[str, GatedProvider]:
    """A turn with the tool under its other name; (thread, what was asked of the model)."""
    thread, provider = await one.thread(), GatedProvider(*steps)
    await one.run(thread, provider, [Respelled(tool, RUN)], **options)
    return thread, provider


async def test_the_model_is_offered_the_name_and_the_tool_gets_its_own_arguments(one: Process) -> None:
    tool = shell()
    thread, provider = await run(one, tool, call("Run", LINE), text("end"))
    (spec,) = provider.requests[0].tools
    assert (spec.name, spec.own, spec.effect) == ("Run", "shell", Effect.EXECUTE)
    assert tool.ran == [{"command": "ls"}]
    (made,) = await one.bodies(thread, ToolCall)
    assert (made.name, made.own, made.input, tool_of(made)) == ("Run", "shell", LINE, "shell")
    (result,) = await one.bodies(thread, ToolResult)
    assert (result.name, result.text) == ("Run", "came of it: shell done")


async def test_what_happened_is_recorded_under_the_tools_own_name(one: Process) -> None:
    thread, _ = await run(one, shell(), call("Run", LINE), text("end"))
    assert [said.name for said in await one.payloads(thread, ToolStarted)] == ["shell"]
    assert [said.name for said in await one.payloads(thread, ToolFinished)] == ["shell"]


async def test_what_is_wrong_with_arguments_is_said_under_the_name_the_model_knows(one: Process) -> None:
    thread, _ = await run(one, shell(), call("Run", "{}"), text("end"))
    (result,) = await one.bodies(thread, ToolResult)
    assert result.text == "Run: `line` is missing."


@pytest.mark.parametrize(("rule", "ran"), [("deny", 0), ("allow", 1)])
async def test_a_rule_holds_whatever_the_tool_is_called(house: House, rule: str, ran: int) -> None:
    tool = shell()
    mode = Mode.ALLOW if rule == "deny" else Mode.ASK
    await run(await house.process(rules={"shell: ls": rule}), tool, call("Run", LINE), text("end"), mode=mode)
    assert tool.count == ran


async def test_a_grant_made_under_one_name_holds_under_the_other(one: Process) -> None:
    tool, thread = shell(), await one.thread()
    first = await one.start(
        thread, GatedProvider(call("Run", LINE), text("end")), [Respelled(tool, RUN)], mode=Mode.ASK
    )
    asked = await one.journal.interaction(await one.asked(thread))
    assert isinstance(asked.request, Approval)
    assert asked.request.tool == "shell"
    await one.interactions.answer(asked.id, Answer(Verdict.ALLOW, remember=Scope.THREAD), ME)
    await one.ended(first.turn.id)
    await one.run(thread, GatedProvider(call("shell", '{"command": "ls"}'), text("end")), [tool], mode=Mode.ASK)
    assert tool.count == 2


async def test_an_agent_names_its_tools_by_their_own_names(house: House) -> None:
    tool = shell()
    mine = Agents(lambda: AgentsFound((Agent("coder", tools=("read",)),)))
    _, provider = await run(await house.process(agents=mine), tool, call("Run", LINE), text("end"))
    assert provider.requests[0].tools == ()
    assert tool.count == 0


class Objects:
    """Runs no command: blocks, and keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    async def run(self, hook: Hook, given: dict[str, Any], scope: HookScope) -> HookVerdict:
        self.told.append(given)
        return blocked("no", hook.source)

    async def digest(self, hook: Hook, cwd: str) -> str:
        return ""


async def test_a_hook_of_the_person_knows_the_tools_own_name_and_arguments(house: House) -> None:
    commands, tool = Objects(), shell()
    one = await house.process(hooks=[hook(HookEvent.BEFORE_TOOL, "x", "^shell$")], hook_commands=commands)
    await run(one, tool, call("Run", LINE), text("end"))
    assert tool.count == 0
    assert [(told["tool_name"], told["tool_input"]) for told in commands.told] == [("shell", {"command": "ls"})]


async def test_a_hook_of_the_client_knows_the_clients_name(one: Process) -> None:
    tool, thread = shell(), await one.thread()
    hooks = [subscription(HookEvent.BEFORE_TOOL, "^Run$"), subscription(HookEvent.BEFORE_TOOL, "^shell$", id="other")]
    provider = GatedProvider(call("Run", LINE), text("end"))
    started = await one.start(thread, provider, [Respelled(tool, RUN)], hooks=hooks)
    asked = await one.journal.interaction(await one.asked(thread))
    assert (asked.request.subscription, asked.request.target) == ("sub1", "Run")  # type: ignore[union-attr]
    assert asked.request.input["tool_input"] == {"line": "ls"}  # type: ignore[union-attr]
    await one.interactions.answer(asked.id, Answer(Verdict.ALLOW), ME)
    await one.ended(started.turn.id)
    assert tool.count == 1


async def test_what_was_done_elsewhere_is_told_in_the_words_of_this_turns_model(one: Process) -> None:
    tool, thread = shell(), await one.thread()
    await one.run(thread, GatedProvider(call("shell", '{"command": "ls"}'), text("end")), [tool])
    provider = GatedProvider(text("seen"))
    await one.run(thread, provider, [Respelled(tool, RUN)])
    told = [item.body for item in provider.requests[0].items]
    (made,) = [body for body in told if isinstance(body, ToolCall)]
    (result,) = [body for body in told if isinstance(body, ToolResult)]
    assert (made.name, json.loads(made.input), result.name) == ("Run", {"line": "ls"}, "Run")
    assert [body.name for body in await one.bodies(thread, ToolCall)] == ["shell"]  # the thread keeps what was said


async def test_a_model_that_calls_a_tool_by_its_own_name_is_understood(one: Process) -> None:
    tool = shell()
    thread, _ = await run(one, tool, call("shell", '{"command": "ls"}'), text("end"))
    assert tool.ran == [{"command": "ls"}]
    assert (await one.bodies(thread, ToolResult))[0].status is ResultStatus.OK


async def test_one_that_is_withheld_is_so_under_each_name(one: Process) -> None:
    tool = shell()
    steps = (call("Run", LINE, "c1"), call("shell", '{"command": "ls"}', "c2"), text("end"))
    await run(one, tool, *steps, withheld={"Run": "not here", "shell": "not here"})
    assert tool.count == 0


async def test_the_prompt_names_tools_as_the_model_knows_them(one: Process) -> None:
    leave = Spelling("Leave", "exit_plan_mode", "", {"type": "object"})
    thread, provider = await one.thread(plan_mode=True), GatedProvider(text("end"))
    await one.run(thread, provider, [Respelled(FakeTool("exit_plan_mode"), leave)])
    assert "with Leave." in provider.requests[0].instructions
    assert "exit_plan_mode" not in provider.requests[0].instructions


def test_of_two_names_for_one_tool_the_first_is_its_name() -> None:
    tool = FakeTool("read")
    rows = [Spelling(name, "read", "", {}) for name in ("ReadFile", "ReadMedia")]
    spellings = Spellings([Respelled(tool, row) for row in rows])
    assert spellings.name_of("read") == "ReadFile"
    assert spellings.own_names == {"ReadFile": "read", "ReadMedia": "read"}


@pytest.mark.parametrize("given", ["{not json", "[]", '{"other": 1}', ""])
def test_a_call_that_cannot_be_respelled_keeps_its_arguments(given: str) -> None:
    spellings = Spellings([Respelled(shell(), RUN)])
    assert spellings.outward("shell", given) == ("Run", given)
    assert spellings.outward("Run", given) == ("Run", given)
    assert spellings.outward("unknown", given) == ("unknown", given)


def test_items_stay_as_they_are_where_no_tool_has_another_name() -> None:
    items = items_of([ToolCall("c1", "shell", "{}")])
    assert Spellings([shell()]).respelled(items) is items


async def test_a_clients_tool_that_has_a_tools_own_name_is_the_clients(one: Process) -> None:
    tool, thread = shell(), await one.thread()
    theirs = ToolSpec("shell", "theirs", {"type": "object"}, external=True)
    provider = GatedProvider(call("shell", '{"command": "ls"}'), text("end"))
    started = await one.start(thread, provider, [Respelled(tool, RUN)], external_tools=[theirs])
    asked = await one.journal.interaction(await one.asked(thread))
    assert isinstance(asked.request, ExternalCall)
    await one.interactions.answer(asked.id, Answer(Verdict.ANSWER, result={"text": "theirs"}), ME)
    await one.ended(started.turn.id)
    assert tool.count == 0


async def test_a_tool_an_agent_is_without_is_not_given_to_its_subagents(house: House) -> None:
    tool = shell()
    mine = Agents(lambda: AgentsFound((Agent("mine", without=("shell",)),)))
    one = await house.process(agents=mine)
    thread = await one.thread(agent="mine")
    work = '{"description": "d", "prompt": "p", "agent": "coder"}'
    provider = GatedProvider(call("task", work), call("Run", LINE, "c2"), text("report"), text("end"))
    await one.run(thread, provider, [Respelled(tool, RUN), TaskTool()])
    assert [[spec.name for spec in request.tools] for request in provider.requests][:2] == [["task"], ["task"]]
    assert tool.count == 0
