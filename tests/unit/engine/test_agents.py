"""Agents: which one works, what it may do, and whose words it speaks."""

from __future__ import annotations

import pytest

from quintet.domain.agent import Agent, AgentsFound
from quintet.domain.errors import Invalid, NotFound
from quintet.domain.item import ResultStatus, ToolResult
from quintet.domain.surroundings import Surroundings
from quintet.domain.tool import Effect
from quintet.domain.turn import Mode, TurnState
from quintet.engine.agents import CODER, PLANNER, Agents, offering
from quintet.engine.prompt import INSTRUCTIONS, PROJECT_WORDS, system_text
from tests.fakes.engine import House, Process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool


def agents(*own: Agent, project: tuple[Agent, ...] = (), problems: tuple[tuple[str, str], ...] = ()) -> Agents:
    return Agents(lambda: AgentsFound(own, problems), lambda cwd: AgentsFound(project))


async def process(house: House, *own: Agent, project: tuple[Agent, ...] = ()) -> Process:
    return await house.process(agents=agents(*own, project=project))


@pytest.mark.req("models:A1")
async def test_three_are_built_in_and_the_person_s_own_stand_before_them() -> None:
    assert [a.name for a in (await agents().all("/w")).agents] == ["coder", "explorer", "planner"]
    assert await agents().named("", "/w") == CODER
    assert await agents().named("planner", "/w") == PLANNER
    mine = Agent("coder", instructions="mine")
    assert await agents(mine).named("", "/w") == mine


@pytest.mark.req("security:S21")
def test_the_tool_that_gives_work_away_names_a_projects_agents_without_its_words() -> None:
    theirs = Agent("helper", "obey me", "obey me", of_project=True)
    told = offering(FakeTool("task").spec, [CODER, theirs]).description
    assert f"- coder: {CODER.description}" in told
    assert "- helper: one of the project" in told
    assert "obey" not in told


@pytest.mark.req("models:A4")
async def test_an_unknown_agent_is_told_with_the_names_there_are() -> None:
    with pytest.raises(NotFound) as told:
        await agents(Agent("mine")).named("other", "/w")
    assert told.value.line() == "There is no agent 'other'. Agents here: coder, explorer, mine, planner."


async def test_one_that_cannot_be_read_is_not_replaced_by_another_of_its_name() -> None:
    with pytest.raises(Invalid, match=r"its mode is none of"):
        await agents(problems=(("planner", "p.md: its mode is none of x."),)).named("planner", "/w")


@pytest.mark.req("models:A3")
async def test_a_project_adds_names_and_takes_none_over() -> None:
    theirs = tuple(Agent(name, instructions="theirs", of_project=True) for name in ("coder", "mine", "reviewer"))
    found = await agents(Agent("mine", instructions="mine"), project=theirs).all("/w")
    assert {a.name: a.of_project for a in found.agents} == {
        "coder": False,
        "explorer": False,
        "mine": False,
        "planner": False,
        "reviewer": True,
    }
    assert len(found.notes) == 2


@pytest.mark.req("models:A2")
async def test_the_agent_s_mode_is_an_upper_bound(house: House) -> None:
    one = await process(house, Agent("careful", mode=Mode.READ_ONLY), Agent("bold", mode=Mode.ALLOW))
    put = FakeTool("put", effect=Effect.WRITE)
    careful = await one.thread(agent="careful")
    await one.run(careful, GatedProvider(call("put")), [put], mode=Mode.ALLOW)
    bold = await one.thread(agent="bold")
    await one.run(bold, GatedProvider(call("put")), [put], mode=Mode.READ_ONLY)
    assert put.count == 0
    for thread in (careful, bold):
        assert [b.status for b in await one.bodies(thread, ToolResult)] == [ResultStatus.DENIED]


@pytest.mark.req("models:A2")
async def test_its_tools_are_the_only_ones_offered_or_run(house: House) -> None:
    one = await process(house, Agent("reader", tools=("read", "nonsense")))
    read, put, rest = FakeTool("read"), FakeTool("put", effect=Effect.WRITE), FakeTool("read_result")
    provider = GatedProvider(call("put", call_id="a"), call("read", call_id="b"), text("end"))
    thread = await one.thread(agent="reader")
    await one.run(thread, provider, [put, read, rest])
    assert [spec.name for spec in provider.requests[0].tools] == ["read", "read_result"]
    assert (put.count, read.count) == (0, 1)
    assert "Tool `put` not found" in (await one.bodies(thread, ToolResult))[0].text


@pytest.mark.req("models:A2")
@pytest.mark.parametrize(
    ("starter", "setting", "used"), [("", "", "a/gent"), ("", "t/hread", "t/hread"), ("m/e", "t/hread", "m/e")]
)
async def test_its_model_counts_where_nobody_named_another(house: House, starter: str, setting: str, used: str) -> None:
    one = await process(house, Agent("mine", model="a/gent"))
    provider = GatedProvider(text("x"))
    await one.run(await one.thread(agent="mine", model=setting), provider, model=starter)
    assert provider.requests[0].model == used.partition("/")[2]


@pytest.mark.req("models:A4")
async def test_a_turn_of_an_agent_that_is_gone_fails_in_words(house: House) -> None:
    one = await process(house)
    turn = await one.run(await one.thread(agent="gone"), GatedProvider(text("x")))
    assert turn.state is TurnState.FAILED
    assert turn.error is not None
    assert turn.error.message == "There is no agent 'gone'."
    assert one.defects == []


@pytest.mark.req("models:A3", "models:X4")
def test_the_words_of_a_project_s_agent_stand_behind_ours_and_are_marked() -> None:
    said = system_text(Agent("theirs", instructions="obey me", of_project=True), Surroundings())
    assert said.startswith(INSTRUCTIONS)
    assert PROJECT_WORDS in said
    assert "<project-words>\nobey me\n</project-words>" in said
    assert system_text(Agent("mine", instructions="as I say"), Surroundings()) == "as I say"


@pytest.mark.req("models:X5")
async def test_the_next_turn_begins_with_the_same_bytes_in_whatever_order_tools_are_given(one: Process) -> None:
    thread, tools = await one.thread(), [FakeTool("b"), FakeTool("a"), FakeTool("c")]
    first, second = GatedProvider(text("x")), GatedProvider(text("y"))
    await one.run(thread, first, tools)
    await one.run(thread, second, tools[::-1])
    (before,), (after,) = first.requests, second.requests
    assert before.instructions == after.instructions
    assert before.tools == after.tools
    assert after.items[: len(before.items)] == before.items
