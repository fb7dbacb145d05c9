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

import pytest

from quintet.domain.checkpoint import Compared, FileKind, FileState
from quintet.domain.errors import Invalid
from quintet.workspace import git, history_compare, history_git, history_manifest, history_walk
from quintet.workspace.history import WorkspaceHistory
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
    for change in sorted(compared.changes, key=lambda c: (c.before.kind is not FileKind.ABSENT, -c.path.count("/"))):
        await history.put(str(directory), change.path, change.before)


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


async def test_the_event_loop_goes_on_while_files_are_put_aside(history, tree):
    write(tree, {f"n{n}": f"{n}" * 1000 for n in range(300)})
    turns = 0
    task = asyncio.ensure_future(history.secure(str(tree)))
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 20
    assert (await task).files >= 300
