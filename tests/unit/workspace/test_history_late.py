"""A call whose end nobody saw: what was changed after it was last known to run is told apart from the rest."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from quintet.domain.checkpoint import Secured
from quintet.journal.clock import SystemClock
from quintet.workspace.history import WorkspaceHistory
from tests.unit.workspace.repositories import repository, sh, write

pytestmark = pytest.mark.req("mechanisms:M8.killed")


@pytest.fixture
def history(tmp_path: Path) -> WorkspaceHistory:
    (tmp_path / "home").mkdir(mode=0o700)
    return WorkspaceHistory(str(tmp_path / "home"), os.environ, SystemClock())


@pytest.fixture(params=["git", "plain"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    place = tmp_path / "tree"
    files = {"a.txt": "a\n", "b.txt": "b\n", "src/c.txt": "c\n", "spare/c.txt": "other\n"}
    if request.param == "git":
        repository(place)
        write(place, files)
        sh("git add -A && git commit -qm more", place)
    else:
        write(place, files)
    return place


async def last_known_to_run(history: WorkspaceHistory, secured: Secured, tree: Path) -> None:
    """Said behind everything written until now, and before everything written from now on."""
    _tick(tree)
    await history.still_runs(secured)
    _tick(tree)


def _tick(tree: Path) -> None:
    """Until the clock that files are stamped with is another millisecond on."""
    mark = tree.parent / "tick"
    mark.touch()
    then = mark.stat().st_mtime_ns
    until = time.monotonic() + 10
    while mark.stat().st_mtime_ns < then + 2_000_000:
        assert time.monotonic() < until
        mark.touch()


async def late(history: WorkspaceHistory, secured: Secured) -> list[str]:
    compared = await history.compare(secured, cut_off=True)
    assert compared.partial == ()
    assert (await history.compare(secured)).late == (), "of a call whose end was seen nothing is late"
    return list(compared.late)


async def test_what_came_or_was_changed_after_the_last_word_of_the_call_is_late(history, tree):
    secured = await history.secure(str(tree))
    write(tree, {"a.txt": "call", "b.txt": "call", "made": "call", "too": "call"})
    await last_known_to_run(history, secured, tree)
    write(tree, {"b.txt": "person", "too": "person", "mine": "person"})
    os.utime(tree / "b.txt", (1e9, 1e9))
    assert await late(history, secured) == ["b.txt", "mine", "too"]


async def test_without_a_word_everything_is_late(history, tree):
    secured = await history.secure(str(tree))
    _tick(tree)
    write(tree, {"a.txt": "call", "made": "call"})
    assert await late(history, secured) == ["a.txt", "made"]


async def test_what_is_gone_is_not_late(history, tree):
    secured = await history.secure(str(tree))
    await last_known_to_run(history, secured, tree)
    (tree / "a.txt").unlink()
    assert await late(history, secured) == []


@pytest.mark.parametrize("to", ["new", "src"], ids=["a new name", "the name of another"])
async def test_what_was_moved_there_with_its_directory_is_late(history, tree, to):
    """No file in it shows a trace of that."""
    secured = await history.secure(str(tree))
    await last_known_to_run(history, secured, tree)
    sh(f"rm -rf {to}; mv spare {to}", tree)
    assert await late(history, secured) == [f"{to}/c.txt"]
    assert (tree / to / "c.txt").read_text() == "other\n"


async def test_a_file_put_beside_what_the_call_did_does_not_make_that_late(history, tree):
    secured = await history.secure(str(tree))
    write(tree, {"src/c.txt": "call"})
    await last_known_to_run(history, secured, tree)
    write(tree, {"src/mine": "person"})
    assert await late(history, secured) == ["src/mine"]
