"""Checkpoints around calls: when they are made, what they say, whose changes they hold, and that they never hold up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from quintet.domain.checkpoint import FileKind
from quintet.domain.errors import StorageFull
from quintet.domain.event import CheckpointMade, CheckpointSettled
from quintet.domain.item import ResultStatus, ToolResult
from quintet.domain.ports import ToolContext
from quintet.domain.tool import Effect, Prepared, ToolOutcome
from quintet.domain.turn import TurnState
from quintet.engine import checkpoints
from quintet.engine.checkpoints import BACKGROUND, NAMELESS
from tests.fakes.engine import ME, House, Process
from tests.fakes.history import KeptFiles
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon
from tests.fakes.writing import CommandTool, WriteTool, runs, says, writes


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "old").write_text("as it was\n")
    return made


async def settled(one: Process, thread: str) -> CheckpointSettled:
    (only,) = await one.payloads(thread, CheckpointSettled)
    return only


def changed(fact: CheckpointSettled) -> list[tuple[str, bool]]:
    return [(c.path, c.shared) for c in fact.changes]


@pytest.mark.req("mechanisms:M8.killed")
async def test_a_call_is_said_to_run_for_as_long_as_it_does(
    house: House, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "BEAT_S", 0.001)
    history = KeptFiles()
    one = await house.process(history=history)
    thread, tool = await one.thread(str(work)), CommandTool(lambda _: None, hold=True)
    turn = (await one.start(thread, runs(), [tool])).turn.id
    await tool.started()

    async def said_three_times() -> None:
        while len(history.beats) < 3:
            await asyncio.sleep(0.001)

    await soon(said_three_times())
    assert set(history.beats) == {(await one.payloads(thread, CheckpointMade))[0].secured.manifest}
    history.hold = asyncio.Event()
    tool.go.set()

    async def being_compared() -> None:
        while not history.compared:
            await asyncio.sleep(0.001)

    await soon(being_compared())
    await asyncio.sleep(0.001)
    assert not [task for task in asyncio.all_tasks() if "_beat" in repr(task.get_coro())], "it no longer runs"
    history.hold.set()
    await one.turns.wait(turn, 10)


@pytest.mark.req("mechanisms:M8.before", "mechanisms:M8.settle")
async def test_what_a_command_could_destroy_is_said_before_it_runs_and_what_it_did_with_its_result(
    one: Process, work: Path
) -> None:
    thread = await one.thread(str(work))
    seen: list[list[str]] = []

    async def look(prepared: Prepared, context: ToolContext) -> ToolOutcome:
        seen.append([e.kind for e in await one.events(thread) if e.kind.startswith(("tool.s", "checkpoint"))])
        Path(prepared.cwd, "new").write_text("x")
        return ToolOutcome("ok")

    await one.run(thread, runs(), [FakeTool("shell", look, Effect.EXECUTE)])
    assert seen == [["checkpoint.made", "tool.started"]]
    events = [e for e in await one.events(thread) if e.turn]
    kinds = [e.kind for e in events]
    at = kinds.index("checkpoint.settled")
    assert kinds[at : at + 3] == ["checkpoint.settled", "tool.finished", "item.added"]
    assert len({e.at_ms for e in events[at : at + 3]}) == 1
    fact = await settled(one, thread)
    assert (changed(fact), fact.exact, fact.partial) == ([("new", False)], False, ())
    assert fact.changes[0].before.kind is FileKind.ABSENT


@pytest.mark.req("mechanisms:M8.before")
async def test_a_file_tool_secures_only_what_it_names_and_a_reading_tool_nothing(lone: Process, work: Path) -> None:
    thread = await lone.thread(str(work))
    await lone.run(thread, writes(("sub/a", "one")), [WriteTool()])
    await lone.run(thread, GatedProvider(call("read"), text("x")), [FakeTool("read")])
    (made,) = await lone.payloads(thread, CheckpointMade)
    assert (made.exact, made.secured.directory, made.secured.files) == (True, str(work), 1)
    assert changed(await settled(lone, thread)) == [("sub/a", False)]
    (result, _) = await lone.bodies(thread, ToolResult)
    assert result.diff == "its own diff"


@pytest.mark.req("mechanisms:M8.result")
async def test_a_command_s_result_names_what_it_changed_with_its_diff(lone: Process, work: Path) -> None:
    thread = await lone.thread(str(work))
    (work / "gone").write_text("bye\n")

    def act(directory: Path) -> None:
        (directory / "old").write_text("as it is\n")
        (directory / "gone").unlink()
        (directory / "bin").write_bytes(b"\0\1\2")

    await lone.run(thread, runs(), [CommandTool(act)])
    (result,) = await lone.bodies(thread, ToolResult)
    assert result.changed_files == tuple(str(work / name) for name in ("bin", "gone", "old"))
    assert "-as it was\n+as it is\n" in result.diff
    assert "+++ /dev/null\n" in result.diff
    assert "(binary: 0 -> 3 bytes)" in result.diff
    assert [(d["type"], d.get("path", "")) for d in result.display] == [
        ("shell", ""),
        ("diff", str(work / "bin")),
        ("diff", str(work / "gone")),
        ("diff", str(work / "old")),
    ]


@pytest.mark.req("mechanisms:M8.result")
async def test_a_diff_beside_a_result_is_bounded_and_says_how_much_is_missing(lone: Process, work: Path) -> None:
    thread = await lone.thread(str(work))

    def act(directory: Path) -> None:
        for number in range(60):
            (directory / f"f{number:02}").write_text(f"{number}\n" * 500)

    await lone.run(thread, runs(), [CommandTool(act)])
    (result,) = await lone.bodies(thread, ToolResult)
    assert len(result.changed_files) == 60
    assert len(result.diff) < 70_000
    shown = result.diff.count("+++ b/")
    assert 0 < shown < 60
    assert f"({60 - shown} more changed files are not shown here" in result.diff
    assert sum(d["type"] == "diff" for d in result.display) == 20


@pytest.mark.req("mechanisms:M8.result")
async def test_what_could_not_be_kept_is_told_beside_the_result(house: House, work: Path) -> None:
    one = await house.process(history=KeptFiles(largest=5))
    thread = await one.thread(str(work))
    await one.run(thread, runs(), [CommandTool(says("new", "x"))])
    assert (await settled(one, thread)).partial == ("old is larger than 5 bytes",)
    (result,) = await one.bodies(thread, ToolResult)
    assert result.display[-1] == {"type": "note", "text": "undo is partial: old is larger than 5 bytes"}


@pytest.mark.req("mechanisms:M8.settle")
async def test_what_a_failing_command_did_is_settled_too(lone: Process, work: Path) -> None:
    thread = await lone.thread(str(work))
    await lone.run(thread, runs(), [CommandTool(says("new", "x"), fail=RuntimeError("boom"))])
    assert changed(await settled(lone, thread)) == [("new", False)]
    (result,) = await lone.bodies(thread, ToolResult)
    assert (result.status, result.changed_files) == (ResultStatus.ERROR, (str(work / "new"),))


@pytest.mark.req("mechanisms:M8.settle", "reliability:R14")
async def test_what_a_cancelled_command_did_until_then_is_in_the_turn_s_last_commit(one: Process, work: Path) -> None:
    thread, tool = await one.thread(str(work)), CommandTool(says("new", "x"), hold=True)
    turn = (await one.start(thread, runs(), [tool])).turn.id
    await tool.started()
    await soon(one.turns.cancel(turn, ME))
    assert changed(await settled(one, thread)) == [("new", False)]
    (result,) = await one.bodies(thread, ToolResult)
    assert result.status is ResultStatus.CANCELLED


@pytest.mark.req("mechanisms:M8.settle", "reliability:R14")
async def test_a_comparison_that_hangs_does_not_keep_a_cancelled_turn(house: House, work: Path) -> None:
    history = KeptFiles()
    one = await house.process(history=history)
    thread, tool = await one.thread(str(work)), CommandTool(says("new", "x"), hold=True)
    turn = (await one.start(thread, runs(), [tool])).turn.id
    await tool.started()
    history.hold = asyncio.Event()
    assert (await soon(one.turns.cancel(turn, ME))).state is TurnState.CANCELLED
    assert await one.payloads(thread, CheckpointSettled) == []
    history.hold.set()
    found = await one.diffs.of(thread)
    assert [f.path for f in found.files] == [str(work / "new")], "whoever looks later compares"
    assert found.partial == ("the end of a shell call is unknown: it was cut off",)


@pytest.mark.req("mechanisms:M8.settle")
async def test_a_result_is_kept_when_the_turn_is_cancelled_while_it_is_being_compared(house: House, work: Path) -> None:
    history = KeptFiles()
    one = await house.process(history=history)
    thread = await one.thread(str(work))
    history.hold = asyncio.Event()
    tool = CommandTool(says("new", "x"))
    turn = (await one.start(thread, runs(), [tool])).turn.id
    await tool.started()
    async with asyncio.timeout(10):
        while not history.compared:
            await asyncio.sleep(0)
    await soon(one.turns.cancel(turn, ME))
    (result,) = await one.bodies(thread, ToolResult)
    assert (result.status, result.text) == (ResultStatus.OK, "done")


@pytest.mark.req("mechanisms:M8.before", "reliability:R9")
async def test_a_full_disk_before_a_call_ends_the_turn_and_nothing_runs(house: House, work: Path) -> None:
    history = KeptFiles()
    one = await house.process(history=history)
    thread = await one.thread(str(work))
    history.failing = StorageFull("No space is left.")
    turn = await one.run(thread, runs(), [CommandTool(says("new", "x"))])
    assert (turn.state, turn.error and turn.error.code) == (TurnState.FAILED, "storage_full")
    assert not (work / "new").exists()


@pytest.mark.req("mechanisms:M8.result")
async def test_a_history_that_fails_is_told_as_partial(house: House, work: Path) -> None:
    history = KeptFiles()
    one = await house.process(history=history)
    thread = await one.thread(str(work))
    history.failing = ValueError("secret words")
    await one.run(thread, runs(), [CommandTool(says("new", "x"))])
    (why,) = (await settled(one, thread)).partial
    assert why.startswith("nothing could be put aside before it")
    assert "secret words" not in why
    assert (work / "new").exists()


async def test_a_command_that_goes_on_in_the_background_says_so(lone: Process, work: Path) -> None:
    thread = await lone.thread(str(work))
    await lone.run(thread, runs('{"background": true}'), [CommandTool(says("new", "x"))])
    assert (await settled(lone, thread)).partial == (BACKGROUND,)


@pytest.mark.req("security:S44")
async def test_a_name_that_holds_a_secret_is_not_recorded_and_that_is_told(house: House, work: Path) -> None:
    one = await house.process(secrets=["hunter2hunter2"])
    thread = await one.thread(str(work))
    await one.run(thread, runs(), [CommandTool(says("hunter2hunter2", "x"), says("plain", "y"))])
    fact = await settled(one, thread)
    assert (changed(fact), fact.partial) == ([("plain", False)], (NAMELESS,))


# --- whose change it is ---------------------------------------------------------------------------------------------
@pytest.mark.req("mechanisms:M8.shared")
async def test_what_a_file_tool_of_another_thread_wrote_meanwhile_is_not_the_command_s(
    house: House, work: Path
) -> None:
    here, there = await house.process(), await house.process()
    long, short = await here.thread(str(work)), await there.thread(str(work))
    tool = CommandTool(says("mine", "x"), hold=True)
    turn = (await here.start(long, runs(), [tool])).turn.id
    await tool.started()
    await there.run(short, writes(("yours", "y")), [WriteTool()])
    tool.go.set()
    await here.ended(turn)
    assert changed(await settled(here, long)) == [("mine", False)]
    assert changed(await settled(there, short)) == [("yours", False)]


@pytest.mark.req("mechanisms:M8.shared")
@pytest.mark.parametrize("processes", [1, 2])
async def test_changes_of_commands_that_overlapped_are_shared(house: House, work: Path, processes: int) -> None:
    here = await house.process()
    there = here if processes == 1 else await house.process()
    first, second = await here.thread(str(work)), await there.thread(str(work))
    long = CommandTool(says("a", "x"), says("late", "x"), hold=True)
    turn = (await here.start(first, runs(), [long])).turn.id
    await long.started()
    await there.run(second, runs(), [CommandTool(says("b", "y"))])
    long.go.set()
    await here.ended(turn)
    assert changed(await settled(there, second)) == [("b", True)], "the other command was still running"
    assert changed(await settled(here, first)) == [("a", False), ("b", True), ("late", False)]


@pytest.mark.req("mechanisms:M8.shared")
async def test_commands_in_other_directories_and_calls_of_the_same_turn_share_nothing(
    lone: Process, work: Path, tmp_path: Path
) -> None:
    (tmp_path / "work2").mkdir()
    first, second = await lone.thread(str(work)), await lone.thread(str(tmp_path / "work2"))
    long = CommandTool(says("a", "x"), hold=True)
    turn = (await lone.start(first, runs(), [long])).turn.id
    await long.started()
    await lone.run(second, runs(), [CommandTool(says("b", "y"))])
    assert changed(await settled(lone, second)) == [("b", False)]
    long.go.set()
    await lone.ended(turn)
    both = GatedProvider([*call("shell", "{}", "c1"), *call("shell", "{}", "c2")], text("x"))
    third = await lone.thread(str(work))
    await lone.run(third, both, [CommandTool(says("c", "z"))])
    facts = await lone.payloads(third, CheckpointSettled)
    assert len(facts) == 2
    assert not any(c.shared for fact in facts for c in fact.changes)
