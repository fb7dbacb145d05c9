"""Memory on disk: Kward's own files, shared with whoever else writes them, by several processes at once."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.memory import Layer, Memories, Memory, MemoryChange, MemoryStatus
from quintet.workspace import mirror_files
from quintet.workspace.memory_files import MemoryFiles
from quintet.workspace.mirror_files import DiskMirrorFiles
from quintet.workspace.settings_file import SettingsFile

CORE = {
    "id": "core_001",
    "text": "Be brief",
    "scope": "global",
    "tags": ["tone"],
    "created_at": "2026-01-01T00:00:00.000Z",
    "updated_at": "2026-01-01T00:00:00.000Z",
    "source": "explicit_user_instruction",
    "pinned": True,
    "theirs": {"kept": 1},
}
SOFT = {
    "id": "soft_001",
    "text": "Uses minitest",
    "scope": "workspace:/w",
    "tags": [],
    "confidence": 0.65,
    "hits": 2,
    "created_at": "2026-01-01T00:00:00.000Z",
    "updated_at": "2026-01-01T00:00:00.000Z",
    "last_seen_at": "2026-01-01T00:00:00.000Z",
    "ttl_days": 60,
    "source": "manual",
    "status": "active",
}


def store(tmp_path: Path) -> MemoryFiles:
    (tmp_path / "dir" / "memory").mkdir(parents=True, exist_ok=True)
    return MemoryFiles(str(tmp_path / "dir"), DiskMirrorFiles(str(tmp_path / "run"), patience_s=20))


def write(store: MemoryFiles, core: object, soft: str) -> None:
    Path(store.paths.core).write_text(json.dumps(core))
    Path(store.paths.soft).write_text(soft)


def another(text: str) -> Memory:
    return Memory("soft_009", Layer.SOFT, text)


async def add(files: MemoryFiles, memory: Memory) -> None:
    await files.change(lambda kept: MemoryChange(Memories(kept.core, (*kept.soft, memory)), ({"type": "add"},)))


async def test_kward_s_own_files_are_read_and_keep_what_they_say_besides(tmp_path: Path) -> None:
    files = store(tmp_path)
    write(files, [CORE], json.dumps(SOFT) + "\n")
    kept = await files.read()
    assert [m.text for m in (*kept.core, *kept.soft)] == ["Be brief", "Uses minitest"]
    await files.change(lambda kept: MemoryChange(Memories((*kept.core, kept.core[0]), kept.soft)))
    assert json.loads(Path(files.paths.core).read_text()) == [CORE, CORE]
    await add(files, another("more"))
    assert json.loads(Path(files.paths.soft).read_text().splitlines()[0]) == SOFT


async def test_a_core_file_with_a_heading_keeps_it(tmp_path: Path) -> None:
    files = store(tmp_path)
    write(files, {"version": 3, "memories": [CORE]}, "")
    await files.change(lambda kept: MemoryChange(Memories((), kept.soft)))
    assert json.loads(Path(files.paths.core).read_text()) == {"version": 3, "memories": []}


async def test_a_line_nobody_can_read_stays_and_hides_no_other(tmp_path: Path) -> None:
    files = store(tmp_path)
    write(files, [], f'{{"torn\n{json.dumps(SOFT)}\n[]\n\n{{"id": 5, "tags": "x", "confidence": "high"}}\n')
    kept = await files.read()
    assert [(m.id, m.status) for m in kept.soft] == [
        ("soft_001", MemoryStatus.ACTIVE),
        ("", MemoryStatus.FORGOTTEN),
    ]
    await add(files, another("more"))
    lines = Path(files.paths.soft).read_text().splitlines()
    assert '{"torn' in lines
    assert "[]" in lines


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-1e999", "1" + "0" * 400], ids=lambda text: text[:9])
async def test_a_number_that_is_none_counts_as_not_said_and_hides_no_other(tmp_path: Path, number: str) -> None:
    files = store(tmp_path)
    odd = json.dumps({**SOFT, "id": "soft_002"} | dict.fromkeys(("confidence", "hits", "ttl_days"), "?"))
    lines = [json.dumps(SOFT), odd.replace('"?"', number)]
    Path(files.paths.soft).write_text("\n".join(lines) + "\n")
    first, second = (await files.read()).soft
    assert (first.confidence, first.hits) == (0.65, 2)
    assert (second.confidence, second.hits, second.ttl_days) == (0.0, 0, 0)


async def test_what_a_cancelled_writer_began_is_on_disk_before_the_next_one_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, begun, go_on = str(tmp_path / "file"), threading.Event(), threading.Event()
    write = mirror_files._write

    def slow(path: str, data: bytes) -> None:
        begun.set()
        assert go_on.wait(30)
        write(path, data)

    async def change() -> None:
        async with files.hold(path):
            await files.write(path, b"begun")

    files, others = DiskMirrorFiles(str(tmp_path / "run")), DiskMirrorFiles(str(tmp_path / "run"), patience_s=0.0)
    monkeypatch.setattr(mirror_files, "_write", slow)
    changing = asyncio.create_task(change())
    assert await asyncio.to_thread(begun.wait, 30)
    changing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await changing
    with pytest.raises(TimeoutError):
        async with others.hold(path):
            pass
    go_on.set()
    async with DiskMirrorFiles(str(tmp_path / "run"), patience_s=30.0).hold(path):
        assert Path(path).read_bytes() == b"begun"


async def test_a_core_file_that_is_not_json_is_named_and_left_alone(tmp_path: Path) -> None:
    files = store(tmp_path)
    Path(files.paths.core).write_text("{ no")
    with pytest.raises(Invalid, match=r"core\.json is not valid JSON"):
        await files.read()
    with pytest.raises(Invalid):
        await add(files, another("more"))
    assert Path(files.paths.core).read_text() == "{ no"


async def test_what_another_program_writes_is_seen_at_the_next_look(tmp_path: Path) -> None:
    files = store(tmp_path)
    assert await files.read() == Memories()
    write(files, [CORE], "")
    assert len((await files.read()).core) == 1


async def test_what_a_dead_writer_left_is_cleared_with_the_next_change(tmp_path: Path) -> None:
    files = store(tmp_path)
    left, fresh = (tmp_path / "dir" / "memory" / f".quintet-{n}.tmp" for n in ("old", "new"))
    for path in (left, fresh):
        path.write_text("what was to be forgotten")
    os.utime(left, (1, 1))
    await add(files, another("more"))
    assert not left.exists()
    assert fresh.exists()


ADD = """
import asyncio, sys
from pathlib import Path
from quintet.domain.memory import MemorySwitch
from quintet.engine.profiles import Profiles
from quintet.journal.clock import SystemClock
from quintet.minds import Minds
async def main():
    mind = Minds(Path(sys.argv[1]), Profiles(sys.argv[1]), SystemClock(), str, MemorySwitch()).of()
    for n in range(15):
        await mind.add(f"{sys.argv[2]} {n}")
