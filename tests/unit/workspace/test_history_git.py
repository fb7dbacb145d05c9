"""The history in repositories of every kind, and where git cannot be asked."""

from __future__ import annotations

import os
import shutil
import stat

import pytest

from quintet.domain.errors import Invalid
from quintet.workspace import history_git
from quintet.workspace.history import WorkspaceHistory
from tests.unit.workspace.histories import kinds, put_back
from tests.unit.workspace.repositories import repository, sh, snapshot, write

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
