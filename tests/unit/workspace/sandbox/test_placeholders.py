"""Names made to be covered, and taken away again: only ours, only empty, never while somebody covers them."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pytest

from quintet.domain.errors import Busy
from quintet.workspace.sandbox.placeholders import Moved, Placeholders, tidy

pytestmark = pytest.mark.req("security:S28")


def placeholders(notes: str) -> Placeholders:
    return Placeholders(notes, f"{notes}.locks")


def tidied(notes: str) -> None:
    tidy(notes, f"{notes}.locks")


def test_what_was_made_is_taken_away(tmp_path: Path) -> None:
    notes, name = str(tmp_path / "notes"), tmp_path / ".claude"
    held = placeholders(notes)
    assert held.make([str(name)], []) == set()
    assert name.is_dir()
    held.release()
    tidied(notes)
    assert not name.exists()
    assert not os.path.exists(notes)


def test_it_stays_while_another_command_covers_it(tmp_path: Path) -> None:
    notes, name = str(tmp_path / "notes"), tmp_path / ".claude"
    first, second = placeholders(notes), placeholders(notes)
    first.make([str(name)], [])
    second.make([], [str(name)])  # found it there
    first.release()
    tidied(notes)
    assert name.is_dir()
    second.release()
    tidied(notes)
    assert not name.exists()


def test_it_stays_while_a_command_of_another_home_covers_it(tmp_path: Path) -> None:
    name = tmp_path / ".claude"
    first, second = placeholders(str(tmp_path / "one")), placeholders(str(tmp_path / "two"))
    first.make([str(name)], [])
    second.make([], [str(name)])
    first.release()
    tidied(str(tmp_path / "one"))
    assert name.is_dir()
    second.release()
    tidied(str(tmp_path / "two"))
    assert name.is_dir()  # not its own
    tidied(str(tmp_path / "one"))
    assert not name.exists()


def test_what_became_somebodys_own_is_left(tmp_path: Path) -> None:
    notes, name = str(tmp_path / "notes"), tmp_path / ".claude"
    held = placeholders(notes)
    held.make([str(name)], [])
    (name / "settings.json").touch()
    held.release()
    tidied(notes)
    assert (name / "settings.json").exists()
    assert not os.path.exists(notes)


def test_a_directory_that_was_there_is_never_removed(tmp_path: Path) -> None:
    notes, name = str(tmp_path / "notes"), tmp_path / ".claude"
    name.mkdir()
    held = placeholders(notes)
    held.make([], [str(name)])
    held.release()
    tidied(notes)
    assert name.is_dir()


def test_what_a_killed_process_left_is_taken_away_by_the_next(tmp_path: Path) -> None:
    notes, name = str(tmp_path / "notes"), tmp_path / ".claude"
    script = (
        "import os, sys; from quintet.workspace.sandbox.placeholders import Placeholders\n"
        "Placeholders(sys.argv[1], sys.argv[1] + '.locks').make([sys.argv[2]], []); os.kill(os.getpid(), 9)"
    )
    died = subprocess.run([sys.executable, "-c", script, notes, str(name)], timeout=30, check=False)
    assert died.returncode == -9
    assert name.is_dir()
    tidied(notes)
    assert not name.exists()


def test_a_name_that_is_a_link_by_now_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".claude").symlink_to("elsewhere")
    with pytest.raises(Moved):
        placeholders(str(tmp_path / "notes")).make([str(tmp_path / ".claude")], [])
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_many_at_once_always_have_it_while_they_hold_it_and_leave_nothing(tmp_path: Path) -> None:
    notes, names = str(tmp_path / "notes"), [str(tmp_path / f".n{n}") for n in range(3)]
    missing: list[str] = []

    def work() -> None:
        for _ in range(40):
            held = placeholders(notes)
            held.make(names, [])
            missing.extend(name for name in names if not os.path.isdir(name))
            held.release()
            tidied(notes)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert missing == []
    assert not any(os.path.exists(name) for name in names)


@pytest.mark.parametrize("kind", [fcntl.LOCK_EX, fcntl.LOCK_SH])
def test_a_lock_that_a_command_holds_on_the_directory_keeps_nobody_waiting(tmp_path: Path, kind: int) -> None:
    notes, name, there = str(tmp_path / "notes"), tmp_path / ".claude", tmp_path / ".git"
    there.mkdir()
    first, second = placeholders(notes), placeholders(notes)
    first.make([str(name)], [str(there)])
    with locked(there, kind), locked(name, kind | fcntl.LOCK_NB) if kind == fcntl.LOCK_SH else nullcontext():
        second.make([str(name)], [str(there)])
        first.release()
        tidied(notes)
        assert name.is_dir()  # the second has it
        second.release()
        tidied(notes)
    tidied(notes)
    assert not name.exists()


@contextmanager
def locked(place: Path, kind: int) -> Iterator[None]:
    """As another program would hold it: a lock there excludes one of ours, where ours is not there before."""
    handle = os.open(place, os.O_RDONLY)
    with suppress(BlockingIOError):
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    try:
        yield
    finally:
        os.close(handle)


def test_notes_that_somebody_holds_for_long_are_said_to_be_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quintet.workspace.sandbox.placeholders.WITHIN_S", 0.05)
    notes = tmp_path / "notes"
    notes.touch()
    with locked(notes, fcntl.LOCK_EX):
        with pytest.raises(Busy, match="in use"):
            placeholders(str(notes)).make([str(tmp_path / ".claude")], [])
        with pytest.raises(Busy, match="in use"):
            tidied(str(notes))
    assert not (tmp_path / ".claude").exists()
