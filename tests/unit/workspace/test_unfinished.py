"""What killed makers leave behind, and that nothing of those at work is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quintet.workspace.unfinished import clear_unfinished, making_in


def leave(directory: Path) -> None:
    """As a process leaves it that was killed."""
    (directory / ".making-dead").mkdir()
    (directory / ".making-dead/quintet.db").write_text("half")
    (directory / ".quintet-0123456789ab.tmp").write_text("half")


def test_the_next_one_clears_what_a_killed_one_left_and_nothing_else(tmp_path: Path) -> None:
    leave(tmp_path)
    (tmp_path / "quintet-1.tar").write_text("whole")
    (tmp_path / ".quintet-mine.tmp").write_text("the person's")
    with making_in(str(tmp_path)) as scratch:
        assert sorted(os.listdir(tmp_path)) == sorted([os.path.basename(scratch), ".quintet-mine.tmp", "quintet-1.tar"])
        assert os.stat(scratch).st_mode & 0o777 == 0o700
    assert sorted(os.listdir(tmp_path)) == [".quintet-mine.tmp", "quintet-1.tar"]


def test_while_somebody_is_at_work_nothing_is_cleared(tmp_path: Path) -> None:
    with making_in(str(tmp_path)) as scratch:
        leave(tmp_path)
        with making_in(str(tmp_path)) as other:
            assert os.path.isdir(scratch)
            assert other != scratch
        assert clear_unfinished(str(tmp_path)) == []
        assert os.path.isdir(scratch)
    assert clear_unfinished(str(tmp_path)) == [".making-dead", ".quintet-0123456789ab.tmp"]


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_where_there_is_nothing_nothing_is_done(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    assert clear_unfinished(str(tmp_path / name)) == []


def test_a_link_among_them_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("mine")
    (tmp_path / "backups/.making-link").symlink_to(tmp_path / "mine")
    clear_unfinished(str(tmp_path / "backups"))
    assert (tmp_path / "mine/file").read_text() == "mine"
