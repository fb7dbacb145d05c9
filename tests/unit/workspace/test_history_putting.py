"""Putting back: never outside, never through a link, never over what came since."""

from __future__ import annotations

import os
import shutil

import msgspec
import pytest

from quintet.domain.checkpoint import FileChange, FileKind, FileState
from quintet.domain.errors import Drifted, Invalid, StorageDamaged
from quintet.workspace import history_putting, kernel
from quintet.workspace.history import WorkspaceHistory
from tests.unit.workspace.histories import kinds, put_back
from tests.unit.workspace.repositories import sh, snapshot, write

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
