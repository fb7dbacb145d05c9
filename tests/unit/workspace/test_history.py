"""Securing, comparing and putting back, with real git and real files."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import socket
import stat
import subprocess
import threading
from pathlib import Path

import msgspec
import pytest

from quintet.domain.checkpoint import Compared, FileChange, FileKind, FileState
from quintet.domain.errors import Drifted, Invalid, StorageDamaged
from quintet.workspace import git, history_compare, history_git, history_manifest, history_putting, history_walk, kernel
from quintet.workspace.history import WorkspaceHistory
from quintet.workspace.history_keeping import Keeper
from quintet.workspace.history_stop import Stop
from tests.fakes.clock import SettableClock
from tests.unit.workspace.repositories import repository, sh, snapshot, write


@pytest.fixture
def clock():
    return SettableClock()


@pytest.fixture
def history(tmp_path, clock):
    (tmp_path / "home").mkdir(mode=0o700)
    return WorkspaceHistory(str(tmp_path / "home"), os.environ, clock)


@pytest.fixture(params=["git", "plain"])
def tree(request, tmp_path):
    """A directory with two files, in git and clean, or without git."""
    place = tmp_path / "tree"
    if request.param == "git":
        return repository(place)
    write(place, {"a.txt": "a\n", "src/b.txt": "b\n"})
    return place


async def put_back(history, directory: Path, compared: Compared) -> None:
    """As an undo does it, and everything must go."""
    order = sorted(compared.changes, key=lambda c: (c.before.kind is not FileKind.ABSENT, -c.path.count("/")))
    failed = await history.put_all(str(directory), [FileChange(c.path, c.after, c.before) for c in order])
    assert failed == [None] * len(order)


async def put_back_what_can_be(history, directory: Path, compared: Compared) -> None:
    """As an undo does it: what no one can make again is left."""
    order = sorted(compared.changes, key=lambda c: (c.before.kind is not FileKind.ABSENT, -c.path.count("/")))
    await history.put_all(str(directory), [FileChange(c.path, c.after, c.before) for c in order])


def wait_a_tick(directory: Path) -> None:
    """Until the clock that files are stamped with has moved on: what is there now is older than what comes."""
    first = (directory / ".tick").touch() or (directory / ".tick").stat().st_mtime_ns
    while (directory / ".tick").stat().st_mtime_ns == first:
        (directory / ".tick").touch()
    (directory / ".tick").unlink()


def kinds(compared: Compared) -> dict[str, tuple[str, str]]:
    return {change.path: (change.before.kind.value, change.after.kind.value) for change in compared.changes}


@pytest.mark.req("mechanisms:M8.shell")
async def test_everything_a_command_did_is_told_and_comes_back(history, tree):
    write(tree, {"dirty.txt": "mine\n"})
    before = snapshot(tree)
    secured = await history.secure(str(tree))
    sh("echo more >> a.txt; rm src/b.txt; mv dirty.txt moved.txt; mkdir -p x/y; echo z > x/y/z; ln -s a.txt l", tree)
    compared = await history.compare(secured)
    assert kinds(compared) == {
        "a.txt": ("file", "file"),
        "src/b.txt": ("file", "absent"),
        "dirty.txt": ("file", "absent"),
        "moved.txt": ("absent", "file"),
        "x/y/z": ("absent", "file"),
        "l": ("absent", "link"),
    }
    assert (secured.partial, compared.partial) == ((), ())
    await put_back(history, tree, compared)
    assert snapshot(tree) == before
    assert not (tree / "x").exists(), "directories the command made go with their last file"
    assert (await history.compare(secured)).changes == ()


@pytest.mark.req("mechanisms:M8.shell")
async def test_a_command_that_changes_nothing_is_told_as_nothing(history, tree):
    write(tree, {"dirty.txt": "mine\n"})
    secured = await history.secure(str(tree))
    sh("touch a.txt dirty.txt; cat src/b.txt; mkdir empty", tree)
    assert await history.compare(secured) == Compared()


@pytest.mark.req("mechanisms:M8.shell")
async def test_the_change_can_be_done_again(history, tree):
    secured = await history.secure(str(tree))
    sh("echo more >> a.txt; chmod 700 a.txt; rm src/b.txt; echo n > new", tree)
    after = snapshot(tree)
    compared = await history.compare(secured)
    await put_back(history, tree, compared)
    for change in compared.changes:
        await history.put(str(tree), change.path, change.after)
    assert snapshot(tree) == after


@pytest.mark.req("mechanisms:M8.shell")
async def test_a_change_of_permissions_alone_comes_back_and_the_file_stays_the_same_one(history, tree):
    inode = (tree / "a.txt").stat().st_ino
    secured = await history.secure(str(tree))
    sh("chmod 755 a.txt", tree)
    compared = await history.compare(secured)
    assert [(c.before.mode, c.after.mode) for c in compared.changes] == [(0o644, 0o755)]
    await put_back(history, tree, compared)
    assert stat.S_IMODE((tree / "a.txt").stat().st_mode) == 0o644
    assert (tree / "a.txt").stat().st_ino == inode


@pytest.mark.req("mechanisms:M8.shell")
async def test_an_edit_that_keeps_size_and_time_is_seen(history, tree):
    write(tree, {"u.txt": "12345"})
    secured = await history.secure(str(tree))
    sh("touch -r u.txt ref; printf 54321 > u.txt; touch -r ref u.txt; rm ref", tree)
    assert list(kinds(await history.compare(secured))) == ["u.txt"]


@pytest.mark.req("mechanisms:M8.shell")
async def test_a_file_that_became_a_directory_and_a_directory_that_became_a_link_come_back(history, tree):
    before = snapshot(tree)
    secured = await history.secure(str(tree))
    sh("rm a.txt; mkdir a.txt; echo in > a.txt/in; rm -r src; ln -s /etc src", tree)
    compared = await history.compare(secured)
    await put_back(history, tree, compared)
    assert snapshot(tree) == before


@pytest.mark.req("mechanisms:M8.shell")
async def test_ignored_files_are_neither_kept_nor_told(history, tree):
    write(tree, {".gitignore": "built/\n*.log\n", "built/x": "1", "n.log": "1"})
    secured = await history.secure(str(tree))
    sh("echo 2 > built/x; rm n.log; echo 3 > new.log", tree)
    assert (await history.compare(secured)).changes == ()


@pytest.mark.req("mechanisms:M8.ignored")
@pytest.mark.parametrize("edit", ["rm .gitignore", "echo '!secret/' >> .gitignore", "echo other > .gitignore"])
async def test_a_file_that_only_came_to_sight_is_never_taken_for_the_commands_own(history, tree, edit):
    write(tree, {".gitignore": "secret/\n", "secret/mine": "1", "secret/too": "2"})
    sh("test ! -d .git || { git add .gitignore; git commit -qm i; }", tree)
    os.utime(tree / "secret/mine", (1, 1))
    secured = await history.secure(str(tree))
    sh(f"{edit}; echo touched >> secret/too", tree)
    compared = await history.compare(secured)
    assert kinds(compared).get("secret/mine", ("other",))[0] != "absent"
    assert kinds(compared)["secret/too"][0] == "other"
    assert any("ignore rules" in words for words in compared.partial)
    change = next(c for c in compared.changes if c.path == "secret/too")
    with pytest.raises(Invalid):
        await history.put(str(tree), change.path, change.before)
    assert (tree / "secret/too").exists()


@pytest.mark.req("mechanisms:M8.ignored")
async def test_a_longer_ignore_file_hides_nothing_of_what_was_made(history, tree):
    write(tree, {".gitignore": "secret/\n"})
    secured = await history.secure(str(tree))
    sh("echo '*.o' >> .gitignore; echo 1 > new", tree)
    compared = await history.compare(secured)
    assert kinds(compared) == {".gitignore": ("file", "file"), "new": ("absent", "file")}
    assert compared.partial == ()


@pytest.mark.req("mechanisms:M8.ignored")
@pytest.mark.parametrize(
    "edit",
    [
        "echo '!*.log' > logs/.gitignore",
        "printf '\\357\\273\\277!*.log\\n' > logs/.gitignore",
        "{ head -c 1100000 /dev/zero | tr '\\0' '#'; echo; echo '!*.log'; } > logs/.gitignore",
        "printf '.gitignore\\n!*.log\\n' > logs/.gitignore",
    ],
    ids=["new", "marked", "too large to keep", "ignores itself"],
)
async def test_a_new_ignore_file_that_shows_files_does_not_make_them_the_commands_own(history, tree, edit):
    write(tree, {".gitignore": "*.log\n", "logs/x.log": "mine", "logs/y.log": "mine too", "logs/seen": "1"})
    secured = await history.secure(str(tree))
    sh(f"{edit}; echo 1 > new; cp logs/y.log z; mv z logs/y.log", tree)
    compared = await history.compare(secured)
    assert any("ignore rules" in words for words in compared.partial)
    await put_back_what_can_be(history, tree, compared)
    assert (tree / "logs/x.log").read_text() == "mine"
    assert (tree / "logs/y.log").read_text() == "mine too"


@pytest.mark.req("mechanisms:M8.ignored")
@pytest.mark.parametrize("edit", ["rm .venv/.gitignore", "echo '!lib.py' >> .venv/.gitignore", "mv .venv/.gitignore o"])
async def test_an_ignore_file_that_is_ignored_itself_comes_back_and_what_it_hid_stays(history, tree, edit):
    write(tree, {".venv/.gitignore": "*\n", ".venv/lib.py": "mine", ".venv/bin/x": "1"})
    before = snapshot(tree)
    secured = await history.secure(str(tree))
    sh(f"{edit}; cp .venv/lib.py .venv/l; mv .venv/l .venv/lib.py", tree)
    compared = await history.compare(secured)
    await put_back_what_can_be(history, tree, compared)
    assert {path: found for path, found in snapshot(tree).items() if path != "o"} == before


@pytest.mark.req("mechanisms:M8.ignored")
async def test_a_new_ignore_file_that_only_hides_leaves_what_was_made_the_commands_own(history, tree):
    secured = await history.secure(str(tree))
    sh("mkdir .venv; echo '*' > .venv/.gitignore; echo l > .venv/lib; echo '*.o' > .gitignore; echo 1 > new", tree)
    compared = await history.compare(secured)
    assert kinds(compared) == {".gitignore": ("absent", "file"), "new": ("absent", "file")}
    assert compared.partial == ()


@pytest.mark.req("mechanisms:M8.moved")
@pytest.mark.parametrize(
    "move",
    [
        "mv .env .env.bak",
        "echo more >> .env; mv .env .env.bak",
        "touch .env; mv .env .env.bak",
        "ln .env .env.bak; rm .env",
        "mv ../outside .env.bak",
        "cp -p ../outside .env.bak; rm ../outside",
    ],
)
async def test_a_file_moved_out_of_a_place_that_is_not_kept_is_never_removed(history, tree, tmp_path, move):
    write(tree, {".gitignore": ".env\n", ".env": "the only one"})
    write(tmp_path, {"outside": "the only one"})
    wait_a_tick(tree)
    secured = await history.secure(str(tree))
    sh(f"{move}; echo 1 > new", tree)
    compared = await history.compare(secured)
    assert kinds(compared) == {".env.bak": ("other", "file"), "new": ("absent", "file")}
    assert any(".env.bak" in words and "not kept" in words for words in compared.partial)
    await put_back_what_can_be(history, tree, compared)
    assert (tree / ".env.bak").read_text().startswith("the only one")
    assert not (tree / "new").exists()


@pytest.mark.req("mechanisms:M8.moved")
@pytest.mark.parametrize("move", ["mv a.txt c.txt", "ln a.txt c.txt", "mv src lib; echo 1 >> lib/b.txt", "mv u v"])
async def test_a_file_moved_from_where_it_is_kept_goes_back(history, tree, move):
    write(tree, {"u": "untracked"})
    wait_a_tick(tree)
    before = snapshot(tree)
    secured = await history.secure(str(tree))
    sh(move, tree)
    compared = await history.compare(secured)
    assert compared.partial == ()
    await put_back(history, tree, compared)
    assert snapshot(tree) == before


@pytest.mark.req("mechanisms:M8.moved")
async def test_a_file_moved_from_where_it_was_too_large_to_keep_is_never_removed(history, tree):
    write(tree, {"large": "x" * (1024 * 1024 + 1)})
    wait_a_tick(tree)
    secured = await history.secure(str(tree))
    sh("mv large moved", tree)
    compared = await history.compare(secured)
    assert kinds(compared) == {"large": ("file", "absent"), "moved": ("other", "file")}


@pytest.mark.req("mechanisms:M8.moved")
async def test_ignored_files_that_were_moved_with_their_directory_are_told(history, tree):
    write(tree, {".gitignore": ".env\n", "src/.env": "the only one"})
    wait_a_tick(tree)
    secured = await history.secure(str(tree))
    sh("mv src lib; echo new > lib/new; mkdir -p made; echo new > made/x; echo young > made/.env", tree)
    compared = await history.compare(secured)
    assert [words for words in compared.partial if "lib/.env" in words and "not moved back" in words]
    assert not any("made/.env" in words for words in compared.partial)
    await put_back(history, tree, compared)
    assert (tree / "lib/.env").read_text() == "the only one"
    assert (tree / "src/b.txt").exists()


# --- git --------------------------------------------------------------------------------------------------------


@pytest.mark.req("mechanisms:M8.git")
async def test_clean_tracked_files_are_not_copied_but_come_back_from_git(history, tmp_path):
    tree = repository(tmp_path / "r")
    secured = await history.secure(str(tree))
    assert (secured.files, secured.bytes) == (0, 0)
    sh("echo changed > a.txt", tree)
    (change,) = (await history.compare(secured)).changes
    assert (change.before.kept, len(change.before.git), change.after.kept) == (False, 40, True)
    assert await history.content(str(tree), change.before) == b"a\n"


@pytest.mark.req("mechanisms:M8.git")
@pytest.mark.parametrize(
    "script",
    [
        "echo x >> a.txt; git add -A; git commit -qm second",
        "git checkout -q -b other; git rm -q a.txt; git commit -qm gone",
        "git reset -q --hard; git clean -fdq",
        "git stash -q -u",
        "git checkout -q HEAD~0; git branch -D main; git gc -q",
        "git rm -q --cached a.txt",
        "git mv a.txt c.txt; git commit -qam moved",
        "rm .git/index",
        "git read-tree --empty; git add -A; git commit -qm again",
        "touch .git/index.lock; echo x >> a.txt",
    ],
)
async def test_what_the_command_does_with_git_itself_hides_nothing(history, tmp_path, script):
    tree = repository(tmp_path / "r")
    write(tree, {"src/b.txt": "edited\n", "untracked/u": "u\n", "staged.txt": "s\n"})
    sh("git add staged.txt; echo more >> staged.txt; chmod 600 untracked/u", tree)
    before = snapshot(tree)
    secured = await history.secure(str(tree))
    sh(script, tree)
    compared = await history.compare(secured)
    await put_back(history, tree, compared)
    assert snapshot(tree) == before
    assert compared.partial == ()


@pytest.mark.req("mechanisms:M8.git")
async def test_a_file_changed_in_the_moment_git_took_it_is_not_missed(history, tmp_path):
    """Git tells such files only by comparing them with the age of its index, which the copy must keep."""
    tree = repository(tmp_path / "r", {"a.txt": "12345"})
    sh("git config core.trustctime false", tree)  # else a slow machine would let another second pass and tell by that
    long_ago = (1_000_000_000, 1_000_000_000)
    for name in ("a.txt", ".git/index"):
        os.utime(tree / name, long_ago)
        sh("git update-index -q --refresh", tree)
    os.utime(tree / ".git/index", long_ago)
    (tree / "a.txt").write_text("54321")
    os.utime(tree / "a.txt", long_ago)
    secured = await history.secure(str(tree))
    assert secured.files == 1, "dirty although nothing but the bytes tells"
    sh("git checkout -q a.txt; echo 1 > a.txt", tree)
    await put_back(history, tree, await history.compare(secured))
    assert (tree / "a.txt").read_text() == "54321"


@pytest.mark.req("mechanisms:M8.git")
async def test_a_copied_repository_is_not_taken_for_all_dirty(history, tmp_path, monkeypatch):
    monkeypatch.setattr(history_git, "_REFRESH_OVER", 5)
    made = repository(tmp_path / "r", {f"f{n}": f"{n}\n" for n in range(20)})
    tree = tmp_path / "copy"
    shutil.copytree(made, tree)
    sh("touch *", tree)
    write(tree, {"f3": "dirty"})
    for _ in range(2):  # the second time with the index that was refreshed
        secured = await history.secure(str(tree))
        assert (secured.files, secured.partial) == (1, ())
    before = snapshot(tree)
    sh("echo x >> f4; git commit -qam all; rm f5", tree)
    compared = await history.compare(secured)
    assert list(kinds(compared)) == ["f4", "f5"]
    await put_back(history, tree, compared)
    assert snapshot(tree) == before


@pytest.mark.req("mechanisms:M8.git")
@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
async def test_files_git_is_told_to_pass_over_are_kept_and_come_back(history, tmp_path, flag):
    tree = repository(tmp_path / "r")
    sh(f"git update-index {flag} a.txt src/b.txt; echo mine > a.txt; rm src/b.txt", tree)
    before = snapshot(tree)
    secured = await history.secure(str(tree))
    sh("echo theirs > a.txt; echo theirs > src/b.txt", tree)
    compared = await history.compare(secured)
    assert kinds(compared) == {"a.txt": ("file", "file"), "src/b.txt": ("absent", "file")}
    await put_back(history, tree, compared)
    assert snapshot(tree) == before


@pytest.mark.req("mechanisms:M8.partial")
async def test_too_many_files_that_git_is_told_to_pass_over_are_told(history, tmp_path, monkeypatch):
    monkeypatch.setattr(history_git, "PASSED_LIMIT", 1)
    monkeypatch.setattr("quintet.workspace.history.PASSED_LIMIT", 1)
    tree = repository(tmp_path / "r")
    sh("git update-index --skip-worktree a.txt src/b.txt; echo mine > a.txt", tree)
    secured = await history.secure(str(tree))
    assert secured.files == 0
    assert any("2 files that git is told to pass over" in words for words in secured.partial)


@pytest.mark.req("mechanisms:M8.modes")
async def test_permissions_come_back_as_they_were_with_those_of_the_directories(history, tree):
    write(tree, {"src/sub/c": "c", "open/d": "d"})
    sh("test ! -d .git || { git add -A; git commit -qm more; }", tree)
    sh("chmod 600 a.txt src/b.txt; chmod 700 src src/sub; chmod 775 open; chmod 444 src/sub/c", tree)
    sh("test ! -d .git || git update-index -q --refresh", tree)
    before, rooms = snapshot(tree), [stat.S_IMODE((tree / d).stat().st_mode) for d in ("src", "src/sub", "open")]
    secured = await history.secure(str(tree))
    assert secured.files == (0 if (tree / ".git").exists() else 4)
    sh("echo more >> a.txt; rm -r src open", tree)
    compared = await history.compare(secured)
    await put_back(history, tree, compared)
    assert snapshot(tree) == before
    assert [stat.S_IMODE((tree / d).stat().st_mode) for d in ("src", "src/sub", "open")] == rooms


@pytest.mark.req("mechanisms:M8.modes")
async def test_in_a_large_repository_a_file_that_stands_keeps_its_permissions(history, tmp_path, monkeypatch):
    monkeypatch.setattr(history_git, "LOOK_LIMIT", 1)
    tree = repository(tmp_path / "r")
    sh("chmod 600 a.txt; git update-index -q --refresh", tree)
    secured = await history.secure(str(tree))
    sh("echo more >> a.txt; chmod 755 src/b.txt", tree)
    await put_back(history, tree, await history.compare(secured))
    assert (tree / "a.txt").read_text() == "a\n"
    assert stat.S_IMODE((tree / "a.txt").stat().st_mode) == 0o600
    assert stat.S_IMODE((tree / "src/b.txt").stat().st_mode) == 0o644


@pytest.mark.req("mechanisms:M8.modes")
async def test_a_private_directory_that_is_put_aside_comes_back_private(history, tree):
    write(tree, {"private/deep/x": "1"})
    (tree / "private").chmod(0o700)
    (state,) = await history.states(str(tree), ["private/deep/x"], keep=True)
    shutil.rmtree(tree / "private")
    await history.put(str(tree), "private/deep/x", state)
    assert stat.S_IMODE((tree / "private").stat().st_mode) == 0o700
    assert (tree / "private/deep/x").read_text() == "1"


@pytest.mark.req("mechanisms:M8.conversions")
@pytest.mark.parametrize("how", ["git config core.autocrlf true", "echo '* text eol=crlf' > .gitattributes"])
async def test_line_ends_come_back_as_they_stood_in_the_work_tree(history, tmp_path, how):
    tree = repository(tmp_path / "r", {"a.txt": "one\ntwo\n"})
    sh(f"{how}; rm a.txt; git checkout -q a.txt; sleep 0.01; git update-index --refresh", tree)
    assert (tree / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    secured = await history.secure(str(tree))
    sh("echo changed > a.txt", tree)
    await put_back(history, tree, await history.compare(secured))
    assert (tree / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


@pytest.mark.req("mechanisms:M8.conversions")
@pytest.mark.parametrize("filtered", ["tr a-z n-za-m", "sed s/a/aa/"])
async def test_bytes_a_filter_had_changed_are_told_as_lost_never_given_wrong(history, tmp_path, filtered):
    tree = tmp_path / "r"
    repository(tree, {".gitattributes": "*.x filter=turn\n"})
    sh(f"git config filter.turn.clean '{filtered}'; git config filter.turn.smudge cat", tree)
    write(tree, {"f.x": "banana\n"})
    sh("git add -A; git commit -qm f", tree)
    os.utime(tree / "f.x", (1, 1))
    sh("git update-index --refresh", tree)  # clean, and surely so
    secured = await history.secure(str(tree))
    assert secured.files == 0
    sh("echo other > f.x", tree)
    compared = await history.compare(secured)
    (change,) = compared.changes
    assert change.before.digest == ""
    assert any("f.x" in words for words in compared.partial)
    with pytest.raises(Invalid):
        await history.put(str(tree), "f.x", change.before)
    assert (tree / "f.x").read_text() == "other\n"


@pytest.mark.req("mechanisms:M8.places")
async def test_it_works_in_a_linked_worktree(history, tmp_path):
    main = repository(tmp_path / "main")
    tree = tmp_path / "linked"
    sh(f"git worktree add -q {tree}", main)
    write(tree, {"u": "u"})
    before = snapshot(tree)
    secured = await history.secure(str(tree))
    assert (secured.files, secured.partial) == (1, ())
    sh("echo x >> a.txt; rm u; git commit -qam x", tree)
    await put_back(history, tree, await history.compare(secured))
    assert snapshot(tree) == before


@pytest.mark.req("mechanisms:M8.places")
async def test_it_works_in_a_repository_without_a_commit(history, tmp_path):
    tree = tmp_path / "r"
    write(tree, {"a": "1", "b": "2"})
    sh("git init -q .; git add a", tree)
    before = snapshot(tree)
    secured = await history.secure(str(tree))
    sh("echo 3 > a; rm b; git add -A; git commit -qm first", tree)
    await put_back(history, tree, await history.compare(secured))
    assert snapshot(tree) == before


@pytest.mark.req("mechanisms:M8.places")
async def test_a_sha256_repository_and_a_split_index_are_read_too(history, tmp_path):
    tree = tmp_path / "r"
    write(tree, {"a": "1", "b": "2"})
    sh("git init -q --object-format=sha256 . && git add -A && git commit -qm x && git update-index --split-index", tree)
    before = snapshot(tree)
    secured = await history.secure(str(tree))
    assert (secured.files, secured.partial) == (0, ())
    sh("echo 3 > a; rm b", tree)
    await put_back(history, tree, await history.compare(secured))
    assert snapshot(tree) == before


@pytest.mark.req("mechanisms:M8.places")
async def test_an_index_lock_of_another_git_does_not_matter(history, tmp_path):
    tree = repository(tmp_path / "r")
    (tree / ".git/index.lock").touch()
    secured = await history.secure(str(tree))
    assert secured.partial == ()
    assert (tree / ".git/index.lock").exists()


@pytest.mark.req("mechanisms:M8.places")
@pytest.mark.parametrize(
    "damage",
    ["echo rubbish > .git/index", "rm .git/HEAD; mkdir .git/HEAD", "mkfifo .git/index2; mv .git/index2 .git/index"],
)
async def test_with_a_broken_repository_every_file_is_looked_at_and_it_says_so(history, tmp_path, damage):
    tree = repository(tmp_path / "r")
    sh(damage, tree)
    secured = await history.secure(str(tree))
    assert secured.files == 2
    if "HEAD" not in damage:  # without HEAD it is no repository to anybody
        assert any("git could not be asked" in words for words in secured.partial)
    sh("echo x >> a.txt", tree)
    assert list(kinds(await history.compare(secured))) == ["a.txt"]


@pytest.mark.req("mechanisms:M8.partial")
async def test_a_command_that_removes_the_repository_is_told_as_partial(history, tmp_path):
    tree = repository(tmp_path / "r")
    write(tree, {"u": "u"})
    secured = await history.secure(str(tree))
    sh("rm -rf .git a.txt u", tree)
    compared = await history.compare(secured)
    assert list(kinds(compared)) == ["u"]
    assert any("clean before are not told" in words for words in compared.partial)


@pytest.mark.req("mechanisms:M8.places")
async def test_without_git_installed_every_file_is_looked_at(tmp_path, clock):
    tree = repository(tmp_path / "r")
    (tmp_path / "home").mkdir()
    history = WorkspaceHistory(str(tmp_path / "home"), {"PATH": "/nowhere"}, clock)
    secured = await history.secure(str(tree))
    assert secured.files == 2
    assert any("git is not installed" in words for words in secured.partial)


# --- what cannot be kept ----------------------------------------------------------------------------------------


@pytest.mark.req("mechanisms:M8.partial")
async def test_over_the_limits_it_says_how_many_files_and_which_limit(history, tree, monkeypatch):
    monkeypatch.setattr(history_manifest, "FILES_LIMIT", 5)
    write(tree, {f"n{n}": "x" for n in range(9)} | {"large": "x" * (1024 * 1024 + 1)})
    secured = await history.secure(str(tree))
    assert secured.files == 5
    assert any("large" in words and "1 MiB" in words for words in secured.partial)
    assert any("4 files" in w or "6 files" in w for w in secured.partial if "limit of 5 files" in w)
    sh("echo y >> large; echo y >> n8", tree)
    compared = await history.compare(secured)
    assert {c.path: c.before.digest for c in compared.changes} == {"large": "", "n8": ""}
    with pytest.raises(Invalid):
        await history.put(str(tree), "n8", compared.changes[1].before)


@pytest.mark.req("mechanisms:M8.partial")
async def test_over_the_bytes_it_says_so(history, tree, monkeypatch):
    monkeypatch.setattr(history_manifest, "BYTES_LIMIT", 3 * 1024 * 1024)
    write(tree, {f"n{n}": f"{n}" * 1_000_000 for n in range(5)})
    secured = await history.secure(str(tree))
    assert secured.bytes <= 3 * 1024 * 1024
    assert any("3 MiB" in words for words in secured.partial)


@pytest.mark.req("mechanisms:M8.partial")
async def test_a_tree_too_large_to_look_at_is_told(history, tmp_path, monkeypatch):
    monkeypatch.setattr(history_walk, "LOOK_LIMIT", 5)
    tree = tmp_path / "t"
    write(tree, {f"n{n}": "x" for n in range(9)})
    secured = await history.secure(str(tree))
    assert any("more than 5 files" in words for words in secured.partial)
    sh("rm n0", tree)
    compared = await history.compare(secured)
    assert "absent" not in [before for before, _ in kinds(compared).values()], "n5 came to sight, nobody made it"


@pytest.mark.req("mechanisms:M8.partial")
async def test_more_changes_than_can_be_listed_are_counted(history, tree, monkeypatch):
    monkeypatch.setattr(history_compare, "CHANGES_LIMIT", 3)
    secured = await history.secure(str(tree))
    sh("for n in 1 2 3 4 5 6; do echo x > n$n; done", tree)
    compared = await history.compare(secured)
    assert len(compared.changes) == 3
    assert any("3 files more" in words for words in compared.partial)


@pytest.mark.req("mechanisms:M8.partial")
async def test_what_is_no_file_is_told_and_left(history, tmp_path):
    tree = tmp_path / "t"
    tree.mkdir()
    os.mkfifo(tree / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(tree)
        listening.bind("sock")
        secured = await history.secure(str(tree))
    assert any("pipe" in words and "socket" in words for words in secured.partial)
    assert (await history.compare(secured)).changes == ()


@pytest.mark.req("mechanisms:M8.partial")
async def test_names_that_are_no_text_are_told(history, tree):
    (Path(os.fsdecode(os.fsencode(tree) + b"/\xff.txt"))).write_text("x")
    secured = await history.secure(str(tree))
    told = "\\xff.txt: a name that is not UTF-8, not kept"
    assert told in secured.partial
    assert told in (await history.compare(secured)).partial


@pytest.mark.req("mechanisms:M8.partial")
async def test_repositories_inside_and_borrowed_objects_are_told(history, tmp_path):
    tree = repository(tmp_path / "r")
    repository(tree / "inner")
    (tree / ".gitmodules").touch()
    (tree / ".git/objects/info/alternates").write_text(f"{tmp_path}/elsewhere\n")
    secured = await history.secure(str(tree))
    assert [any(word in words for words in secured.partial) for word in ("inner", "submodules", "elsewhere")] == [
        True
    ] * 3
    sh("echo x >> inner/a.txt", tree)
    assert (await history.compare(secured)).changes == ()


# --- file tools -------------------------------------------------------------------------------------------------


@pytest.mark.req("mechanisms:M8.tools")
async def test_a_file_tool_secures_exactly_its_files(history, tree):
    write(tree, {"other": "o"})
    paths = ["a.txt", str(tree / "made/by/it"), "other"]
    secured = await history.secure(str(tree), paths)
    assert secured.files == 2
    write(tree, {"a.txt": "edited", "made/by/it": "new", "src/b.txt": "not its business"})
    compared = await history.compare(secured)
    assert kinds(compared) == {"a.txt": ("file", "file"), "made/by/it": ("absent", "file")}
    await put_back(history, tree, compared)
    assert (tree / "a.txt").read_text() == "a\n"
    assert not (tree / "made").exists()
    assert (tree / "src/b.txt").read_text() == "not its business"


@pytest.mark.req("mechanisms:M8.tools")
async def test_a_directory_that_was_there_stays_when_the_file_in_it_goes(history, tree):
    (tree / "kept/empty").mkdir(parents=True)
    for paths in (["kept/empty/new"], None):
        secured = await history.secure(str(tree), paths)
        write(tree, {"kept/empty/new": "1"})
        await put_back(history, tree, await history.compare(secured))
        assert (tree / "kept/empty").is_dir()
        assert not (tree / "kept/empty/new").exists()


async def test_states_say_what_stands_there_and_keep_it_on_request(history, tree):
    os.symlink("a.txt", tree / "l")
    absent, file, link, other = await history.states(str(tree), ["no/where/x", "a.txt", "l", "src"])
    assert (absent.kind, absent.bare) == (FileKind.ABSENT, 2)
    assert (file.kind, file.size, file.kept) == (FileKind.FILE, 2, False)
    assert await history.content(str(tree), file) is None
    assert (link.kind, other.kind) == (FileKind.LINK, FileKind.OTHER)
    (kept,) = await history.states(str(tree), ["a.txt"], keep=True)
    assert kept.same_as(file)
    assert await history.content(str(tree), kept) == b"a\n"


# --- putting back -----------------------------------------------------------------------------------------------


@pytest.mark.req("mechanisms:M8.put")
@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../out", "", ".", "a//b", "x\0y"])
async def test_nothing_is_put_outside_the_directory(history, tree, path):
    with pytest.raises(Invalid):
        await history.put(str(tree), path, FileState())


@pytest.mark.req("mechanisms:M8.put")
@pytest.mark.parametrize("path", [".git/config", "src/.GIT/hooks/x", ".quintet/config.toml", ".bashrc"])
async def test_protected_names_are_never_put(history, tree, path):
    (state,) = await history.states(str(tree), ["a.txt"], keep=True)
    with pytest.raises(Invalid, match="protected"):
        await history.put(str(tree), path, state)


@pytest.mark.req("mechanisms:M8.put")
async def test_quintets_own_home_is_neither_secured_nor_written(tmp_path, clock):
    write(tmp_path, {"a": "1", "home/config.toml": "mine"})
    history = WorkspaceHistory(str(tmp_path / "home"), os.environ, clock)
    secured = await history.secure(str(tmp_path))
    assert secured.files == 1
    with pytest.raises(Invalid, match="protected"):
        await history.put(str(tmp_path), "home/config.toml", FileState())
    sh("git init -q .", tmp_path)
    assert (await history.secure(str(tmp_path))).files == 1


@pytest.mark.req("mechanisms:M8.put", "security:S17")
async def test_a_link_above_the_path_is_never_followed(history, tree, tmp_path):
    outside = tmp_path / "outside"
    write(outside, {"b.txt": "theirs"})
    (state,) = await history.states(str(tree), ["src/b.txt"], keep=True)
    shutil.rmtree(tree / "src")
    os.symlink(outside, tree / "src")
    with pytest.raises(Invalid):
        await history.put(str(tree), "src/b.txt", state)
    await history.put(str(tree), "src/b.txt", FileState())
    assert (outside / "b.txt").read_text() == "theirs"
    assert (await history.states(str(tree), ["src/b.txt"]))[0].kind is FileKind.ABSENT


@pytest.mark.req("mechanisms:M8.put")
async def test_a_link_at_the_path_is_replaced_and_its_target_left(history, tree, tmp_path):
    write(tmp_path, {"target": "theirs"})
    (state,) = await history.states(str(tree), ["a.txt"], keep=True)
    (tree / "a.txt").unlink()
    os.symlink(tmp_path / "target", tree / "a.txt")
    await history.put(str(tree), "a.txt", state)
    assert (tree / "a.txt").read_text() == "a\n"
    assert not (tree / "a.txt").is_symlink()
    assert (tmp_path / "target").read_text() == "theirs"


@pytest.mark.req("mechanisms:M8.put")
async def test_a_directory_with_files_in_it_is_left(history, tree):
    (state,) = await history.states(str(tree), ["a.txt"], keep=True)
    (tree / "a.txt").unlink()
    write(tree, {"a.txt/theirs": "1"})
    for wanted in (state, FileState()):
        with pytest.raises(Invalid):
            await history.put(str(tree), "a.txt", wanted)
    assert (tree / "a.txt/theirs").read_text() == "1"
    assert [p.name for p in tree.iterdir() if p.name.endswith(".tmp")] == []


@pytest.fixture(params=["swapping", "old kernel"])
def kernel_kind(request, monkeypatch):
    """Whether the system can let two files change places."""
    if request.param != "swapping":
        monkeypatch.setattr(kernel, "_request", lambda _: None)


@pytest.mark.req("mechanisms:M8.moment")
@pytest.mark.usefixtures("kernel_kind")
@pytest.mark.parametrize("wanted", ["content", "nothing", "link"])
@pytest.mark.parametrize(
    "save",
    ["echo saved > a.txt", "rm a.txt", "chmod 600 a.txt", "ln -sf x a.txt", "rm a.txt; mkdir a.txt; touch a.txt/x"],
)
async def test_what_was_saved_since_the_look_is_left(history, tree, wanted, save):
    state = {"content": FileState(FileKind.FILE, 0o644), "nothing": FileState(), "link": FileState(FileKind.LINK)}[
        wanted
    ]
    if wanted != "nothing":
        write(tree, {"aside": "other\n"})
        (kept,) = await history.states(str(tree), ["aside"], keep=True)
        state = msgspec.structs.replace(state, digest=kept.digest, kept=True)
        (tree / "aside").unlink()
    (expected,) = await history.states(str(tree), ["a.txt"], keep=True)
    sh(save, tree)
    saved = snapshot(tree)
    with pytest.raises(Drifted):
        await history.put(str(tree), "a.txt", state, expected)
    (failed,) = await history.put_all(str(tree), [FileChange("a.txt", expected, state)])
    assert isinstance(failed, Drifted)
    assert snapshot(tree) == saved


@pytest.mark.req("mechanisms:M8.moment")
@pytest.mark.usefixtures("kernel_kind")
async def test_what_came_where_nothing_was_expected_is_left(history, tree):
    (state,) = await history.states(str(tree), ["a.txt"], keep=True)
    write(tree, {"new": "saved\n"})
    for wanted in (state, FileState()):
        with pytest.raises(Drifted):
            await history.put(str(tree), "new", wanted, FileState())
    assert (tree / "new").read_text() == "saved\n"
    assert [p.name for p in tree.iterdir() if p.name.endswith(".tmp")] == []
    await history.put(str(tree), "newer", state, FileState())
    assert (tree / "newer").read_text() == "a\n"


@pytest.mark.req("mechanisms:M8.moment")
@pytest.mark.parametrize("request_name", ["exchange", "rename_new"])
async def test_a_save_in_the_very_moment_of_the_move_is_not_lost(history, tree, monkeypatch, request_name):
    """The person's editor writes just before the kernel moves the file, when everything has been looked at."""
    (expected,) = await history.states(str(tree), ["a.txt"], keep=True)
    (other,) = await history.states(str(tree), ["src/b.txt"], keep=True)
    real, saves = getattr(kernel, request_name), ["saved in the last moment\n"]

    def late(directory: int, one: str, two: str) -> bool:
        if saves:
            write(tree, {"a.txt": saves.pop()})
        return real(directory, one, two)

    monkeypatch.setattr(history_putting, request_name, late)
    with pytest.raises(Drifted):
        await history.put(str(tree), "a.txt", other if request_name == "exchange" else FileState(), expected)
    assert (tree / "a.txt").read_text() == "saved in the last moment\n"
    assert [p.name for p in tree.iterdir() if p.name.endswith(".tmp")] == []


