"""The sandbox's own directories: private, per thread, and gone with their process."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from quintet.domain.errors import StorageReadOnly
from quintet.workspace.sandbox.rooms import Rooms

LEFT_BEHIND = (
    "import os, sys; from quintet.workspace.sandbox.rooms import Rooms\n"
    "print(Rooms(sys.argv[1]).scratch('t'), flush=True); os.kill(os.getpid(), 9)"
)


def test_a_thread_keeps_its_directory_and_shares_it_with_no_other(tmp_path: Path) -> None:
    rooms = Rooms(str(tmp_path))
    one = rooms.scratch("one")
    assert rooms.scratch("one") == one != rooms.scratch("two")
    assert stat.S_IMODE(os.stat(one).st_mode) == 0o700
    assert Path(one).is_relative_to(tmp_path / "run")


def test_it_is_gone_after_closing_also_what_nobody_may_write(tmp_path: Path) -> None:
    rooms = Rooms(str(tmp_path))
    inner = Path(rooms.scratch("one"), "a", "b")
    inner.mkdir(parents=True)
    (inner / "f").touch()
    inner.chmod(0o500)
    inner.parent.chmod(0)
    rooms.close()
    assert list((tmp_path / "run" / "sandbox" / "scratch").iterdir()) == []
    rooms.close()  # twice is fine


def test_what_a_killed_process_left_is_swept_and_what_lives_is_not(tmp_path: Path) -> None:
    living = Rooms(str(tmp_path))
    mine = living.scratch("t")
    died = subprocess.run(
        [sys.executable, "-c", LEFT_BEHIND, str(tmp_path)], capture_output=True, text=True, timeout=30, check=False
    )
    left = died.stdout.strip()
    assert os.path.isdir(left)
    Rooms(str(tmp_path)).scratch("other")
    assert not os.path.exists(left)
    assert os.path.isdir(mine)


def test_without_a_home_the_systems_temporary_directory_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rooms = Rooms()
    assert Path(rooms.scratch("t")).is_relative_to(tmp_path / f"quintet-{os.getuid()}")


def test_a_directory_others_can_enter_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"quintet-{os.getuid()}").mkdir()
    (tmp_path / f"quintet-{os.getuid()}").chmod(0o755)
    with pytest.raises(StorageReadOnly, match="belongs to somebody else"):
        Rooms().scratch("t")
