"""Formats older and newer than this one: migrated once after a backup, or refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import apsw
import pytest

from quintet.domain import event as ev
from quintet.domain.checkpoint import Secured
from quintet.domain.errors import QuintetError, StorageDamaged, VersionMismatch
from quintet.domain.event import Draft
from quintet.domain.view import ViewReason
from quintet.journal.migration import CURRENT, Schema, Step
from quintet.journal.repair import repair
from tests.unit.journal.homes import database, filled, opened, watch_syncs
from tests.unit.journal.nouns import (
    DONE,
    a_thread,
    everything,
    said,
    started,
    text_delta,
)

# --- versions -------------------------------------------------------------------------------------------------------
_LATER = CURRENT.version + 1
NEXT = Schema(
    _LATER, (*CURRENT.steps, Step(_LATER, "ALTER TABLE projects ADD COLUMN color TEXT; CREATE TABLE extra (x)"))
)
BROKEN = Schema(_LATER, (*CURRENT.steps, Step(_LATER, "CREATE TABLE extra (x); CREATE TABLE extra (x)")))
FIRST = Schema(1, ())


@pytest.mark.req("reliability:R21", "mechanisms:M2.migration")
async def test_an_older_format_is_migrated_once_after_a_backup(tmp_path: Path) -> None:
    events = await filled(tmp_path)
    journal = await opened(tmp_path, schema=NEXT)
    assert journal.report.migrated_from == CURRENT.version
    assert await everything(journal) == events
    backup = Path(journal.report.backup)
    assert backup.parent == tmp_path / "backups"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(backup.parent.stat().st_mode) == 0o700
    copy = apsw.Connection(str(backup))
    assert copy.execute("SELECT count(*) FROM events").fetchall() == [(len(events),)]
    assert copy.execute("PRAGMA user_version").fetchall() == [(CURRENT.version,)]
    await journal.close()
    again = await opened(tmp_path, schema=NEXT)
    assert again.report.migrated_from == 0
    assert len(list((tmp_path / "backups").iterdir())) == 1
    await again.close()


@pytest.mark.req("reliability:R21", "mechanisms:M2.migration")
async def test_a_migration_waits_for_no_living_owner_and_names_them(tmp_path: Path) -> None:
    old = await opened(tmp_path)
    with pytest.raises(VersionMismatch) as refused:
        await opened(tmp_path, schema=NEXT)
    assert f"pid {os.getpid()}" in refused.value.line()
    assert refused.value.data["owners"] == [old.owner]
    await old.create_thread(a_thread())
    await old.close()


def tables_of(home: Path) -> list[tuple[str, str]]:
    with database(home) as raw:
        found = raw.execute("SELECT name, sql FROM sqlite_schema WHERE sql != '' ORDER BY name").fetchall()
    return found


async def of_schema_1(home: Path, fresh: Path) -> list[ev.Event]:
    """A home as the first Quintet left it, with checkpoints in its events. Returns what it holds."""
    journal = await opened(home)
    thread, lease = await started(journal)
    made = ev.CheckpointMade("c1", "shell", Secured("/project", "f" * 64))
    await journal.append([Draft(made), said("x")], lease=lease)
    await journal.append([Draft(ev.CheckpointSettled("c1", "shell", "/project"))], lease=lease)
    await journal.finish(lease, DONE)
    await journal.append([Draft(ev.FilesRestored("/project", ViewReason.REVERT), thread.id)])
    events = await everything(journal)
    await journal.close()
    with database(home) as raw:
        raw.execute("DROP TABLE checkpoints; DROP TABLE audit; DROP TABLE mirrors; PRAGMA user_version = 1")
    await (await opened(fresh, schema=FIRST)).close()
    assert tables_of(home) == tables_of(fresh), "not what schema 1 was"
    return events


@pytest.mark.req("reliability:R21", "mechanisms:M8.index")
async def test_a_home_of_schema_1_finds_its_checkpoints_after_the_step_to_2(tmp_path: Path) -> None:
    home = tmp_path / "home"
    events = await of_schema_1(home, tmp_path / "fresh")
    reader = await opened(home, read_only=True)
    assert await reader.checkpoints() == [], "what cannot be migrated is read without them"
    await reader.close()
    journal = await opened(home)
    assert journal.report.migrated_from == 1
    copy = apsw.Connection(journal.report.backup)
    assert copy.execute("PRAGMA user_version").fetchall() == [(1,)]
    assert await everything(journal) == events
    kinds = ["checkpoint.made", "checkpoint.settled", "files.restored"]
    found = await journal.checkpoints()
    assert [e.kind for e in found] == kinds
    assert found == [e for e in events if e.kind in kinds]
    assert await journal.checkpoints(thread=found[0].thread, after=found[0].seq) == found[1:]
    assert await journal.checkpoints(thread="thr_other") == []
    await journal.delete_thread(found[0].thread)
    assert await journal.checkpoints() == []
    await journal.close()
    with database(home) as raw:
        assert raw.execute("SELECT count(*) FROM checkpoints").fetchall() == [(0,)]


@pytest.mark.req("reliability:R3", "mechanisms:M8.index")
async def test_a_journal_that_lost_its_list_of_checkpoints_is_refused_and_repaired(tmp_path: Path) -> None:
    events = await filled(tmp_path)
    with database(tmp_path) as raw:
        raw.execute("DROP TABLE checkpoints")
    with pytest.raises(StorageDamaged, match="checkpoints"):
        await opened(tmp_path)
    await repair(tmp_path)
    journal = await opened(tmp_path)
    assert await everything(journal) == events
    await journal.close()


@pytest.mark.req("reliability:R21")
async def test_an_older_quintet_refuses_a_newer_format(tmp_path: Path) -> None:
    await (await opened(tmp_path, schema=NEXT)).close()
    for read_only in (False, True):
        with pytest.raises(VersionMismatch) as refused:
            await opened(tmp_path, read_only=read_only)
        assert "newer Quintet" in refused.value.message


@pytest.mark.req("reliability:R21", "mechanisms:M2.migration")
async def test_a_process_that_finds_a_newer_format_writes_nothing_more(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    _, lease = await started(journal)
    with database(tmp_path) as raw:
        raw.execute(f"PRAGMA user_version = {CURRENT.version + 1}")
    before = await everything(journal)
    with pytest.raises(VersionMismatch):
        await journal.append([said("x")], lease=lease)
    journal.push([text_delta("itm_1", 0, "x")], lease)
    await journal.tail()
    with pytest.raises(VersionMismatch):
        await journal.room()
    assert await everything(journal) == before
    await journal.close()


@pytest.mark.req("reliability:R21")
async def test_a_failed_migration_leaves_the_old_format(tmp_path: Path) -> None:
    events = await filled(tmp_path)
    with pytest.raises(QuintetError):
        await opened(tmp_path, schema=BROKEN)
    journal = await opened(tmp_path)
    assert await everything(journal) == events
    await journal.close()


@pytest.mark.req("reliability:R21")
async def test_the_name_of_a_backup_is_synced_before_the_migration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(tmp_path)
    synced = watch_syncs(monkeypatch)
    with pytest.raises(QuintetError):
        await opened(tmp_path, schema=BROKEN)
    (backup,) = (tmp_path / "backups").iterdir()
    assert synced == [str(tmp_path), f"{backup}.part", str(tmp_path / "backups")]