@pytest.mark.req("mechanisms:M8.put")
async def test_a_link_or_file_that_became_an_empty_directory_comes_back(history, tree):
    os.symlink("a.txt", tree / "l")
    before = snapshot(tree)
    secured = await history.secure(str(tree))
    sh("rm l a.txt; mkdir l a.txt", tree)
    compared = await history.compare(secured)
    assert kinds(compared) == {"a.txt": ("file", "absent"), "l": ("link", "absent")}
    await put_back(history, tree, compared)
    assert snapshot(tree) == before


@pytest.mark.req("mechanisms:M8.put")
async def test_many_come_back_in_one_go_and_a_damaged_one_is_told_in_its_place(history, tree, tmp_path, monkeypatch):
    monkeypatch.setattr("quintet.workspace.history._HELD_FILES", 3)
    write(tree, {f"n{n}": f"{n}" for n in range(8)})
    secured = await history.secure(str(tree))
    sh("rm n*; echo x > a.txt", tree)
    compared = await history.compare(secured)
    bad = next(c.before.digest for c in compared.changes if c.path == "n4")
    (tmp_path / "home/blobs" / bad[:2] / bad).write_bytes(b"rubbish")
    failed = await history.put_all(str(tree), [FileChange(c.path, c.after, c.before) for c in compared.changes])
    assert [type(f) for f in failed] == [type(None)] * 5 + [StorageDamaged] + [type(None)] * 3
    assert sorted(p.name for p in tree.glob("n*")) == [f"n{n}" for n in range(8) if n != 4]
    assert (tree / "a.txt").read_text() == "a\n"


