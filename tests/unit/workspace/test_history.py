"""Securing and comparing, with real git and real files: what is told, and what is beyond the limits."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from quintet.domain.checkpoint import Compared, FileKind
from quintet.domain.errors import Invalid
from quintet.workspace import history_compare, history_manifest, history_walk
from tests.unit.workspace.histories import kinds, put_back
from tests.unit.workspace.repositories import repository, sh, snapshot, write


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
