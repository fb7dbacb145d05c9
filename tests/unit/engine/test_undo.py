"""Undo: the thread's own changes come back, everybody else's stay, and undoing can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintet.domain.errors import Busy, Invalid, NotFound
from quintet.domain.event import CheckpointSettled, FilesRestored, ViewChanged
from quintet.domain.item import AssistantMessage
from quintet.engine.changes import CHANGED, LATE, SHARED, UNKNOWN
from quintet.engine.restoring import GONE, UNKEPT
from quintet.engine.threads import Reverted
from quintet.engine.undo import WENT_ON, Undone
from tests.fakes.engine import ME, House, Process
from tests.fakes.history import KeptFiles
from tests.fakes.waiting import soon
from tests.fakes.writing import CommandTool, WriteTool, runs, says, tree, writes


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "old").write_text("v0")
    (made / "user").write_text("never touched")
    return made


async def undo(one: Process, thread: str, turn: str = "", **how: bool) -> Undone:
    """As `quintet undo` does it."""
    now = (await one.threads.get(thread)).thread
    point = await one.undo.point(now, turn, force=how.get("force", False))
    return files(await one.threads.revert(thread, point.keep_through, files=True, **how))


async def redo(one: Process, thread: str, **how: bool) -> Undone:
    return files(await one.threads.redo(thread, **how))


def files(done: Reverted) -> Undone:
    assert done.files is not None
    return done.files


def names(undone: Undone, work: Path) -> tuple[list[str], list[tuple[str, str]]]:
    short = lambda path: str(Path(path).relative_to(work))  # noqa: E731
    return [short(b.path) for b in undone.restored], [(short(c.path), c.why) for c in undone.conflicts]


@pytest.mark.req("mechanisms:M8.undo", "mechanisms:M8.own")
async def test_undo_brings_back_what_the_last_turn_changed_and_hides_it(one: Process, work: Path) -> None:
    thread = await one.thread(str(work))
    await one.run(thread, writes(("old", "v1"), ("sub/new", "n")), [WriteTool()], say="first")
    await one.run(thread, "text: only words", say="second")
    done = await undo(one, thread)
    assert names(done, work) == (["old", "sub/new"], [])
    assert [b.removed for b in done.restored] == [False, True]
    assert tree(work) == {"old": "v0", "user": "never touched"}
    now = await one.journal.thread(thread)
    assert [now.view.is_hidden(n) for n in range(1, now.last_ordinal + 1)] == [True] * now.last_ordinal
    kinds = [e.kind for e in await one.events(thread)]
    assert kinds[-2:] == ["files.restored", "thread.view_changed"], "the files are said before the view"
    with pytest.raises(NotFound, match="left to undo"):
        await undo(one, thread)


@pytest.mark.req("mechanisms:M8.redo")
async def test_an_undo_can_be_undone_exactly_until_the_next_turn(one: Process, work: Path) -> None:
    thread = await one.thread(str(work))
    await one.run(thread, runs(), [CommandTool(lambda d: (d / "old").unlink(), says("a", "1"))])
    after = tree(work)
    for _ in range(3):
        await undo(one, thread)
        assert tree(work) == {"old": "v0", "user": "never touched"}
        await redo(one, thread)
        assert tree(work) == after
        assert (await one.journal.thread(thread)).view.reverted is None
    await undo(one, thread)
    await one.run(thread, "text: a new turn")
    with pytest.raises(Invalid, match="Nothing is reverted"):
        await redo(one, thread)


@pytest.mark.req("mechanisms:M8.redo")
async def test_a_redo_takes_back_only_what_was_undone_since_the_last_turn(one: Process, work: Path) -> None:
    thread = await one.thread(str(work))
    await one.run(thread, writes(("old", "v1")), [WriteTool()])
    await undo(one, thread)
    await one.run(thread, writes(("new", "n")), [WriteTool()])
    await undo(one, thread)
    await redo(one, thread)
    assert tree(work) == {"old": "v0", "new": "n", "user": "never touched"}


async def three_turns(one: Process, work: Path, *names: str) -> str:
    """v1, v2 and v3 of one file, or one file each; four items per turn."""
    thread = await one.thread(str(work))
    for text, name in zip(("v1", "v2", "v3"), names or ("old",) * 3, strict=True):
        await one.run(thread, writes((name, text)), [WriteTool()])
    assert (await one.journal.thread(thread)).last_ordinal == 12
    return thread


@pytest.mark.req("mechanisms:M8.redo")
async def test_several_undos_go_back_turn_by_turn_and_each_redo_takes_back_one(one: Process, work: Path) -> None:
    thread = await three_turns(one, work)
    for text in ("v2", "v1"):
        await undo(one, thread)
        assert (work / "old").read_text() == text
    for text, hidden in (("v2", (9, 12)), ("v3", None)):
        await redo(one, thread)
        assert (work / "old").read_text() == text
        assert (await one.journal.thread(thread)).view.reverted == hidden
    with pytest.raises(Invalid, match="Nothing is reverted"):
        await redo(one, thread)
    await undo(one, thread, (await one.journal.turns(thread))[0].id)
    assert (work / "old").read_text() == "v0"


@pytest.mark.req("mechanisms:M8.redo")
async def test_a_step_in_which_no_file_had_to_change_is_a_step_all_the_same(one: Process, work: Path) -> None:
    thread = await three_turns(one, work, "f1", "f2", "f3")
    (work / "f3").unlink()  # by hand
    await undo(one, thread)
    await undo(one, thread)
    assert (set(tree(work)) & {"f1", "f2", "f3"}) == {"f1"}
    await redo(one, thread)
    assert (set(tree(work)) & {"f1", "f2", "f3"}) == {"f1", "f2"}
    assert (await one.journal.thread(thread)).view.reverted == (9, 12)


@pytest.mark.req("mechanisms:M8.redo")
@pytest.mark.parametrize("through", [12, 10])
async def test_a_revert_forward_brings_the_files_forward(one: Process, work: Path, through: int) -> None:
    thread = await three_turns(one, work, "f1", "f2", "f3")
    whole = tree(work)
    await one.threads.revert(thread, 4, files=True)
    assert "f2" not in tree(work)
    await one.threads.revert(thread, through, files=True)
    assert tree(work) == whole
    hidden = None if through == 12 else (through + 1, 12)
    assert (await one.journal.thread(thread)).view.reverted == hidden
    await one.threads.revert(thread, 8, files=True)
    assert set(whole) - set(tree(work)) == {"f3"}
    await one.threads.unrevert(thread, files=True)
    assert tree(work) == whole
    assert (await one.journal.thread(thread)).view.reverted is None


@pytest.mark.req("mechanisms:M8.redo")
@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_revert_forward_refuses_names_instead_of_passing_over_them(
    one: Process, work: Path, dry_run: bool
) -> None:
    thread = await three_turns(one, work, "f1", "f2", "f3")
    await one.threads.revert(thread, 8, files=True)
    await one.threads.revert(thread, 4, files=True)
    before, hidden = tree(work), (await one.journal.thread(thread)).view.reverted
    with pytest.raises(Invalid, match="brings files forward again"):
        await one.threads.revert(thread, 8, files=True, named=[str(work / "f2")], dry_run=dry_run)
    assert tree(work) == before
    assert (await one.journal.thread(thread)).view.reverted == hidden


@pytest.mark.req("mechanisms:M8.redo")
async def test_a_revert_between_two_steps_can_be_taken_back_too(one: Process, work: Path) -> None:
    thread = await three_turns(one, work)
    await one.threads.revert(thread, 0, files=True)
    await one.threads.revert(thread, 8, files=True)
    assert (work / "old").read_text() == "v2"
    await redo(one, thread)
    assert (work / "old").read_text() == "v3"


@pytest.mark.req("mechanisms:M8.redo")
async def test_files_can_be_brought_forward_after_the_view_alone_was(one: Process, work: Path) -> None:
    thread = await three_turns(one, work)
    await undo(one, thread)
    await undo(one, thread)
    shown = await one.threads.unrevert(thread)
    assert (shown.files, shown.files_behind) == (None, True)
    assert (work / "old").read_text() == "v1"
    await redo(one, thread)
    assert (work / "old").read_text() == "v2"
    assert (await one.journal.thread(thread)).view.reverted is None, "what is shown stays so"
    await one.threads.unrevert(thread, files=True)
    assert (work / "old").read_text() == "v3"
    with pytest.raises(Invalid, match="Nothing is reverted"):
        await one.threads.unrevert(thread, files=True)


@pytest.mark.req("mechanisms:M8.redo")
async def test_a_redo_winds_back_its_own_step_alone_though_somebody_worked_between_two(
    one: Process, work: Path
) -> None:
    thread = await three_turns(one, work)
    await undo(one, thread)
    (work / "old").write_text("a person's work")
    assert names(await undo(one, thread), work) == ([], [("old", CHANGED)])
    assert names(await undo(one, thread, force=True), work) == (["old"], [])
    assert (work / "old").read_text() == "v1"
    assert names(await redo(one, thread), work) == (["old"], [])
    assert (work / "old").read_text() == "a person's work"


@pytest.mark.req("mechanisms:M8.redo")
@pytest.mark.parametrize("way", ["redo", "revert"])
async def test_a_redo_that_was_cut_off_is_finished_by_doing_it_again(
    one: Process, work: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    thread = await three_turns(one, work)

    async def forward() -> None:
        await (redo(one, thread) if way == "redo" else one.threads.revert(thread, 12, files=True))

    async def cut_off(*given: object) -> None:
        raise KeyboardInterrupt

    await undo(one, thread)
    whole = one.history.put
    monkeypatch.setattr(one.history, "put", cut_off)
    with pytest.raises(KeyboardInterrupt):
        await forward()
    monkeypatch.setattr(one.history, "put", whole)
    assert (work / "old").read_text() == "v2"
    await forward()
    assert (work / "old").read_text() == "v3"
    assert (await one.journal.thread(thread)).view.reverted is None


@pytest.mark.req("mechanisms:M8.undo")
async def test_where_nothing_is_left_a_command_that_went_on_is_named_while_its_turn_is_shown(
    one: Process, work: Path
) -> None:
    thread = await one.thread(str(work))
    await one.run(thread, runs('{"background": true}'), [CommandTool(lambda d: None)])
    with pytest.raises(NotFound, match=f"left to undo. {WENT_ON}"):
        await undo(one, thread)
    await one.threads.revert(thread, 0)
    with pytest.raises(NotFound) as told:
        await undo(one, thread)
    assert WENT_ON not in str(told.value)


@pytest.mark.req("mechanisms:M8.undo")
async def test_force_that_cannot_help_does_not_stand_in_the_way_of_going_further_back(house: House, work: Path) -> None:
    one = await house.process(history=KeptFiles(largest=20))
    thread = await one.thread(str(work))
    await one.run(thread, writes(("old", "v1")), [WriteTool()])
    (work / "large").write_text("L" * 30)
    await one.run(thread, runs(), [CommandTool(says("large", "small now"))])
    assert names(await undo(one, thread), work) == ([], [("large", GONE)])
    assert names(await undo(one, thread, force=True), work)[0] == ["old"]


@pytest.mark.req("mechanisms:M8.undo")
async def test_where_nothing_is_left_what_force_would_bring_back_is_counted(one: Process, work: Path) -> None:
    thread = await one.thread(str(work))
    await one.run(thread, writes(("old", "v1")), [WriteTool()])
    (work / "old").write_text("a person's work")
    (conflict,) = (await undo(one, thread)).conflicts
    assert conflict.forcible
    with pytest.raises(NotFound, match=r"1 file was left alone; `quintet undo thr_.* --force`"):
        await undo(one, thread)
    await undo(one, thread, force=True)
    with pytest.raises(NotFound) as told:
        await undo(one, thread)
    assert "--force" not in str(told.value)


@pytest.mark.req("mechanisms:M8.undo", "mechanisms:M8.own")
async def test_what_a_person_changed_since_is_left_alone_and_force_keeps_it(one: Process, work: Path) -> None:
    thread = await one.thread(str(work))
    await one.run(thread, writes(("old", "v1"), ("new", "n")), [WriteTool()])
    (work / "old").write_text("a person's work")
    done = await undo(one, thread)
    assert names(done, work) == (["new"], [("old", CHANGED)])
    assert tree(work) == {"old": "a person's work", "user": "never touched"}
    forced = await undo(one, thread, force=True)
    assert names(forced, work) == (["old"], [])
    assert (work / "old").read_text() == "v0"
    await redo(one, thread)
    assert tree(work) == {"old": "a person's work", "new": "n", "user": "never touched"}


@pytest.mark.req("mechanisms:M8.undo")
async def test_a_redo_leaves_alone_what_changed_since_the_undo_and_can_be_forced(one: Process, work: Path) -> None:
    thread = await one.thread(str(work))
    await one.run(thread, writes(("old", "v1"), ("new", "n")), [WriteTool()])
    await undo(one, thread)
    (work / "old").write_text("a person's work")
    assert names(await redo(one, thread), work) == (["new"], [("old", CHANGED)])
    assert (work / "old").read_text() == "a person's work"
    assert names(await redo(one, thread, force=True), work) == (["old"], [])
    assert (work / "old").read_text() == "v1"
    with pytest.raises(Invalid, match="Nothing is reverted"):
        await redo(one, thread, force=True)


@pytest.mark.req("mechanisms:M8.own")
async def test_a_dry_run_says_the_same_and_changes_nothing(one: Process, work: Path) -> None:
    thread = await one.thread(str(work))
    await one.run(thread, writes(("old", "v1"), ("new", "n")), [WriteTool()])
    (work / "old").write_text("u")
    before, events = tree(work), await one.events(thread)
    done = await undo(one, thread, dry_run=True)
    assert names(done, work) == (["new"], [("old", CHANGED)])
    assert (tree(work), await one.events(thread)) == (before, events)


@pytest.mark.req("mechanisms:M8.shared", "mechanisms:M8.own")
async def test_another_thread_s_changes_in_the_same_tree_stay(one: Process, work: Path) -> None:
    mine, yours = await one.thread(str(work)), await one.thread(str(work))
    await one.run(mine, runs(), [CommandTool(says("old", "mine"), says("a", "mine"))])
    await one.run(yours, writes(("old", "yours"), ("b", "yours")), [WriteTool()])
    assert names(await undo(one, mine), work) == (["a"], [("old", CHANGED)])
    assert tree(work) == {"old": "yours", "b": "yours", "user": "never touched"}


@pytest.mark.req("mechanisms:M8.shared")
async def test_shared_changes_need_force(one: Process, work: Path) -> None:
    first, second = await one.thread(str(work)), await one.thread(str(work))
    long = CommandTool(says("a", "x"), hold=True)
    turn = (await one.start(first, runs(), [long])).turn.id
    await long.started()
    await one.run(second, runs(), [CommandTool(says("b", "y"))])
    long.go.set()
    await one.ended(turn)
    assert names(await undo(one, first), work) == (["a"], [("b", SHARED)])
    assert names(await undo(one, second), work) == ([], [("b", SHARED)])
    assert names(await undo(one, second, force=True), work) == (["b"], [])


@pytest.mark.req("mechanisms:M8.own")
async def test_undo_is_refused_while_a_turn_runs(one: Process, work: Path) -> None:
    thread = await one.thread(str(work))
    await one.run(thread, writes(("old", "v1")), [WriteTool()])
    tool = CommandTool(says("a", "x"), hold=True)
    turn = (await one.start(thread, runs(), [tool])).turn.id
    await tool.started()
    now = await one.journal.thread(thread)
    with pytest.raises(Busy):
        await undo(one, thread)
    with pytest.raises(Busy):  # the fact itself is refused: a turn that began in the last moment is seen too
        await one.undo.revert(now, 0, force=True)
    assert tree(work) == {"old": "v1", "a": "x", "user": "never touched"}
    tool.go.set()
    await one.ended(turn)


@pytest.mark.req("mechanisms:M8.redo")
@pytest.mark.parametrize("puts", [0, 1, 2])
async def test_an_undo_that_was_cut_off_is_finished_by_doing_it_again(
    house: House, work: Path, monkeypatch: pytest.MonkeyPatch, puts: int
) -> None:
    one = await house.process()
    thread = await one.thread(str(work))
    await one.run(thread, writes(("old", "v1"), ("a", "n"), ("b", "n")), [WriteTool()])
    after, left = tree(work), puts
    whole = one.history.put

    async def cut_off(*given: object) -> None:
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        await whole(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(one.history, "put", cut_off)
    with pytest.raises(KeyboardInterrupt):
        await undo(one, thread)
    monkeypatch.setattr(one.history, "put", whole)
    assert await one.payloads(thread, ViewChanged) == []
    done = await undo(one, thread)
    assert done.conflicts == ()
    assert tree(work) == {"old": "v0", "user": "never touched"}
    await redo(one, thread)
    assert tree(work) == after


@pytest.mark.req("mechanisms:M8.killed")
async def test_a_call_that_was_killed_is_offered_with_force_and_its_end_is_said_to_be_unknown(
    house: House, work: Path
) -> None:
    history = KeptFiles()
    dying, one = await house.process(history=history), await house.process(history=history)
    thread, tool = await dying.thread(str(work)), CommandTool(says("old", "half"), hold=True)
    await dying.start(thread, runs(), [tool])
    await tool.started()
    await dying.die()
    assert await one.payloads(thread, CheckpointSettled) == []
    done = await undo(one, thread)
    assert names(done, work) == ([], [("old", UNKNOWN)])
    assert done.partial == ("the end of a shell call is unknown: it was cut off",)
    forced = await undo(one, thread, force=True)
    assert names(forced, work) == (["old"], [])
    assert tree(work) == {"old": "v0", "user": "never touched"}
    await redo(one, thread)
    assert (work / "old").read_text() == "half"


@pytest.mark.req("mechanisms:M8.redo")
async def test_a_redo_by_force_finishes_the_last_one_and_goes_no_further(lone: Process, work: Path) -> None:
    thread = await lone.thread(str(work))
    for name in ("a", "b", "c"):
        await lone.run(thread, writes((name, name)), [WriteTool()])
    await undo(lone, thread)
    await undo(lone, thread)
    (work / "b").write_text("mine")
    assert names(await redo(lone, thread), work) == ([], [("b", CHANGED)])
    assert names(await redo(lone, thread, force=True), work) == (["b"], [])
    assert ((work / "b").read_text(), (work / "c").exists()) == ("b", False), "one step alone"
    await redo(lone, thread)
    assert (work / "c").read_text() == "c"


@pytest.mark.req("mechanisms:M8.killed")
async def test_the_same_undo_once_more_leaves_what_the_first_brought_back(house: House, work: Path) -> None:
    history = KeptFiles()
    dying, one = await house.process(history=history), await house.process(history=history)

    def act(directory: Path) -> None:
        (directory / "old").write_text("half")
        (directory / "user").write_text("half")

    thread, tool = await dying.thread(str(work)), CommandTool(act, hold=True)
    await dying.start(thread, runs(), [tool])
    await tool.started()
    await dying.die()
    history.late = {"user"}
    assert names(await undo(one, thread, force=True), work) == (["old"], [("user", LATE)])
    for _ in range(2):
        again = files(await one.threads.revert(thread, 0, files=True, force=True))
        assert names(again, work) == ([], [("user", LATE)])
    assert tree(work) == {"old": "v0", "user": "half"}
    named = files(await one.threads.revert(thread, 0, files=True, named=[str(work / "user")]))
    assert names(named, work) == (["user"], [])
    assert tree(work) == {"old": "v0", "user": "never touched"}
    await redo(one, thread)
    assert tree(work) == {"old": "half", "user": "half"}


@pytest.mark.req("mechanisms:M8.undo")
async def test_what_was_too_large_to_keep_is_told_and_the_rest_comes_back(house: House, work: Path) -> None:
    one = await house.process(history=KeptFiles(largest=20))
    thread = await one.thread(str(work))
    (work / "large").write_text("L" * 30)

    def act(directory: Path) -> None:
        (directory / "large").write_text("small now")
        (directory / "old").write_text("v1")
        (directory / "made").write_text("M" * 30)

    await one.run(thread, runs(), [CommandTool(act)])
    done = await undo(one, thread)
    assert names(done, work) == (["old"], [("large", GONE), ("made", UNKEPT)])
    assert [c.forcible for c in done.conflicts] == [False, True], "force cannot make what was not kept"
    assert done.partial == ("large is larger than 20 bytes",)
    assert tree(work)["large"] == "small now"
    assert names(await undo(one, thread, force=True), work) == (["made"], [("large", GONE)])


@pytest.mark.req("mechanisms:M8.undo", "mechanisms:M8.own")
async def test_what_somebody_put_there_and_cannot_be_kept_is_not_even_replaced_by_force(
    house: House, work: Path
) -> None:
    one = await house.process(history=KeptFiles(largest=20))
    thread = await one.thread(str(work))
    await one.run(thread, writes(("made", "by the thread")), [WriteTool()])
    (work / "made").write_text("P" * 30)
    for force in (False, True):
        done = await undo(one, thread, force=force)
        assert [c.path for c in done.conflicts] == [str(work / "made")]
        assert (work / "made").read_text() == "P" * 30
    assert (done.conflicts[0].why, done.conflicts[0].forcible) == (UNKEPT, False)


@pytest.mark.req("mechanisms:M8.own")
async def test_the_view_alone_can_be_reverted_as_before(one: Process, work: Path) -> None:
    thread = await one.thread(str(work))
    await one.run(thread, writes(("old", "v1")), [WriteTool()])
    assert (await one.threads.revert(thread, 0)).files is None
    assert (work / "old").read_text() == "v1"
    assert await one.payloads(thread, FilesRestored) == []
    await one.threads.unrevert(thread, files=True)
    assert (work / "old").read_text() == "v1"


async def test_only_calls_behind_the_item_are_undone(one: Process, work: Path) -> None:
    thread = await one.thread(str(work))
    await one.run(thread, writes(("a", "1")), [WriteTool()])
    last = (await one.journal.thread(thread)).last_ordinal
    await one.run(thread, writes(("b", "2")), [WriteTool()])
    await one.threads.revert(thread, last, files=True)
    assert tree(work) == {"old": "v0", "user": "never touched", "a": "1"}
    (answer, _) = await one.bodies(thread, AssistantMessage)
    assert answer.text == "ok"


# --- diffs ----------------------------------------------------------------------------------------------------------
@pytest.mark.req("mechanisms:M8.diff")
async def test_a_diff_joins_what_happened_to_a_file_per_turn_and_per_thread(one: Process, work: Path) -> None:
    thread = await one.thread(str(work))
    await one.run(thread, writes(("old", "v1\n")), [WriteTool()])
    await one.run(thread, writes(("old", "v2\n"), ("new", "n\n")), [WriteTool()])
    whole = await one.diffs.of(thread)
    assert [(Path(f.path).name, f.status) for f in whole.files] == [("new", "added"), ("old", "changed")]
    assert "-v0\n\\ No newline at end of file\n+v2\n" in whole.files[1].diff
    second = (await one.journal.turns(thread))[1].id
    assert "-v1\n+v2\n" in (await one.diffs.of(thread, second)).files[1].diff
    await undo(one, thread)
    assert [Path(f.path).name for f in (await one.diffs.of(thread)).files] == ["old"]
    await undo(one, thread)
    assert (await one.diffs.of(thread)).files == ()
    with pytest.raises(NotFound):
        await one.diffs.of(thread, "trn_nowhere")


@pytest.mark.req("mechanisms:M8.diff", "security:S44")
async def test_a_diff_holds_no_known_secret_and_says_what_is_no_text(house: House, work: Path) -> None:
    one = await house.process(secrets=["hunter2hunter2"])
    thread = await one.thread(str(work))

    def act(directory: Path) -> None:
        (directory / "env").write_text("KEY=hunter2hunter2\n")
        (directory / "old").chmod(0o600)
        (directory / "large").write_text("x" * 300_000)

    (work / "old").chmod(0o644)
    await one.run(thread, runs(), [CommandTool(act)])
    env, large, old = (f.diff for f in (await one.diffs.of(thread)).files)
    assert "+KEY=[redacted]" in env
    assert "(too large to compare: 0 -> 300000 bytes)" in large
    assert "(mode 644 -> 600)" in old


@pytest.mark.req("mechanisms:M8.diff")
async def test_looking_at_a_running_call_does_not_disturb_it(one: Process, work: Path) -> None:
    thread, tool = await one.thread(str(work)), CommandTool(says("a", "x"), says("b", "x"), hold=True)
    turn = (await one.start(thread, runs(), [tool])).turn.id
    await tool.started()
    assert (await one.diffs.of(thread)).files == ()
    assert one.history.compared == 0  # type: ignore[attr-defined]
    tool.go.set()
    await one.ended(turn)
    assert len((await one.diffs.of(thread)).files) == 2


# --- sweeping -------------------------------------------------------------------------------------------------------
@pytest.mark.req("mechanisms:M8.gc")
async def test_a_sweep_frees_what_no_checkpoint_needs_and_undo_still_works(one: Process, work: Path) -> None:
    assert isinstance(one.history, KeptFiles)
    kept, gone = await one.thread(str(work)), await one.thread(str(work))
    await one.run(kept, writes(("old", "v1")), [WriteTool()])
    await one.run(gone, writes(("other", "o1")), [WriteTool()])
    (work / "old").write_text("u")
    await undo(one, kept)
    await undo(one, kept, force=True)
    await one.threads.delete(gone, ME)
    count, size = await one.checkpoints.sweep(days=30)
    assert (count, size) > (0, 0)
    assert sorted(one.history.blobs.values()) == [b"u", b"v0", b"v1"]
    await redo(one, kept)
    assert (work / "old").read_text() == "u"


@pytest.mark.req("mechanisms:M8.gc")
async def test_what_a_running_call_has_put_aside_is_never_swept(one: Process, work: Path) -> None:
    thread, tool = await one.thread(str(work)), CommandTool(says("old", "v1"), hold=True)
    turn = (await one.start(thread, runs(), [tool])).turn.id
    await tool.started()
    await one.checkpoints.sweep(days=-1)  # a day after everything
    tool.go.set()
    await one.ended(turn)
    await undo(one, thread)
    assert (work / "old").read_text() == "v0"


@pytest.mark.req("mechanisms:M8.gc")
async def test_after_the_retention_time_contents_are_gone_and_undo_says_so(one: Process, work: Path) -> None:
    thread = await one.thread(str(work))
    await one.run(thread, writes(("old", "v1"), ("new", "n")), [WriteTool()])
    await one.checkpoints.sweep(days=-1)  # a day after everything
    done = await soon(undo(one, thread))
    assert names(done, work)[0] == ["new"]
    assert [c.path for c in done.conflicts] == [str(work / "old")]
    assert (work / "old").read_text() == "v1"
