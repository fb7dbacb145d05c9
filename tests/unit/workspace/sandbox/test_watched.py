"""Names that are put back: as they were, and with nothing lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quintet.workspace.sandbox.watched import PutBack, put_back, remember

pytestmark = pytest.mark.req("security:S28")


def test_what_did_not_change_is_left(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("somewhere")
    assert put_back(remember([str(tmp_path / "link"), str(tmp_path / "absent")])) == []
    assert [p.name for p in tmp_path.iterdir()] == ["link"]


def test_a_whole_directory_is_moved_aside_with_what_is_in_it(tmp_path: Path) -> None:
    name = tmp_path / "opencode.json"
    before = remember([str(name)])
    (name / "deep").mkdir(parents=True)
    (name / "deep" / "f").write_text("kept")
    assert put_back(before) == [PutBack(str(name), f"{name}.from-command")]
    assert (tmp_path / "opencode.json.from-command/deep/f").read_text() == "kept"
    assert not name.exists()


def test_a_link_that_was_removed_is_there_again(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("somewhere")
    before = remember([str(tmp_path / "link")])
    (tmp_path / "link").unlink()
    assert put_back(before) == [PutBack(str(tmp_path / "link"))]
    assert os.readlink(tmp_path / "link") == "somewhere"


def test_a_link_that_leads_elsewhere_now_is_moved_aside_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("untouched")
    before = remember([str(tmp_path / "name")])
    (tmp_path / "name").symlink_to("target")
    [one] = put_back(before)
    assert os.readlink(one.aside) == "target"
    assert (tmp_path / "target").read_text() == "untouched"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write every directory")
def test_a_directory_made_unwritable_does_not_keep_it_in_place(tmp_path: Path) -> None:
    name = tmp_path / "d" / "opencode.json"
    name.parent.mkdir()
    before = remember([str(name)])
    name.write_text("x")
    name.parent.chmod(0o555)
    try:
        assert put_back(before) == [PutBack(str(name), f"{name}.from-command")]
        assert name.parent.stat().st_mode & 0o777 == 0o555
    finally:
        name.parent.chmod(0o755)


def test_what_cannot_be_put_back_is_told(tmp_path: Path) -> None:
    before = remember([str(tmp_path / "d" / "name")])
    before[str(tmp_path / "d" / "name")] = "somewhere"  # a link, of which even the directory is gone
    [one] = put_back(before)
    assert (one.aside, one.failure) == ("", "No such file or directory")