# --- the store --------------------------------------------------------------------------------------------------


@pytest.mark.req("mechanisms:M8.sweep")
async def test_a_sweep_keeps_what_manifests_name(history, tree, clock):
    write(tree, {"u": "mine"})
    kept, dropped = await history.secure(str(tree)), None
    write(tree, {"u": "other"})
    dropped = await history.secure(str(tree))
    clock.step(2 * 3600)
    assert (await history.sweep((), [kept.manifest]))[0] >= 2
    write(tree, {"u": "third"})
    compared = await history.compare(kept)
    await put_back(history, tree, compared)
    assert (tree / "u").read_text() == "mine"
    gone = await history.compare(dropped)
    assert gone.changes == ()
    assert any("gone" in words for words in gone.partial)


@pytest.mark.req("mechanisms:M8.sweep")
async def test_what_is_remembered_as_kept_is_kept_again_after_a_sweep(history, tree, clock, monkeypatch):
    write(tree, {"u": "mine"})
    os.utime(tree / "u", (1, 1))
    monkeypatch.setattr("quintet.workspace.history_keeping._SURE_NS", -(10**12))
    monkeypatch.setattr("quintet.workspace.history_keeping._REFRESH_S", -1.0)
    await history.secure(str(tree))
    clock.step(2 * 3600)
    await history.sweep((), ())
    (state,) = await history.states(str(tree), ["u"], keep=True)
    assert await history.content(str(tree), state) == b"mine"


