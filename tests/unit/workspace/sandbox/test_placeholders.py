"""Names made to be covered, and taken away again: only ours, only empty, never while somebody covers them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from quintet.domain.errors import Busy
from quintet.workspace.sandbox.placeholders import Placeholders, tidy

pytestmark = pytest.mark.req("security:S28")


def test_what_was_made_is_taken_away(tmp_path: Path) -> None:
    notes, name = str(tmp_path / "notes"), tmp_path / ".claude"
    held = Placeholders(notes)
    assert held.make([str(name)], []) == set()
    assert name.is_dir()
    held.release()
    tidy(notes)
    assert not name.exists()
    assert not os.path.exists(notes)


def test_it_stays_while_another_command_covers_it(tmp_path: Path) -> None:
    notes, name = str(tmp_path / "notes"), tmp_path / ".claude"
    first, second = Placeholders(notes), Placeholders(notes)
    first.make([str(name)], [])
    second.make([], [str(name)])  # found it there
    first.release()
    tidy(notes)
    assert name.is_dir()
    second.release()
    tidy(notes)
    assert not name.exists()


def test_it_stays_while_a_command_of_another_home_covers_it(tmp_path: Path) -> None:
    name = tmp_path / ".claude"
    first, second = Placeholders(str(tmp_path / "one")), Placeholders(str(tmp_path / "two"))
    first.make([str(name)], [])
    second.make([], [str(name)])
    first.release()
    tidy(str(tmp_path / "one"))
    assert name.is_dir()
    second.release()
    tidy(str(tmp_path / "two"))
    assert name.is_dir()  # not its own
    tidy(str(tmp_path / "one"))
    assert not name.exists()


def test_what_became_somebodys_own_is_left(tmp_path: Path) -> None:
    notes, name = str(tmp_path / "notes"), tmp_path / ".claude"
    held = Placeholders(notes)
    held.make([str(name)], [])
    (name / "settings.json").touch()
    held.release()
    tidy(notes)
    assert (name / "settings.json").exists()
    assert not os.path.exists(notes)


def test_a_directory_that_was_there_is_never_removed(tmp_path: Path) -> None:
    notes, name = str(tmp_path / "notes"), tmp_path / ".claude"
    name.mkdir()
    held = Placeholders(notes)
    held.make([], [str(name)])
    held.release()
    tidy(notes)
    assert name.is_dir()


def test_what_a_killed_process_left_is_taken_away_by_the_next(tmp_path: Path) -> None:
    notes, name = str(tmp_path / "notes"), tmp_path / ".claude"
    script = (
        "import os, sys; from quintet.workspace.sandbox.placeholders import Placeholders\n"
        "Placeholders(sys.argv[1]).make([sys.argv[2]], []); os.kill(os.getpid(), 9)"
    )
    died = subprocess.run([sys.executable, "-c", script, notes, str(name)], timeout=30, check=False)
    assert died.returncode == -9
    assert name.is_dir()
    tidy(notes)
    assert not name.exists()


def test_a_name_that_is_a_link_by_now_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".claude").symlink_to("elsewhere")
    with pytest.raises(Busy):
        Placeholders(str(tmp_path / "notes")).make([str(tmp_path / ".claude")], [])
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_many_at_once_always_have_it_while_they_hold_it_and_leave_nothing(tmp_path: Path) -> None:
    notes, names = str(tmp_path / "notes"), [str(tmp_path / f".n{n}") for n in range(3)]
    missing: list[str] = []

    def work() -> None:
        for _ in range(40):
            held = Placeholders(notes)
            held.make(names, [])
            missing.extend(name for name in names if not os.path.isdir(name))
            held.release()
            tidy(notes)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert missing == []
    assert not any(os.path.exists(name) for name in names)
