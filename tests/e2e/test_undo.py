"""`quintet undo` as a person meets it: real files, a real journal, with and without git."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from quintet.engine.changes import CHANGED, LATE, UNKNOWN
from quintet.engine.restoring import NOT_THERE
from tests.fakes.writing import tree
from tests.faults.processes import (
    Done,
    environment,
    no_traceback,
    one_line,
    quintet,
    quintet_running,
    wait_until,
    write_home,
)

HOUR_S = 3600
UNSANDBOXED = "[sandbox]\nrequired = false\n"  # where no sandbox works these tests are about files all the same


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return write_home(tmp_path / "home", config=UNSANDBOXED)


@pytest.fixture(params=["git", "plain"])
def work(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A project with fifty files, in git or not."""
    made = tmp_path / "work"
    made.mkdir()
    for number in range(50):
        (made / f"f{number:02}.txt").write_text(f"line {number}\n")
    if request.param == "git":
        if shutil.which("git") is None:
            pytest.skip("git is not installed")
        git(made, "init", "-q")
        git(made, "add", ".")
        git(made, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "begin")
    (made / "untracked").write_text("a person's notes\n")
    (made / "f00.txt").write_text("not committed\n")
    return made


def git(directory: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=directory, check=True, env=environment(), capture_output=True)


def run(home: Path, work: Path, prompt: str, *flags: str) -> str:
    """A turn; gives the thread's id."""
    done = quintet("run", "--json", "--mode", "allow", *flags, prompt, home=home, cwd=work)
    assert done.code == 0, done
    return str(done.lines[0]["thread"])


def undo(home: Path, work: Path, *words: str, code: int = 0) -> Any:
    done = quintet("undo", "--json", *words, home=home, cwd=work)
    no_traceback(done)
    assert done.code == code, done
    return done.lines[0]["files"]


def named(found: list[dict[str, Any]], work: Path) -> list[str]:
    return [str(Path(one["path"]).relative_to(work)) for one in found]


@pytest.mark.req("mechanisms:M8.undo", "mechanisms:M8.own")
def test_an_edit_is_undone_with_its_turn_and_the_next_undo_goes_further_back(home: Path, work: Path) -> None:
    before = tree(work)
    thread = run(home, work, "replace line 1 with LINE ONE in f01.txt")
    run(home, work, "write made/new.txt: fresh", "-c")
    assert tree(work) != before
    told = quintet("undo", home=home, cwd=work)
    assert told.code == 0, told
    assert told.out == f"removed     {work}/made/new.txt\n"
    assert f"quintet undo {thread} --redo" in told.err
    assert not (work / "made").exists(), "the directory was made for the file"
    assert (work / "f01.txt").read_text() == "LINE ONE\n"
    assert named(undo(home, work)["restored"], work) == ["f01.txt"]
    assert tree(work) == before
    shown = quintet("threads", "show", thread, home=home)
    assert "[hidden" in shown.out
    gone = quintet("undo", home=home, cwd=work)
    assert (gone.code, "left to undo" in gone.err) == (1, True), gone


@pytest.mark.req("mechanisms:M8.undo", "mechanisms:M8.redo", "mechanisms:M8.own")
def test_a_command_that_rewrites_fifty_files_and_removes_untracked_ones_is_undone_and_redone(
    home: Path, work: Path
) -> None:
    before = tree(work)
    run(home, work, "run for f in f*.txt; do echo rewritten > $f; done; rm untracked; mkdir d; echo x > d/new")
    after = tree(work)
    assert set(after) == {*before, "d/new"} - {"untracked"}
    assert named(undo(home, work, "--dry-run")["restored"], work) == sorted({*before, "d/new"})
    assert tree(work) == after
    assert named(undo(home, work)["restored"], work) == sorted({*before, "d/new"})
    assert tree(work) == before
    undo(home, work, "--redo")
    assert tree(work) == after
    undo(home, work)
    assert tree(work) == before


