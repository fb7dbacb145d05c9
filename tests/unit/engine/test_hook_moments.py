"""Hooks around compactions, files and subagents."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.event import CompactionFinished, CompactionStarted, HookResolved
from quintet.domain.hook import HookAction, HookEvent, HookVerdict
from quintet.domain.item import Summary
from quintet.domain.thread import Thread
from quintet.domain.tool import ToolOutcome
from quintet.domain.turn import TurnState
from quintet.engine.running import RunningTurn
from quintet.journal.clock import SystemClock
from quintet.tools.write import WriteTool
from quintet.workspace.environment import find_program
from quintet.workspace.history import WorkspaceHistory
from quintet.workspace.paths import PathGuard
from quintet.workspace.seen import Seen
from tests.fakes.engine import House, Process
from tests.fakes.hooks import hook, real_commands
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


@pytest.mark.req("models:H17")
async def test_a_subagents_calls_are_heard_and_its_input_and_rest_are_not(begin: Any, work: Path) -> None:
    rows = [hook(event, "echo x >>heard-$(basename $0)-" + event.value) for event in HookEvent]
    one = await begin(*rows)
    parent = await one.thread(str(work))
    await one.run(parent)
    for path in work.glob("heard-*"):
        path.unlink()
    made = await one.journal.thread(parent)
    child = await child_of(one, made)
    await one.run(child, GatedProvider(call("look"), text("x")), [looking()])
    assert {path.name.rpartition("-")[2] for path in work.glob("heard-*")} == {"PreToolUse", "PostToolUse"}


@pytest.mark.req("models:H17")
async def test_a_block_at_a_subagents_start_is_handed_to_whoever_starts_it(begin: Any, work: Path) -> None:
    one = await begin(hook(HookEvent.SUBAGENT_STARTED, HOLD, "^reviewer$"), hook(HookEvent.SUBAGENT_RESTS, HOLD))
    thread = await one.thread(str(work))
    verdicts: list[HookVerdict] = []

    async def start(prepared: Any, context: Any) -> ToolOutcome:
        running: RunningTurn = next(iter(one.turns._running.values()))
        verdicts.append(await running.moments.subagent_started("reviewer", "look at it"))
        verdicts.append(await running.moments.subagent_started("coder", "do it"))
        await running.moments.subagent_rests("coder", "done")
        return ToolOutcome("done")

    await one.run(thread, GatedProvider(call("task"), text("x")), [FakeTool("task", start)])
    assert verdicts == [HookVerdict(True, "keep it"), HookVerdict()]
    told = await one.payloads(thread, HookResolved)
    assert [(t.event.value, t.target, t.action) for t in told] == [
        ("SubagentStart", "reviewer", HookAction.BLOCK),
        ("SubagentStop", "coder", HookAction.ALLOW),
    ]


async def child_of(process: Process, parent: Thread) -> str:
    from msgspec.structs import replace

    from quintet.domain.ids import new_id

    child = replace(parent, id=new_id("thr"), parent=parent.id, parent_call="c1", depth=1, last_ordinal=0)
    return (await process.feed.create_thread(replace(child, owner="", active_turn="", epoch=0))).id
