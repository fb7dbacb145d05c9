"""What the history leaves behind: after a sweep, a cancel, a failure."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import subprocess
import threading

import pytest

from quintet.workspace import git, history_walk
from quintet.workspace.history_keeping import Keeper
from quintet.workspace.history_stop import Stop
from tests.unit.workspace.histories import put_back
from tests.unit.workspace.repositories import repository, write

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
