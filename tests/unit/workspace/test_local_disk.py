"""What a client learns of directories and files of this machine."""

from __future__ import annotations

import os
from pathlib import Path

from quintet.workspace.local_disk import LocalDisk

DISK = LocalDisk()


async def test_a_directory_is_told_behind_its_links_and_nothing_else_is_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").write_text("x")
    assert await DISK.directory(str(tmp_path / "link")) == os.path.realpath(tmp_path / "real")
    for name in ("file", "missing", "nul\0"):
        assert await DISK.directory(f"{tmp_path}/{name}") is None


async def test_only_regular_files_of_a_directory_are_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("abc")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "inner").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (seen,) = await DISK.files(str(tmp_path))
    assert (seen.path, seen.size) == (str(tmp_path / "file"), 3)
    assert await DISK.modified_ms(seen.path) == seen.modified_ms
    assert await DISK.files(str(tmp_path / "missing")) == []
    assert await DISK.modified_ms(str(tmp_path / "missing")) is None


async def test_a_text_is_read_only_where_nobody_else_could_have_written_it(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("words")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    assert await DISK.text(str(file), 3) == "wor"
    for name in ("link", "pipe", "missing"):
        assert await DISK.text(str(tmp_path / name), 10) is None
    file.chmod(0o646)
    assert await DISK.text(str(file), 10) is None