@pytest.mark.req("mechanisms:M8.undo")
def test_what_was_changed_since_is_a_conflict_until_forced_and_is_kept_even_then(home: Path, work: Path) -> None:
    before = tree(work)
    run(home, work, "run echo theirs > f03.txt; echo theirs > f04.txt")
    (work / "f03.txt").write_text("a person's work\n")
    told = quintet("undo", home=home, cwd=work)
    assert told.code == 1, told
    assert told.out.splitlines() == [f"restored    {work}/f04.txt", f"left alone  {work}/f03.txt: {CHANGED}"]
    assert "--force` brings back" in told.err
    assert (work / "f03.txt").read_text() == "a person's work\n"
    assert named(undo(home, work, "--force")["restored"], work) == ["f03.txt"]
    assert tree(work) == before
    undo(home, work, "--redo")
    assert (work / "f03.txt").read_text() == "a person's work\n"
    assert (work / "f04.txt").read_text() == "theirs\n"


@pytest.mark.req("mechanisms:M8.shared", "mechanisms:M8.own")
def test_another_thread_in_the_same_tree_keeps_its_changes(home: Path, work: Path) -> None:
    mine = run(home, work, "run echo mine > f05.txt; echo mine > f06.txt; echo mine > a")
    run(home, work, "run echo yours > f06.txt; echo yours > b")
    found = undo(home, work, mine, code=1)
    assert named(found["restored"], work) == ["a", "f05.txt"]
    assert named(found["conflicts"], work) == ["f06.txt"]
    assert ((work / "f06.txt").read_text(), (work / "b").read_text()) == ("yours\n", "yours\n")
    assert (work / "untracked").read_text() == "a person's notes\n"


@pytest.mark.req("mechanisms:M8.result", "mechanisms:M8.undo")
def test_over_the_caps_undo_is_partial_says_so_and_brings_back_the_rest(home: Path, work: Path) -> None:
    (work / "large").write_bytes(b"L" * (2 * 1024 * 1024))
    done = quintet("run", "--json", "--mode", "allow", "run echo small > large; echo x > f07.txt", home=home, cwd=work)
    (result,) = [
        line["payload"]["item"]["body"]
        for line in done.lines
        if line["kind"] == "item.added" and line["payload"]["item"]["body"]["type"] == "tool_result"
    ]
    note = result["display"][-1]
    assert note["type"] == "note"
    assert "undo is partial: large: larger than 1 MiB" in note["text"]
    found = undo(home, work, code=1)
    assert named(found["restored"], work) == ["f07.txt"]
    assert named(found["conflicts"], work) == ["large"]
    assert "larger than 1 MiB" in found["partial"][0]
    assert (work / "large").read_text() == "small\n"


def killed_in_a_command(home: Path, work: Path, command: str, *, at_once: bool = False) -> None:
    """kill -9 while the command sleeps behind its last write, `begun`: at once, or when Quintet has noticed since that
    the command still runs."""
    with quintet_running("run", "--mode", "allow", f"run {command}; sleep 60", home=home, cwd=work) as process:
        wait_until((work / "begun").exists, 20)

        def noticed() -> bool:
            begun = (work / "begun").stat().st_ctime_ns
            return any(blob.stat().st_mtime_ns > begun for blob in blobs(home))

        if not at_once:
            wait_until(noticed, 20)
        os.kill(process.popen.pid, signal.SIGKILL)
        process.popen.wait(10)


@pytest.mark.req("mechanisms:M8.killed", "reliability:R1")
def test_killed_in_the_middle_of_a_command_its_files_can_still_be_brought_back(home: Path, work: Path) -> None:
    before = tree(work)
    killed_in_a_command(home, work, "echo half > f08.txt; echo x > begun")
    found = undo(home, work, code=1)
    assert named(found["conflicts"], work) == ["begun", "f08.txt"]
    assert {one["why"] for one in found["conflicts"]} == {UNKNOWN}
    assert "unknown" in found["partial"][-1]
    assert (work / "f08.txt").read_text() == "half\n"
    assert named(undo(home, work, "--force")["restored"], work) == ["begun", "f08.txt"]
    assert tree(work) == before


