"""Mirrors in a check-up: as they were written, changed by others, gone, or in a place that cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quintet.domain.checkup import Health
from quintet.workspace.mirror_check import look_at_mirrors


def test_where_clients_read_no_files_there_is_nothing_to_say() -> None:
    assert look_at_mirrors({}) == []


def test_files_that_can_be_written_are_counted_and_those_that_others_changed_too(tmp_path: Path) -> None:
    (tmp_path / "same").write_text("1234")
    (tmp_path / "longer").write_text("123456")
    sizes = {str(tmp_path / name): 4 for name in ("same", "longer", "gone/and/its/directory")}
    [row] = look_at_mirrors(sizes)
    assert row.health is Health.OK
    assert row.detail.startswith("3 files that clients read can be written; 1 written by others since")


@pytest.mark.req("first_minutes:F6")
def test_files_that_cannot_be_written_warn_with_the_command_that_opens_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everywhere, so the system's word is asked for as another user would get it."""
    shut = tmp_path / "shut"
    shut.mkdir()
    (tmp_path / "open").write_text("")
    really = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith(str(shut)) and really(path, mode))
    [row] = look_at_mirrors({str(shut / "wire.jsonl"): 0, str(tmp_path / "open"): 0})
    assert (row.health, row.fix) == (
        Health.WARN,
        f"Give yourself the right to write there, as with `chmod u+w {shut}/wire.jsonl`",
    )
    assert "1 of 2" in row.detail