asyncio.run(main())
"""


async def test_several_processes_lose_nothing_of_each_other_and_give_no_number_twice(tmp_path: Path) -> None:
    children = [subprocess.Popen([sys.executable, "-c", ADD, str(tmp_path), str(n)]) for n in range(3)]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    lines = (tmp_path / "profiles" / "default" / "memory" / "soft.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert sorted(row["id"] for row in rows) == [f"soft_{n:03}" for n in range(1, 46)]
    assert len({row["text"] for row in rows}) == 45


async def test_settings_are_merged_private_and_named_when_they_are_no_json(tmp_path: Path) -> None:
    settings = SettingsFile(str(tmp_path / "config.json"), DiskMirrorFiles(str(tmp_path / "run")))
    assert await settings.read() == {}
    await settings.change(lambda now: now | {"a": "é"})
    await settings.change(lambda now: now | {"b": 2})
    assert await settings.read() == {"a": "é", "b": 2}
    assert oct((tmp_path / "config.json").stat().st_mode & 0o777) == "0o600"
    for wrong, words in (("{ no", "is not valid JSON"), ("[1]", "must hold a JSON object")):
        (tmp_path / "config.json").write_text(wrong)
        with pytest.raises(Invalid, match=words) as told:
            await settings.read()
        assert str(tmp_path / "config.json") in told.value.message
        with pytest.raises(Invalid):
            await settings.change(lambda now: now)
        assert (tmp_path / "config.json").read_text() == wrong