@pytest.mark.req("mechanisms:M8.killed")
def test_what_a_person_did_after_a_command_was_killed_is_not_taken_for_its_doing(home: Path, work: Path) -> None:
    (work / "old").mkdir()
    (work / "old" / "kept").write_text("old")
    killed_in_a_command(
        home, work, "echo half > f08.txt; echo half > f09.txt; mkdir it; echo x > it/own; echo x > begun"
    )
    (work / "mine.txt").write_text("written since")
    (work / "f09.txt").write_text("mended since")
    (work / "f10.txt").write_text("mine since")
    (work / "old").rename(work / "moved")
    mine = ["f09.txt", "f10.txt", "mine.txt", "moved/kept"]
    kept = {path: (work / path).read_text() for path in mine}
    first = quintet("undo", "--json", "--force", "--dry-run", home=home, cwd=work)
    assert named(first.lines[0]["files"]["restored"], work) == ["begun", "f08.txt", "it/own", "old/kept"]
    found = undo(home, work, "--force", code=1)
    assert named(found["conflicts"], work) == mine
    assert {one["why"] for one in found["conflicts"]} == {LATE}
    assert {path: (work / path).read_text() for path in mine} == kept
    assert not (work / "it").exists()
    assert (work / "f08.txt").read_text() == "line 8\n"
    again = quintet("undo", "--force", "--dry-run", home=home, cwd=work)
    assert not [path for path in mine if path in again.out], again


@pytest.mark.req("mechanisms:M8.killed")
def test_what_may_be_the_person_s_is_taken_back_when_it_is_named(home: Path, work: Path) -> None:
    killed_in_a_command(
        home, work, "echo half > f08.txt; mkdir d; echo x > d/a; echo x > d/b; echo x > begun", at_once=True
    )
    os.utime(work / "f08.txt", (1, 1))  # also a file that says it is old: the system's own stamp cannot be set back
    wrong = undo(home, work, "--also", "f01.txt", "--dry-run", code=1)
    assert "restored" not in wrong
    assert {one["path"]: one["why"] for one in wrong["conflicts"]}[f"{work}/f01.txt"] == NOT_THERE
    told = quintet("undo", "--force", home=home, cwd=work)
    assert (told.code, told.out.count(LATE), "restored" in told.out) == (1, 4, False), told
    assert "4 files that may be yours" in told.err
    assert "--also PATH` takes one back" in told.err
    (work / "f08.txt").write_text("mended")
    found = undo(home, work, "--also", "f08.txt", "--also", f"{work}/d", code=1)
    assert named(found["restored"], work) == ["d/a", "d/b", "f08.txt"]
    assert (work / "f08.txt").read_text() == "line 8\n"
    assert named(found["conflicts"], work) == ["begun"]
    assert (work / "begun").exists()
    undo(home, work, "--redo")
    assert (work / "f08.txt").read_text() == "mended", "what was replaced is kept"


@pytest.mark.req("mechanisms:M8.diff")
def test_the_diff_of_a_turn_and_of_a_thread(home: Path, work: Path) -> None:
    thread = run(home, work, "run echo two > f02.txt")
    run(home, work, "run echo three > f03.txt; printf '\\0\\1' > bin", "-c")
    whole = quintet("threads", "diff", thread, home=home)
    assert whole.code == 0, whole
    assert "-line 2\n+two\n" in whole.out
    assert "-line 3\n+three\n" in whole.out
    assert "(binary: 0 -> 2 bytes)" in whole.out
    first = json.loads(quintet("threads", "show", thread, "--json", home=home).out)["items"][0]["turn"]
    one = quintet("threads", "diff", thread, "--turn", first, "--json", home=home)
    assert [Path(f["path"]).name for f in one.lines[0]["files"]] == ["f02.txt"]
    assert quintet("threads", "diff", thread, "--turn", "trn_nowhere", home=home).code == 1


def test_threads_revert_hides_and_brings_files_back_only_when_asked(home: Path, work: Path) -> None:
    thread = run(home, work, "run echo two > f02.txt")
    assert quintet("threads", "revert", thread, "--through", "0", home=home).code == 0
    assert (work / "f02.txt").read_text() == "two\n"
    assert quintet("threads", "unrevert", thread, home=home).code == 0
    assert quintet("threads", "revert", thread, "--through", "0", "--files", home=home).code == 0
    assert (work / "f02.txt").read_text() == "line 2\n"
    assert quintet("threads", "unrevert", thread, "--files", home=home).code == 0
    assert (work / "f02.txt").read_text() == "two\n"


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """An empty directory without git."""
    made = tmp_path / "plain"
    made.mkdir()
    return made


