"""Nothing in a repository, and nothing in our own environment, makes the git we run start a program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from quintet.workspace.child import Child
from quintet.workspace.environment import MARKER
from quintet.workspace.git import Git, GitFailed, read_index
from quintet.workspace.git_layout import layout_of
from quintet.workspace.history import WorkspaceHistory
from quintet.workspace.processes import run_child
from tests.fakes.clock import SettableClock
from tests.unit.workspace.hostile import hostile_environment, hostile_repository, trap
from tests.unit.workspace.repositories import PLAIN, repository, sh, write


@pytest.fixture
def marks(tmp_path):
    return tmp_path / "marks"


@pytest.fixture
def hostile(tmp_path, marks):
    return hostile_repository(tmp_path / "tree", marks)


def left(marks: Path) -> list[str]:
    return sorted(path.name for path in marks.iterdir())


def plain_git(words: str, cwd: Path) -> None:
    environment = {**os.environ, **PLAIN, "GIT_WORK_TREE": str(cwd), "GIT_DIR": str(cwd / ".git")}
    subprocess.run(["sh", "-c", words], cwd=cwd, env=environment, stdin=subprocess.DEVNULL, timeout=60, check=False)


@pytest.mark.req("security:S20")
@pytest.mark.parametrize(
    ("words", "mark"),
    [
        ("git diff-files", "included"),
        ("git config --unset include.path; git config --unset includeIf.gitdir:/.path; git status", "fsmonitor"),
        ("git -c core.fsmonitor= update-index --refresh", "hook-post-index-change"),
        ("git -c core.fsmonitor= add -A", "clean"),
        ("git -c core.fsmonitor= add p.prc", "process"),
        ("git -c core.fsmonitor= -c core.attributesFile= diff f.flt", "external-diff"),
        ("git -c core.fsmonitor= log -p --no-ext-diff", "textconv"),
        ("rm f.flt; git -c core.fsmonitor= checkout f.flt", "smudge"),
        ("git cat-file -p :gone.txt", "ext"),
        ("git x", "alias"),
        ("git ls-remote ssh", "ssh"),
        ("cd sub; unset GIT_DIR GIT_WORK_TREE; git status", "sub-fsmonitor"),
    ],
)
def test_the_traps_work_when_git_is_run_plainly(hostile, marks, words, mark):
    write(hostile, {"f.flt": "edited\n", "p.prc": "edited\n", "a.txt": "edited\n"})
    plain_git(words, hostile)
    assert mark in left(marks)


@pytest.mark.req("security:S20")
async def test_a_hostile_repository_leaves_no_mark(tmp_path, hostile, marks):
    (tmp_path / "home").mkdir()
    environment = {**os.environ, **hostile_environment(marks, tmp_path / "elsewhere")}
    history = WorkspaceHistory(str(tmp_path / "home"), environment, SettableClock())
    write(hostile, {"a.txt": "dirty\n", "new.flt": "new\n"})
    secured = await history.secure(str(hostile))
    assert not any("git could not be asked" in words for words in secured.partial), secured.partial
    sh("for f in f.flt p.prc d.dif a.txt; do echo x >> $f; done", hostile)
    sh("rm gone.txt new.flt; mkdir n; echo n > n/n", hostile)
    compared = await history.compare(secured)
    assert not any("git could not be asked" in words for words in compared.partial), compared.partial
    assert [c.path for c in compared.changes] == ["a.txt", "d.dif", "f.flt", "gone.txt", "n/n", "new.flt", "p.prc"]
    for change in compared.changes:
        data = await history.content(str(hostile), change.before)
        if data is not None or change.before.kind == "absent":
            await history.put(str(hostile), change.path, change.before)
    assert (hostile / "d.dif").read_text() == "textconv\n"
    assert any("gone.txt" in w or "3 files" in w for w in compared.partial), "objects that are not there are told"
    assert left(marks) == []


@pytest.mark.req("security:S20")
async def test_a_repositorys_own_word_on_its_work_tree_is_not_followed(tmp_path, hostile):
    (tmp_path / "home").mkdir()
    history = WorkspaceHistory(str(tmp_path / "home"), os.environ, SettableClock())
    secured = await history.secure(str(hostile))
    write(tmp_path / "elsewhere/tree", {"decoy": "changed", "another": "1"})
    assert (await history.compare(secured)).changes == ()


@pytest.mark.req("security:S20")
async def test_a_stale_hostile_index_is_refreshed_without_a_mark(tmp_path, hostile, marks, monkeypatch):
    monkeypatch.setattr("quintet.workspace.history_git._REFRESH_OVER", 0)
    (tmp_path / "home").mkdir()
    history = WorkspaceHistory(str(tmp_path / "home"), os.environ, SettableClock())
    sh("touch *", hostile)
    await history.secure(str(hostile))
    assert left(marks) == []


@pytest.mark.req("security:S20")
async def test_every_reading_command_is_safe(tmp_path, hostile, marks):
    layout = layout_of(str(hostile))
    assert layout is not None
    write(hostile, {"f.flt": "edited\n", "p.prc": "edited\n", "a.txt": "edited\n", "d.dif": "edited\n"})
    environment = {**os.environ, **hostile_environment(marks, tmp_path / "elsewhere")}
    async with Git(environment, str(tmp_path / "scratch")).opened(layout, read_index(layout)) as git:
        for command in (
            ("status", "--porcelain"),
            ("diff",),
            ("diff", "--stat"),
            ("ls-files", "--others"),
            ("diff-files", "-p"),
            ("hash-object", "--path=f.flt", "f.flt"),
        ):
            await git.ask(*command)
        for command in (("fetch", "origin"), ("ls-remote", "ssh://localhost/x"), ("ls-remote", "ext::sh -c true")):
            with pytest.raises(GitFailed):
                await git.ask(*command)
    assert left(marks) == []


async def test_git_from_a_relative_path_entry_is_never_run(tmp_path, marks, monkeypatch):
    tree = repository(tmp_path / "tree")
    (tree / "git").symlink_to(trap(marks, "planted"))
    monkeypatch.chdir(tree)
    (tmp_path / "home").mkdir()
    history = WorkspaceHistory(str(tmp_path / "home"), {"PATH": f".:{os.environ['PATH']}"}, SettableClock())
    assert (await history.secure(str(tree))).files == 1
    assert left(marks) == []


async def test_an_answer_that_never_comes_or_never_ends_is_given_up(tmp_path, monkeypatch):
    tree = repository(tmp_path / "tree", {f"f{n}": "x" for n in range(50)})
    layout = layout_of(str(tree))
    assert layout is not None
    async with Git(os.environ, str(tmp_path / "scratch")).opened(layout, read_index(layout)) as git:
        with pytest.raises(GitFailed, match="answered more"):
            await git.ask("ls-files", output_limit=10)
        monkeypatch.setattr("quintet.workspace.git.WITHIN_S", 0.0)
        with pytest.raises(GitFailed, match="did not answer"):
            await git.ask("cat-file", "--batch-all-objects", "--batch")
    assert list((tmp_path / "scratch").iterdir()) == []


async def test_the_machine_is_not_searched_for_processes_that_git_could_have_left(tmp_path, monkeypatch):
    tree = repository(tmp_path / "tree")
    layout = layout_of(str(tree))
    assert layout is not None
    searched: list[str] = []
    monkeypatch.setattr("quintet.workspace.process_tree._processes", lambda: searched.append("all") or [])
    async with Git(os.environ, str(tmp_path / "scratch")).opened(layout, read_index(layout)) as git:
        assert await git.ask("ls-files", "-z") == b"a.txt\0src/b.txt\0"
    assert searched == []


async def test_what_a_program_of_ours_leaves_in_its_group_all_the_same_is_ended():
    said: list[bytes] = []
    words = ("sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!")
    child = Child(words, "/", {**os.environ, MARKER: f"alone-{os.urandom(8).hex()}"}, 20.0, 1000, alone=True)
    ended = await run_child(child, lambda stream, data: said.append(data))
    assert ended.left_behind == 1
    state = Path(f"/proc/{int(b''.join(said))}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"
