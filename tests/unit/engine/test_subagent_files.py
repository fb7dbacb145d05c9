"""Files that subagents change belong to the call they worked for: undone and shown with the parent's turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintet.domain.item import ToolResult
from quintet.domain.tool import Effect, ToolSpec
from quintet.engine.undo import Undone
from tests.fakes.engine import House, Process
from tests.fakes.family import Family, children, process, task
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.writing import CommandTool, WriteTool, runs, says, tree, writes

ANSWER = "---\ntext: the end\n"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "old").write_text("v0")
    return made


async def undo(one: Process, thread: str, **how: bool) -> Undone:
    now = (await one.threads.get(thread)).thread
    point = await one.undo.point(now, force=how.get("force", False))
    done = (await one.threads.revert(thread, point.keep_through, files=True, **how)).files
    assert done is not None
    return done


@pytest.mark.req("models:T10")
async def test_undo_of_the_parents_turn_brings_back_what_its_children_changed(house: House, work: Path) -> None:
    one = await process(house, "a", "b")
    thread = await one.thread(str(work))
    before = tree(work)
    family = Family(task("a") + ANSWER, a=task("b") + ANSWER, b=writes(("old", "v1"), ("new", "n")))
    await family.run(one, thread, [WriteTool()])
    assert tree(work) == {"old": "v1", "new": "n"}
    shown = await one.diffs.of(thread)
    assert [Path(f.path).name for f in shown.files] == ["new", "old"]
    (result,) = await one.bodies(thread, ToolResult)
    assert sorted(Path(path).name for path in result.changed_files) == ["new", "old"]
    done = await undo(one, thread)
    assert (len(done.restored), done.conflicts) == (2, ())
    assert tree(work) == before
    redone = (await one.threads.redo(thread)).files
    assert redone is not None
    assert tree(work) == {"old": "v1", "new": "n"}


@pytest.mark.req("models:T10")
async def test_what_somebody_changed_since_is_a_conflict_as_usual(house: House, work: Path) -> None:
    one = await process(house, "a")
    thread = await one.thread(str(work))
    await Family(task("a") + ANSWER, a=writes(("old", "v1"), ("new", "n"))).run(one, thread, [WriteTool()])
    (work / "old").write_text("mine")
    done = await undo(one, thread)
    assert [Path(c.path).name for c in done.conflicts] == ["old"]
    assert tree(work) == {"old": "mine"}


@pytest.mark.req("models:T10")
async def test_commands_of_children_side_by_side_are_undone_together_without_conflict(house: House, work: Path) -> None:
    one = await process(house, "a", "b")
    thread = await one.thread(str(work))
    before = tree(work)
    command = CommandTool(says("one", "1"), says("two", "2"), hold=True)
    family = Family(task("a") + task("b") + ANSWER, a=runs(), b=runs())
    started = await family.start(one, thread, [command])
    await one.seen(lambda e: e.kind == "tool.started" and getattr(e.payload, "name", "") == "shell", thread)
    first, second = await children(one, thread)
    for child in (first, second):
        await one.seen(lambda e, here=child.id: e.kind == "tool.started" and e.thread == here, thread)
    command.go.set()
    await one.ended(started.turn.id)
    assert set(tree(work)) == {"old", "one", "two"}
    done = await undo(one, thread)
    assert done.conflicts == ()
    assert tree(work) == before


@pytest.mark.req("models:T10")
async def test_a_childs_own_undo_is_part_of_the_parents_story(house: House, work: Path) -> None:
    one = await process(house, "a")
    thread = await one.thread(str(work))
    await Family(task("a") + ANSWER, a=writes(("old", "v1"), ("new", "n"))).run(one, thread, [WriteTool()])
    (child,) = await children(one, thread)
    await undo(one, child.id)
    assert tree(work) == {"old": "v0"}
    assert (await one.diffs.of(thread)).files == ()
    done = await undo(one, thread)
    assert done.conflicts == ()
    assert tree(work) == {"old": "v0"}


@pytest.mark.req("models:T10")
async def test_a_turn_somebody_starts_in_the_childs_thread_is_not_the_parents(house: House, work: Path) -> None:
    one = await process(house, "a")
    thread = await one.thread(str(work))
    await Family(task("a") + ANSWER, a="text: nothing").run(one, thread, [WriteTool()])
    (child,) = await children(one, thread)
    await one.run(child.id, writes(("new", "n")), [WriteTool()])
    assert (await one.diffs.of(thread)).files == ()
    assert len((await one.diffs.of(child.id)).files) == 1


@pytest.mark.req("models:T10")
async def test_a_childs_command_that_ended_while_another_ran_is_no_conflict_either(house: House, work: Path) -> None:
    one = await process(house, "a", "b")
    thread = await one.thread(str(work))
    before = tree(work)
    long = CommandTool(says("one", "1"), says("two", "2"), hold=True)
    quick = CommandTool(says("three", "3"))
    quick.spec = ToolSpec("quick", "runs a command", {"type": "object"}, Effect.EXECUTE)
    gate = Gate()
    late = GatedProvider([gate, *call("quick")], text("end"))
    started = await Family(task("a") + task("b") + ANSWER, a=runs(), b=late).start(one, thread, [long, quick])
    await long.started()
    gate.open()
    await one.seen(lambda e: e.kind == "tool.finished" and getattr(e.payload, "name", "") == "quick", thread)
    long.go.set()
    await one.ended(started.turn.id)
    assert set(tree(work)) == {"old", "one", "two", "three"}
    assert (await undo(one, thread)).conflicts == ()
    assert tree(work) == before


@pytest.mark.req("models:T10")
async def test_a_persons_command_in_the_childs_thread_beside_the_parents_is_a_conflict_not_undone_with_it(
    house: House, work: Path
) -> None:
    one = await process(house, "a")
    thread = await one.thread(str(work))
    await Family(task("a") + ANSWER, a="text: nothing").run(one, thread)
    (child,) = await children(one, thread)
    long, quick = CommandTool(says("theirs", "1"), hold=True), CommandTool(says("mine", "2"))
    started = await one.start(thread, runs(), [long])
    await long.started()
    await one.run(child.id, runs(), [quick])
    long.go.set()
    await one.ended(started.turn.id)
    done = await undo(one, thread)
    assert [Path(c.path).name for c in done.conflicts] == ["mine"]
    assert (work / "mine").read_text() == "2"
