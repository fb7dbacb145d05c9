"""Hooks around compactions, files and subagents."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.event import CompactionFinished, CompactionStarted, HookResolved
from quintet.domain.hook import HookAction, HookEvent
from quintet.domain.interaction import Verdict
from quintet.domain.item import ResultStatus, Summary, ToolResult
from quintet.domain.tool import ToolOutcome
from quintet.domain.turn import TurnState
from quintet.engine.interactions import Answer
from quintet.journal.clock import SystemClock
from quintet.tools.write import WriteTool
from quintet.workspace.environment import find_program
from quintet.workspace.history import WorkspaceHistory
from quintet.workspace.paths import PathGuard
from quintet.workspace.seen import Seen
from tests.fakes.engine import ME, House, Process, parts
from tests.fakes.family import Family, agents, children, task
from tests.fakes.hooks import hook, real_commands, subscription
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.summaries import Windowed, calls
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon

pytestmark = pytest.mark.skipif(find_program("bwrap", os.environ) is None, reason="bubblewrap is not installed")
LINE = "word " * 80  # 100 rough tokens
HOLD = "echo x >>asked; echo 'keep it' >&2; exit 2"


@pytest.fixture
async def begin(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    house = House("memory", tmp_path / "home")
    async with real_commands(tmp_path / "hooks-home") as commands:

        async def begun(*hooks: Any, **options: Any) -> Process:
            return await house.process(hooks=hooks, hook_commands=commands, **options)

        yield begun
        await house.close()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


def looking() -> FakeTool:
    async def run(prepared: Any, context: Any) -> ToolOutcome:
        return ToolOutcome(LINE)

    return FakeTool("look", run)


def lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.req("models:H11")
async def test_a_held_back_compaction_is_not_tried_again_in_that_turn_and_old_results_are_trimmed_instead(
    begin: Any, work: Path
) -> None:
    one = await begin(hook(HookEvent.BEFORE_COMPACTION, HOLD, "auto"))
    thread, model = await one.thread(str(work)), Windowed(*calls(12))
    turn = await one.run(thread, model, [looking()])
    assert turn.state is TurnState.DONE
    assert lines(work / "asked") == 1
    assert not model.asked_to_summarise
    assert not await one.bodies(thread, Summary)
    assert await one.payloads(thread, CompactionStarted)  # of the trimming, the last resort
    await one.run(thread, Windowed(*calls(2)), [looking()])
    assert lines(work / "asked") == 2  # the next turn asks again


@pytest.mark.req("models:H11")
async def test_a_requested_compaction_that_is_held_back_says_why(begin: Any, work: Path) -> None:
    one = await begin(hook(HookEvent.BEFORE_COMPACTION, HOLD, "manual"))
    thread = await one.thread(str(work))
    await one.run(thread, say=LINE)
    await one.run(thread, say=LINE)
    model = Windowed()
    started = await soon(one.turns.compact(thread, one.starter(model), ""))
    turn = await one.ended(started.turn.id)
    assert turn.state is TurnState.FAILED
    assert turn.error is not None
    assert turn.error.message == "A hook held the compaction back: keep it"
    assert not model.asked_to_summarise


@pytest.mark.req("models:H11", "models:H1")
async def test_hooks_hear_of_a_compaction_before_and_after(begin: Any, work: Path) -> None:
    one = await begin(
        *(hook(e, "cat >$(mktemp saved.XXX)") for e in (HookEvent.BEFORE_COMPACTION, HookEvent.AFTER_COMPACTION))
    )
    thread = await one.thread(str(work))
    await one.run(thread, say=LINE)
    await one.run(thread, say=LINE)
    started = await soon(one.turns.compact(thread, one.starter(Windowed()), ""))
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    told = await one.payloads(thread, HookResolved)
    assert [(t.event.value, t.target) for t in told] == [("PreCompact", "manual"), ("PostCompact", "manual")]
    (finished,) = await one.payloads(thread, CompactionFinished)
    given = sorted(path.read_text() for path in work.glob("saved.*"))
    assert f'"estimated_token_count":{finished.tokens_after}' in given[0]
    assert f'"token_count":{finished.tokens_before}' in given[1]


@pytest.mark.req("models:H7")
async def test_what_a_hook_makes_of_a_written_file_is_what_the_call_did_and_undo_takes_it_back(
    begin: Any, work: Path, tmp_path: Path
) -> None:
    (tmp_path / "history").mkdir()
    one = await begin(
        hook(HookEvent.AFTER_TOOL, "tr a-z A-Z <a.txt >b && mv b a.txt", "write"),
        history=WorkspaceHistory(str(tmp_path / "history"), os.environ, SystemClock()),
    )
    thread = await one.thread(str(work))
    model = GatedProvider(call("write", '{"path": "a.txt", "content": "after\\n"}'), text("x"))
    await one.run(thread, model, [WriteTool(PathGuard(), Seen())])
    assert (work / "a.txt").read_text() == "AFTER\n"
    (changed,) = (await soon(one.diffs.of(thread))).files
    assert "+AFTER" in changed.diff
    undone = (await soon(one.threads.revert(thread, 0, files=True))).files
    assert undone is not None
    assert not undone.conflicts
    assert not (work / "a.txt").exists()


@pytest.mark.req("models:H17", "models:H1")
async def test_a_subagents_calls_are_heard_and_its_input_and_rest_are_its_start_and_stop(
    begin: Any, work: Path
) -> None:
    rows = [hook(event, "cat >$(mktemp heard.XXXXXX)") for event in HookEvent]
    one = await begin(*rows, agents=agents("worker"))
    thread = await one.thread(str(work))
    family = Family(task(prompt="look at it") + "---\ntext: fine", worker="tool_call: look {}\n---\ntext: it is red")
    assert (await family.run(one, thread, [looking()])).state is TurnState.DONE
    (child,) = await children(one, thread)
    given = [json.loads(path.read_text()) for path in work.glob("heard.*")]
    below = {g["hook_event_name"] for g in given if g["session_id"] == child.id}
    assert below == {"PreToolUse", "PostToolUse"}
    above = {g["hook_event_name"]: g for g in given if g["session_id"] == thread}
    calls_and_ends = {"PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop"}
    assert set(above) == {"SessionStart", "UserPromptSubmit", "Stop"} | calls_and_ends
    assert (above["SubagentStart"]["agent_name"], above["SubagentStart"]["prompt"]) == ("worker", "look at it")
    assert (above["SubagentStop"]["agent_name"], above["SubagentStop"]["response"]) == ("worker", "it is red")


@pytest.mark.req("models:H8", "models:H17")
async def test_what_a_person_says_in_a_subagents_thread_is_an_input_like_any_other(begin: Any, work: Path) -> None:
    keep = "cat >$(mktemp told.XXXXXX)"
    rows = [hook(event, keep) for event in (HookEvent.THREAD_BEGUN, HookEvent.TURN_RESTS)]
    one = await begin(*rows, hook(HookEvent.INPUT_GIVEN, "grep -q secret && exit 2"), agents=agents("worker"))
    thread = await one.thread(str(work))
    worker = GatedProvider(text("done"), text("and more"))
    family = Family(task(prompt="tell a secret") + "---\ntext: fine", worker=worker)
    assert (await family.run(one, thread)).state is TurnState.DONE
    (child,) = await children(one, thread)
    refused = await soon(one.turns.start(child.id, parts("the secret plan"), family.starter()))
    assert (await one.ended(refused.turn.id)).state is TurnState.FAILED
    assert len(worker.requests) == 1, "the model is not asked"
    heard = await soon(one.turns.start(child.id, parts("go on"), family.starter()))
    assert (await one.ended(heard.turn.id)).state is TurnState.DONE
    told = [json.loads(path.read_text())["session_id"] for path in work.glob("told.*")]
    assert sorted(told) == sorted([thread, child.id] * 2)


@pytest.mark.req("models:H17")
async def test_a_subagent_whose_start_a_hook_blocks_is_not_begun_and_the_model_reads_why(
    begin: Any, work: Path
) -> None:
    one = await begin(hook(HookEvent.SUBAGENT_STARTED, HOLD, "^worker$"), agents=agents("worker"))
    thread = await one.thread(str(work))
    turn = await Family(task() + "---\ntext: fine", worker="text: done").run(one, thread)
    assert turn.state is TurnState.DONE
    (result,) = await one.bodies(thread, ToolResult)
    assert (result.status, result.text) == (ResultStatus.DENIED, "A hook did not let the subagent start: keep it")
    (told,) = await one.payloads(thread, HookResolved)
    assert (told.event, told.target, told.action) == (HookEvent.SUBAGENT_STARTED, "worker", HookAction.BLOCK)
    assert [await one.journal.turns(child.id) for child in await children(one, thread)] == [[]]


@pytest.mark.req("models:H12", "models:H17")
async def test_a_client_that_subscribed_is_asked_about_calls_of_subagents_too(begin: Any, work: Path) -> None:
    one = await begin(agents=agents("worker"))
    thread, tool = await one.thread(str(work)), looking()
    family = Family(task() + "---\ntext: fine", worker="tool_call: look {}\n---\ntext: done")
    started = await family.start(one, thread, [tool], hooks=[subscription(HookEvent.BEFORE_TOOL, "^look$")])
    asked = await one.asked(thread)
    (child,) = await children(one, thread)
    assert (await one.journal.interaction(asked)).thread == child.id
    await soon(one.interactions.answer(asked, Answer(Verdict.DENY, "not below"), ME))
    await one.ended(started.turn.id)
    assert tool.count == 0