def three_turns(home: Path, work: Path) -> str:
    thread = run(home, work, "write a: v1")
    run(home, work, "write a: v2", "-c")
    run(home, work, "write a: v3", "-c")
    return thread


@pytest.mark.req("mechanisms:M8.redo")
@pytest.mark.parametrize("through", ["12", "10"])
def test_threads_revert_goes_forward_into_the_last_turn_with_its_files(home: Path, plain: Path, through: str) -> None:
    thread = three_turns(home, plain)
    assert quintet("threads", "revert", thread, "--through", "4", "--files", home=home).code == 0
    assert (plain / "a").read_text() == "v1"
    told = quintet("threads", "revert", thread, "--through", through, "--files", home=home)
    assert (told.code, told.out) == (0, f"restored    {plain}/a\n")
    assert (plain / "a").read_text() == "v3"


@pytest.mark.req("mechanisms:M8.redo")
def test_files_stay_redoable_when_only_the_view_was_unreverted(home: Path, plain: Path) -> None:
    thread = three_turns(home, plain)
    undo(home, plain)
    told = quintet("threads", "unrevert", thread, home=home)
    assert f"Files stay as they are; bring them with `quintet threads unrevert {thread} --files`" in told.err
    assert (plain / "a").read_text() == "v2"
    assert quintet("threads", "unrevert", thread, "--files", home=home).code == 0
    assert (plain / "a").read_text() == "v3"
    nothing = quintet("threads", "unrevert", thread, "--files", home=home)
    assert (nothing.code, "Nothing is reverted" in nothing.err) == (2, True)


@pytest.mark.req("mechanisms:M8.redo")
def test_each_redo_takes_back_one_undo(home: Path, plain: Path) -> None:
    three_turns(home, plain)
    undo(home, plain)
    undo(home, plain)
    assert (plain / "a").read_text() == "v1"
    told = quintet("undo", "--redo", home=home, cwd=plain)
    assert ((plain / "a").read_text(), "still hidden" in told.err) == ("v2", True), told
    undo(home, plain, "--redo")
    assert (plain / "a").read_text() == "v3"


@pytest.mark.req("mechanisms:M8.undo")
def test_undo_looks_for_the_newest_thread_here_with_something_to_undo_and_names_it(home: Path, plain: Path) -> None:
    older = run(home, plain, "write a: v1")
    newer = run(home, plain, "write b: v1")
    talk = run(home, plain, "echo only words")
    told = quintet("undo", home=home, cwd=plain)
    assert (told.code, told.out) == (0, f"removed     {plain}/b\n"), told
    assert f"Thread {newer}" in told.err
    assert "back to before the turn 'write b: v1':" in told.err
    assert f"Thread {older}" in quintet("undo", home=home, cwd=plain).err
    gone = quintet("undo", home=home, cwd=plain)
    assert gone.code == 1
    assert "Looked at the 3 newest threads here" in gone.err
    assert talk in gone.err
    undo(home, plain, "--redo")
    assert tree(plain) == {"a": "v1"}, "the last undo is taken back first"


@pytest.mark.req("mechanisms:M8.own")
def test_a_dry_run_speaks_of_what_would_be(home: Path, work: Path) -> None:
    run(home, work, "run echo two > f02.txt; echo n > new")
    told = quintet("undo", "--dry-run", home=home, cwd=work)
    assert told.out == f"would restore  {work}/f02.txt\nwould remove   {work}/new\n"


