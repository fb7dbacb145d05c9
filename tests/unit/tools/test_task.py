"""The tool `task`: what is asked of a subagent, and how its report reads to the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quintet.domain.errors import Cancelled, Invalid, ProviderFailed, QuintetError
from quintet.domain.ids import new_id
from quintet.domain.item import ResultStatus
from quintet.domain.ports import Tool
from quintet.domain.subagent import Assignment, Report
from quintet.domain.tool import CallScope, Effect, ToolOutcome
from quintet.domain.turn import TurnState
from quintet.tools.shell_output import ShellOutputTool
from quintet.tools.shell_stop import ShellStopTool
from quintet.tools.task import SAYS_NOTHING, TaskTool
from quintet.workspace.background import Background
from tests.fakes.tool_context import FakeToolContext

CHILD = new_id("thr")
SCOPE = CallScope("/project")


async def reported(cwd: Path, report: Report | None = None, **arguments: Any) -> tuple[ToolOutcome, FakeToolContext]:
    tool, context = TaskTool(), FakeToolContext(str(cwd))
    context.report = report or context.report
    prepared = await tool.prepare({"description": "find it", "prompt": "look", **arguments}, CallScope(str(cwd)))
    return await tool.run(prepared, context), context


@pytest.mark.req("models:T1")
async def test_what_is_asked_reaches_the_subagent_as_it_was_said(tmp_path: Path) -> None:
    _, context = await reported(tmp_path, agent="planner")
    _, again = await reported(tmp_path, resume=CHILD)
    assert context.assigned == [Assignment("find it", "look", "planner")]
    assert again.assigned == [Assignment("find it", "look", "", CHILD)]
    assert TaskTool().spec.effect is Effect.NONE  # each call of the subagent is judged by itself


@pytest.mark.req("models:T1")
async def test_its_last_words_are_the_result_with_what_is_needed_to_go_on(tmp_path: Path) -> None:
    report = Report(CHILD, "trn_1", "worker", TurnState.DONE, "found", changed_files=("/p/a",))
    done, _ = await reported(tmp_path, report)
    assert done.text == f"found\n\n[subagent {CHILD}; `resume` goes on with it]"
    assert (done.status, done.message, done.changed_files) == (ResultStatus.OK, "worker: done", ("/p/a",))
    shown = {"type": "task", "thread": CHILD, "agent": "worker", "state": "done", "description": "find it"}
    assert done.display == (shown,)
    silent, _ = await reported(tmp_path, Report(CHILD, "trn_1", "worker", TurnState.DONE))
    assert silent.text.startswith(SAYS_NOTHING)


@pytest.mark.req("models:T5")
@pytest.mark.parametrize(
    ("state", "error", "status"),
    [
        (TurnState.FAILED, ProviderFailed("it broke"), ResultStatus.ERROR),
        (TurnState.INTERRUPTED, ProviderFailed("it broke"), ResultStatus.ERROR),
        (TurnState.CANCELLED, Cancelled("enough"), ResultStatus.CANCELLED),
    ],
)
async def test_one_that_did_not_finish_says_why_and_what_it_said_last(
    tmp_path: Path, state: TurnState, error: QuintetError, status: ResultStatus
) -> None:
    done, _ = await reported(tmp_path, Report(CHILD, "trn_1", "worker", state, "half", error.info()))
    assert done.status is status
    assert done.text.startswith(f"The subagent did not finish: {state}. {error.message}\n\nIts last words:\nhalf\n")
    assert CHILD in done.text


@pytest.mark.req("models:T1")
@pytest.mark.parametrize(
    "wrong", [{"prompt": " \n"}, {"prompt": ""}, {"description": ""}, {"resume": "yesterday"}, {"model": "far/m"}]
)
async def test_what_cannot_be_meant_is_refused_before_anything_is_begun(tmp_path: Path, wrong: dict[str, str]) -> None:
    given = {"description": "find it", "prompt": "look", **wrong}
    with pytest.raises(Invalid, match="task"):
        await TaskTool().prepare(given, CallScope(str(tmp_path)))


@pytest.mark.req("mechanisms:M2.background")
async def test_in_the_background_it_says_how_to_look_and_a_look_says_what_is_there(tmp_path: Path) -> None:
    at_work = Report(CHILD, "trn_1", "worker", TurnState.RUNNING, "so far")
    begun, context = await reported(tmp_path, at_work, background=True)
    assert context.assigned[0].background
    assert all(word in begun.text for word in (CHILD, "shell_output", "shell_stop"))
    assert "so far" not in begun.text
    tools: tuple[Tool, ...] = (ShellOutputTool(Background()), ShellStopTool(Background()))
    looked, stopped = [await tool.run(await tool.prepare({"id": CHILD}, SCOPE), context) for tool in tools]
    assert looked.text == stopped.text == "The subagent is still at work.\n\nIts last words so far:\nso far"
    context.report = Report(CHILD, "trn_1", "worker", TurnState.CANCELLED, "so far")
    looked, stopped = [await tool.run(await tool.prepare({"id": CHILD}, SCOPE), context) for tool in tools]
    assert (looked.status, stopped.status) == (ResultStatus.CANCELLED, ResultStatus.OK)
