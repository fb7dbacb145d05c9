"""A full disk, for real: the home lies on a small file system of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from quintet.domain import event as ev
from quintet.domain.errors import StorageFull, StorageReadOnly
from quintet.domain.event import Draft
from quintet.domain.interaction import Decision, Verdict
from quintet.domain.principal import ENGINE
from quintet.domain.turn import Lease, TurnState
from quintet.journal import StoredJournal, open_journal
from quintet.journal.home import RESERVE_BYTES
from tests.unit.journal.nouns import (
    a_request,
    a_thread,
    a_turn,
    asked,
    everything,
    kinds,
    no,
    said,
    started,
    text_delta,
)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A 16 MiB file system."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "quintet-test", str(tmp_path)], capture_output=True
    )
    if done.returncode:
        pytest.skip("no right to mount a small file system here")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def fill(place: Path, *, leave: int = 0, name: str = "ballast") -> Path:
    path = place / name
    free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(free - leave, 1))
    return path


async def opened(place: Path, **how: bool) -> StoredJournal:
    return await open_journal(place / "home", protocol="test", **how)


async def until_full(journal: StoredJournal, lease: Lease) -> int:
    count = 0
    while True:
        try:
            await journal.append([said("x" * 5000)], lease=lease)
        except StorageFull:
            return count
        count += 1


@pytest.mark.req("reliability:R9")
@pytest.mark.parametrize("leave", [0, 4096, 300_000])
async def test_on_a_full_disk_turns_end_reads_go_on_and_writing_returns_by_itself(small: Path, leave: int) -> None:
    journal = await opened(small)
    thread, lease = await started(journal)
    request = a_request()
    await journal.append([asked(request)], lease=lease)
    assert (small / "home" / "reserve").stat().st_blocks * 512 >= RESERVE_BYTES
    ballast = fill(small, leave=leave)
    acknowledged = await until_full(journal, lease)
    assert not (small / "home" / "reserve").exists()
    before = await everything(journal)
    for refused in (
        journal.create_thread(a_thread()),
        journal.enqueue(a_turn(thread.id)),
        journal.append([said("y")], lease=lease),
        journal.resolve(request.id, no()),
    ):
        with pytest.raises(StorageFull):
            await refused
    journal.push([text_delta("itm_1", 0, "lost")], lease)
    await journal.tail()
    with pytest.raises(StorageFull):
        await journal.room(lease=lease)
    assert await everything(journal) == before
    await journal.resolve(request.id, Decision(Verdict.DENY, ENGINE, 1, "shutdown"))
    error = StorageFull("The disk is full.").info()
    await journal.finish(lease, ev.TurnFinished(TurnState.FAILED, error=error))
    assert kinds(await everything(journal))[-1] == "turn.finished"
    ballast.unlink()
    await journal.create_thread(a_thread())
    assert (small / "home" / "reserve").stat().st_blocks * 512 >= RESERVE_BYTES
    assert len(await journal.items(thread.id, limit=5000)) == acknowledged + 1
    assert not any(e.damaged for e in await everything(journal))
    await journal.close()
    check = apsw.Connection(str(small / "home" / "quintet.db")).execute("PRAGMA integrity_check").fetchall()
    assert check == [("ok",)]


@pytest.mark.req("reliability:R9")
async def test_a_dead_turn_is_recovered_on_a_full_disk(small: Path) -> None:
    here, there = await opened(small), await opened(small)
    thread, lease = await started(here)
    fill(small)
    await until_full(here, lease)
    here.store._lock.release()  # type: ignore[attr-defined]
    found = await there.recover(thread.id)
    assert found.turns == (lease.turn,)
    await here.close()
    await there.close()


@pytest.mark.req("reliability:R9")
async def test_a_process_can_start_and_read_on_a_full_disk(small: Path) -> None:
    journal = await opened(small)
    thread, lease = await started(journal)
    ballast = fill(small)
    await until_full(journal, lease)
    fill(small, name="more ballast")
    reader = await opened(small)
    assert (await reader.thread(thread.id)).id == thread.id
    with pytest.raises(StorageFull):
        await reader.create_thread(a_thread())
    await reader.close()
    ballast.unlink()
    await journal.close()
    again = await opened(small)
    await again.create_thread(a_thread())
    await again.close()


@pytest.mark.req("reliability:R10")
async def test_a_read_only_home_is_opened_for_reading(small: Path) -> None:
    journal = await opened(small)
    thread, _ = await started(journal)
    await journal.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    reader = await opened(small)
    assert reader.report.read_only
    assert (await reader.thread(thread.id)).id == thread.id
    assert len(await everything(reader)) == 5
    with pytest.raises(StorageReadOnly):
        await reader.append([Draft(ev.ThreadUpdated(title="x"), thread.id)])
    await reader.close()
    with pytest.raises(StorageReadOnly) as refused:
        await open_journal(small / "other", protocol="test")
    assert str(small / "other") in refused.value.line()


@pytest.mark.req("reliability:R10")
async def test_a_home_that_becomes_read_only_refuses_writes_and_serves_reads(small: Path) -> None:
    journal = await opened(small)
    thread, _ = await started(journal)
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=False, capture_output=True)
    if os.statvfs(small).f_flag & os.ST_RDONLY:
        with pytest.raises(StorageReadOnly):
            await journal.create_thread(a_thread())
        assert len(await everything(journal)) == 5
        subprocess.run(["mount", "-o", "remount,rw", str(small)], check=True)
    await journal.append([Draft(ev.ThreadUpdated(title="x"), thread.id)])
    await journal.close()
