"""Files that other programs write, too: what goes wrong with one is told by the name people know."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintet.workspace.mirror_files import DiskMirrorFiles


async def test_a_file_that_cannot_be_replaced_is_named_and_not_what_was_to_replace_it(tmp_path: Path) -> None:
    there = tmp_path / "config.json"
    (there / "full").mkdir(parents=True)
    with pytest.raises(OSError, match=r"config\.json") as told:
        await DiskMirrorFiles(str(tmp_path / "run")).write(str(there), b"{}")
    assert told.value.filename == str(there)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json"]