@pytest.mark.req("mechanisms:M8.undo")
def test_force_is_promised_only_where_it_helps(home: Path, plain: Path) -> None:
    (plain / "large").write_bytes(b"L" * (2 * 1024 * 1024))
    os.mkfifo(plain / "pipe")
    run(home, plain, "run echo small > large; rm pipe; echo x > pipe; echo made > a")
    (plain / "a").write_text("a person's work")
    told = quintet("undo", home=home, cwd=plain)
    assert told.code == 1, told
    assert "brings back 1 of what was left alone" in told.err
    last = quintet("undo", home=home, cwd=plain)
    assert "1 file was left alone; `quintet undo thr_" in last.err
    again = quintet("undo", "--force", home=home, cwd=plain)
    assert ("removed" in again.out, "--force` brings back" in again.err) == (True, False), again
    assert "left alone" not in quintet("undo", home=home, cwd=plain).err


@pytest.mark.req("mechanisms:M8.redo")
def test_a_path_that_came_back_only_partly_is_listed_once(home: Path, plain: Path) -> None:
    thread = three_turns(home, plain)
    undo(home, plain)
    (plain / "a").write_text("mine")
    undo(home, plain, code=1)
    undo(home, plain, "--force")
    exact = quintet("undo", "--redo", home=home, cwd=plain)
    assert (exact.code, exact.out) == (0, f"restored    {plain}/a\n"), exact
    assert (plain / "a").read_text() == "mine"
    undo(home, plain, "--force")
    partly = quintet("threads", "unrevert", thread, "--files", home=home)
    assert (partly.code, partly.out) == (1, f"restored    {plain}/a: not further, {CHANGED}\n"), partly


@pytest.mark.req("mechanisms:M8.result")
def test_what_a_command_changed_is_named_to_people_with_what_was_not_kept(home: Path, plain: Path) -> None:
    (plain / "large").write_bytes(b"L" * (2 * 1024 * 1024))
    told = quintet("run", "--mode", "allow", "run echo s > large; echo c > c.txt", home=home, cwd=plain)
    line = "changed: c.txt, large (undo is partial: large: larger than 1 MiB"
    assert line in told.err, told
    thread = quintet("threads", "list", "--json", home=home).lines[0]["id"]
    assert line in quintet("threads", "show", thread, home=home).out


@pytest.mark.req("mechanisms:M8.diff")
def test_a_file_s_name_cannot_pass_for_a_line_of_a_diff(home: Path, plain: Path) -> None:
    for name, content in (("m\n+++ b", b"\0"), ("n\n+++ b", b"x")):
        (plain / name).mkdir()
        (plain / name / "forged").write_bytes(content)
    thread = run(home, plain, "run rm -r m* n*")
    told = quintet("threads", "diff", thread, home=home)
    assert not [line for line in told.out.splitlines() if line.startswith("+++ b/forged")]
    assert [line for line in told.out.splitlines() if line.startswith("---")] == [
        r"--- a/m\n+++ b/forged",
        r"--- a/n\n+++ b/forged",
    ]


def blobs(home: Path) -> list[Path]:
    return [p for p in (home / "blobs").rglob("*") if p.is_file() and len(p.name) > 40]


def swept(home: Path) -> Done:
    """gc two hours later, as far as the age of contents goes."""
    for blob in blobs(home):
        at = blob.stat().st_mtime - 2 * HOUR_S
        os.utime(blob, (at, at))
    return quintet("gc", "--json", home=home)


@pytest.mark.req("mechanisms:M8.gc")
def test_gc_keeps_what_undo_needs_and_frees_the_rest(home: Path, work: Path) -> None:
    before = tree(work)
    run(home, work, "run echo x > f00.txt; rm untracked")
    assert swept(home).code == 0
    undo(home, work)
    assert swept(home).code == 0
    assert tree(work) == before
    undo(home, work, "--redo")
    kept = blobs(home)
    thread = quintet("threads", "list", "--json", home=home).lines[0]["id"]
    assert quintet("threads", "delete", thread, home=home).code == 0
    done = swept(home)
    assert done.lines[0]["blobs"] == len(kept) > 0, done
    assert blobs(home) == []


@pytest.mark.parametrize("flags", [("--also", "a.txt"), ("--turn", "1")])
def test_what_a_redo_would_not_heed_is_refused(tmp_path: Path, flags: tuple[str, ...]) -> None:
    assert "mean nothing to it" in one_line(quintet("undo", "--redo", *flags, home=write_home(tmp_path / "home")), 2)