async def test_nothing_of_a_look_is_left_behind(history, tree, tmp_path):
    await history.compare(await history.secure(str(tree)))
    scratch = tmp_path / "home/blobs/.scratch"
    assert not scratch.exists() or list(scratch.iterdir()) == []
    assert subprocess.run(["git", "status", "--porcelain"], cwd=tree, capture_output=True, check=False).stdout in (
        b"",
        b"?? a.txt\n",
    )


@pytest.mark.parametrize("moment", range(12))
async def test_a_cancel_at_any_moment_leaves_nothing_running_and_nothing_behind(history, tmp_path, moment):
    tree = repository(tmp_path / "r", {f"f{n}": f"{n}" for n in range(50)})
    task = asyncio.ensure_future(history.secure(str(tree)))
    for _ in range(moment * 4):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    scratch = tmp_path / "home/blobs/.scratch"
    assert not scratch.exists() or list(scratch.iterdir()) == []
    assert (await history.secure(str(tree))).partial == ()


@pytest.mark.parametrize("made", [True, False])
async def test_a_cancel_or_a_failure_while_the_scratch_directory_is_being_made_leaves_none(
    history, tmp_path, monkeypatch, made
):
    """The moment that the test above meets only now and then, held still."""
    tree = repository(tmp_path / "r")
    scratch = tmp_path / "home/blobs/.scratch"
    making, go_on = threading.Event(), threading.Event()
    real = git._shell_around

    def slowly(*arguments):
        real(*arguments)
        making.set()
        assert go_on.wait(30)
        if not made:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(git, "_shell_around", slowly)
    task = asyncio.ensure_future(history.secure(str(tree)))
    while not making.is_set():
        await asyncio.sleep(0)
    assert len(list(scratch.iterdir())) == 1
    if made:
        task.cancel()
        await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError if made else OSError):
        await asyncio.wait_for(task, 30)
    assert list(scratch.iterdir()) == []


