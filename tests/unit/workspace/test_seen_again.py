"""What a thread knows of files goes along with a copy of it, is forgotten on request, and is found again."""

from __future__ import annotations

import os
from pathlib import Path

from quintet.workspace.seen import Seen, Sight


def test_a_copy_knows_what_its_source_knew_and_goes_its_own_way() -> None:
    seen = Seen()
    seen.note("one", "/a", b"x")
    seen.copy("one", "two")
    seen.copy("nobody", "three")
    assert seen.sight("two", "/a", b"x") is Sight.CURRENT
    seen.note("two", "/b", b"y")
    assert seen.sight("one", "/b", b"y") is Sight.NEVER
    seen.forget("one")
    assert seen.sight("one", "/a", b"x") is Sight.NEVER
    assert seen.sight("two", "/a", b"x") is Sight.CURRENT
    assert seen.sight("three", "/a", b"x") is Sight.NEVER


async def test_only_what_was_not_touched_since_is_found_again(tmp_path: Path) -> None:
    for name in ("old", "new", "moved"):
        (tmp_path / name).write_text(name)
    os.utime(tmp_path / "moved", (1_000, 1_000))  # as a file from elsewhere brings it along
    (tmp_path / "link").symlink_to("old")
    changed = {name: os.stat(tmp_path / name).st_ctime_ns // 1_000_000 for name in ("old", "new", "moved", "link")}
    used = [("old", changed["old"]), ("new", changed["new"] - 1), ("moved", changed["moved"] - 1), ("link", 2**60)]
    seen = Seen()
    await seen.recall("one", [(str(tmp_path / name), at_ms) for name, at_ms in (*used, ("missing", 2**60))])
    assert seen.sight("one", str(tmp_path / "old"), b"old") is Sight.CURRENT
    for name in ("new", "moved"):
        assert seen.sight("one", str(tmp_path / name), name.encode()) is Sight.NEVER
    assert seen.sight("one", str(tmp_path / "link"), b"old") is Sight.NEVER
