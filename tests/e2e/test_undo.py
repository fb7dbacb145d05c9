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

from quintet.engine.changes import CHANGED, UNKNOWN
from tests.fakes.writing import tree
from tests.faults.processes import Done, environment, no_traceback, quintet, quintet_running, wait_until, write_home

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


@pytest.mark.req("mechanisms:M8.killed", "reliability:R1")
def test_killed_in_the_middle_of_a_command_its_files_can_still_be_brought_back(home: Path, work: Path) -> None:
    before = tree(work)
    prompt = "run echo half > f08.txt; echo x > begun; sleep 60"
    with quintet_running("run", "--mode", "allow", prompt, home=home, cwd=work) as process:
        wait_until((work / "begun").exists, 20)
        os.kill(process.popen.pid, signal.SIGKILL)
        process.popen.wait(10)
    found = undo(home, work, code=1)
    assert named(found["conflicts"], work) == ["begun", "f08.txt"]
    assert {one["why"] for one in found["conflicts"]} == {UNKNOWN}
    assert "unknown" in found["partial"][-1]
    assert (work / "f08.txt").read_text() == "half\n"
    assert named(undo(home, work, "--force")["restored"], work) == ["begun", "f08.txt"]
    assert tree(work) == before


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