@pytest.mark.req("mechanisms:M8.cancel")
@pytest.mark.parametrize("part", ["walk", "keep"])
async def test_a_cancel_is_heard_before_every_file_was_looked_at(history, tmp_path, monkeypatch, part):
    tree = tmp_path / "t"
    write(tree, {f"n{n}": f"{n}" for n in range(200)})
    seen: list[str] = []
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def slowly(path: str) -> None:
        seen.append(path)
        loop.call_soon_threadsafe(begun.set)
        if len(seen) == 3:
            assert told.wait(20), "nobody told the thread to stop"

    if part == "walk":
        real = history_walk._speakable
        monkeypatch.setattr(history_walk, "_speakable", lambda path: (slowly(path), real(path))[1])
    else:
        entry = Keeper._entry
        monkeypatch.setattr(Keeper, "_entry", lambda self, d, t, path, b: (slowly(path), entry(self, d, t, path, b))[1])
    told = threading.Event()
    tell = Stop.tell
    monkeypatch.setattr(Stop, "tell", lambda self: (tell(self), told.set())[0])
    task = asyncio.ensure_future(history.secure(str(tree)))
    await asyncio.wait_for(begun.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30)
    assert told.is_set(), "nobody told the thread to stop"
    assert len(seen) <= 3


async def test_the_event_loop_goes_on_while_files_are_put_aside(history, tree):
    write(tree, {f"n{n}": f"{n}" * 1000 for n in range(300)})
    turns = 0
    task = asyncio.ensure_future(history.secure(str(tree)))
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 20
    assert (await task).files >= 300
