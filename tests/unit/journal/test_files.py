"""SQLite's own matters: numbers across reboots, damage, versions, the home directory, size and speed of plain reads."""

from __future__ import annotations

import asyncio
import os
import random
import stat
import struct
from pathlib import Path

import apsw
import msgspec
import pytest
from msgspec.structs import replace

from quintet.domain import event as ev
from quintet.domain.checkpoint import Secured
from quintet.domain.errors import QuintetError, StorageDamaged, StorageReadOnly, VersionMismatch
from quintet.domain.event import Draft
from quintet.domain.ids import new_id
from quintet.domain.interaction import Approval
from quintet.domain.item import AssistantMessage, Damaged, Item
from quintet.domain.thread import ThreadQuery
from quintet.domain.view import ViewReason
from quintet.journal import StoredJournal, open_journal
from quintet.journal import wal as wal_module
from quintet.journal.commit import CEILING_STEP
from quintet.journal.emitting import emit
from quintet.journal.migration import CURRENT, Schema, Step
from quintet.journal.owners import living
from quintet.journal.repair import repair
from quintet.journal.statements import SQL
from quintet.journal.transaction import Transaction
from quintet.journal.wal import walk
from tests.unit.journal.conftest import Processes
from tests.unit.journal.nouns import (
    DONE,
    Clock,
    a_request,
    a_thread,
    a_turn,
    asked,
    everything,
    kinds,
    said,
    started,
    text_delta,
    yes,
)


def database(home: Path) -> apsw.Connection:
    return apsw.Connection(str(home / "quintet.db"))


async def opened(home: Path, **how: object) -> StoredJournal:
    return await open_journal(home, protocol="test", **how)  # type: ignore[arg-type]


async def filled(home: Path, turns: int = 3) -> list[ev.Event]:
    """A closed journal with some turns in it."""
    journal = await opened(home)
    for n in range(turns):
        _, lease = await started(journal, text=f"question {n}")
        journal.push([text_delta("itm_1", k, f"word{k} ") for k in range(5)], lease)
        request = a_request()
        await journal.append([asked(request), said(f"answer {n}")], lease=lease)
        await journal.resolve(request.id, yes())
        await journal.finish(lease, DONE)
    found = await everything(journal)
    await journal.close()
    return found


# --- numbers --------------------------------------------------------------------------------------------------------
@pytest.mark.req("mechanisms:M1.ceiling")
async def test_after_a_reboot_numbers_go_on_from_the_ceiling(tmp_path: Path) -> None:
    before = await opened(tmp_path, boot_id="first")
    await before.create_thread(a_thread())
    await before.close()
    same = await opened(tmp_path, boot_id="first")
    await same.create_thread(a_thread())
    assert (await same.marks()).last == 2
    await same.close()
    for n in (1, 2):
        after = await opened(tmp_path, boot_id=f"boot {n}")
        await after.create_thread(a_thread())
        assert (await everything(after))[-1].seq == 1 + n * CEILING_STEP
        await after.close()


@pytest.mark.req("mechanisms:M1.ceiling")
async def test_no_number_above_the_ceiling_is_ever_used(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    thread = await journal.create_thread(a_thread())
    with database(tmp_path) as raw:
        raw.execute("UPDATE counter SET next = ceiling - 2")
    items = [Item(new_id("itm"), "", "", 0, 1, AssistantMessage("x")) for _ in range(5000)]
    await journal.create_thread(a_thread(), items=items)
    await journal.append([Draft(ev.ThreadUpdated(title="x"), thread.id)])
    ((following, ceiling),) = database(tmp_path).execute("SELECT next, ceiling FROM counter").fetchall()
    assert following <= ceiling
    found = await everything(journal)
    assert [e.seq for e in found] == sorted({e.seq for e in found})
    assert len(found) == 5003
    await journal.close()


@pytest.mark.req("mechanisms:M1.ceiling")
async def test_a_ceiling_is_raised_in_a_synced_commit_of_its_own(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    with database(tmp_path) as raw:
        raw.execute("UPDATE counter SET next = ceiling - 2")
    said_sql: list[str] = []
    connection = journal.store._writing  # type: ignore[attr-defined]
    connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: said_sql.append(event["sql"]))
    await journal.create_thread(a_thread())
    connection.trace_v2(0, None)
    raised = next(n for n, sql in enumerate(said_sql) if sql.startswith("UPDATE counter SET ceiling"))
    assert said_sql[raised + 1] == "COMMIT"
    assert said_sql.index("COMMIT") < next(n for n, s in enumerate(said_sql) if s.startswith("INSERT INTO events"))
    assert "PRAGMA synchronous = NORMAL" not in said_sql[: raised + 1]
    await journal.close()


@pytest.mark.req("mechanisms:M1.facts", "mechanisms:M1.deltas")
async def test_deltas_alone_are_not_synced_and_facts_are(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    _, lease = await started(journal)
    said_sql: list[str] = []
    connection = journal.store._writing  # type: ignore[attr-defined]
    connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: said_sql.append(event["sql"]))
    journal.push([text_delta("itm_1", 0, "x")], lease)
    await journal.tail()
    journal.push([text_delta("itm_1", 1, "x")], lease)
    await journal.tail()
    await journal.append([said("x")], lease=lease)
    await journal.append([said("y")], lease=lease)
    connection.trace_v2(0, None)
    assert [s for s in said_sql if s.startswith("PRAGMA synchronous")] == [
        "PRAGMA synchronous = NORMAL",
        "PRAGMA synchronous = FULL",
    ]
    await journal.close()


def first_with(raw: apsw.Connection, text: str) -> list[int]:
    found = raw.execute("SELECT min(seq) FROM events WHERE instr(CAST(body AS TEXT), ?)", (text,)).fetchall()
    return [row[0] for row in found]


# --- damage ---------------------------------------------------------------------------------------------------------
@pytest.mark.req("reliability:R3", "mechanisms:M1.checksum")
async def test_a_damaged_row_is_shown_as_damaged_and_the_rest_served(tmp_path: Path) -> None:
    good = await filled(tmp_path)
    with database(tmp_path) as raw:
        raw.execute("UPDATE items SET body = CAST(replace(body, 'answer 1', 'answer X') AS BLOB)")
        for seq in first_with(raw, "word3"):
            raw.execute("UPDATE events SET body = CAST(replace(body, 'word3', 'word4') AS BLOB) WHERE seq = ?", (seq,))
        raw.execute("UPDATE interactions SET body = CAST(replace(body, 'run make', 'run fake') AS BLOB) WHERE key = 1")
        for seq in first_with(raw, "done"):
            raw.execute("UPDATE events SET turn = (SELECT max(key) FROM turns) WHERE seq = ?", (seq,))
    journal = await opened(tmp_path)
    found = await everything(journal)
    assert len(found) == len(good)
    bad = [e for e in found if e.damaged]
    assert sorted({e.kind for e in bad}) == ["interaction.requested", "item.added", "text.delta", "turn.finished"]
    assert all(e.payload is None for e in bad)
    assert [e for e in found if not e.damaged] == [e for e in good if e.seq not in {b.seq for b in bad}]
    (thread,) = [t for t in await journal.threads(ThreadQuery()) if t.title == "question 1"]
    items = await journal.items(thread.id)
    assert [type(i.body) for i in items][1:] == [Damaged]
    assert await journal.search("answer", hidden=True) != []
    assert all("X" not in h.snippet for h in await journal.search("answer"))
    await journal.close()


@pytest.mark.req("reliability:R3")
async def test_any_flipped_bit_in_the_file_is_found_refused_or_harmless(tmp_path: Path) -> None:
    good = {e.seq: e for e in await filled(tmp_path / "home")}
    whole = (tmp_path / "home" / "quintet.db").read_bytes()
    for n in range(60):
        at = (n * 7919 + 13) % len(whole)
        data = bytearray(whole)
        data[at] ^= 1 << (n % 8)
        (tmp_path / "home" / "quintet.db").write_bytes(data)
        for extra in ("quintet.db-wal", "quintet.db-shm"):
            (tmp_path / "home" / extra).unlink(missing_ok=True)
        found = await read_or_refused(tmp_path / "home")
        for event in found if isinstance(found, list) else []:
            assert event.damaged or good.get(event.seq) == event, (at, event)
        if isinstance(found, QuintetError):
            assert "quintet repair" in found.line() or isinstance(found, VersionMismatch), found.line()


async def read_or_refused(home: Path) -> list[ev.Event] | QuintetError:
    try:
        journal = await opened(home)
    except QuintetError as refused:
        return refused
    try:
        return await everything(journal)
    except StorageDamaged as refused:
        return refused
    finally:
        await journal.close()


async def with_log(home: Path, commits: int) -> tuple[bytes, bytes]:
    """(main file, log) as a killed process leaves them: that many commits, none of them folded in."""
    journal = await opened(home)
    await journal.create_thread(a_thread())
    await journal.close()
    journal = await opened(home)
    for _ in range(commits):
        await journal.create_thread(a_thread())
    pair = (home / "quintet.db").read_bytes(), (home / "quintet.db-wal").read_bytes()
    await journal.close()
    return pair


def put(home: Path, main: bytes, log: bytes) -> None:
    (home / "quintet.db").write_bytes(main)
    (home / "quintet.db-wal").write_bytes(log)
    (home / "quintet.db-shm").unlink(missing_ok=True)


@pytest.mark.req("reliability:R3", "mechanisms:M1.walwalk")
async def test_frames_behind_a_bad_one_are_counted_and_saved_aside(tmp_path: Path) -> None:
    main, log = await with_log(tmp_path, 20)
    frames = (len(log) - 32) // (24 + 4096)
    put(tmp_path, main, log)
    assert walk(str(tmp_path / "quintet.db-wal")).frames == frames
    bad = bytearray(log)
    bad[32 + (24 + 4096) * (frames // 2) + 500] ^= 4
    put(tmp_path, main, bytes(bad))
    journal = await opened(tmp_path)
    report = journal.report
    assert report.damaged
    assert report.wal_frames == frames // 2
    assert report.wal_dropped == frames - frames // 2
    assert report.wal_lost == report.wal_dropped - 1
    assert Path(report.saved_as).read_bytes() == bytes(bad)
    assert stat.S_IMODE(os.stat(report.saved_as).st_mode) == 0o600
    kept = len(await everything(journal))
    assert 1 < kept < 21
    await journal.create_thread(a_thread())
    assert (await journal.marks()).last > 21  # numbers told before the damage belong to nobody else
    await journal.close()


@pytest.mark.req("reliability:R3", "mechanisms:M1.walwalk")
async def test_a_torn_tail_is_no_damage(tmp_path: Path) -> None:
    main, log = await with_log(tmp_path, 10)
    for cut in (1, 700, 24 + 4096, 3 * (24 + 4096) + 5):
        put(tmp_path, main, log[:-cut])
        journal = await opened(tmp_path)
        assert not journal.report.damaged
        assert journal.report.saved_as == ""
        seqs = [e.seq for e in await everything(journal)]
        assert seqs == list(range(1, len(seqs) + 1))
        await journal.close()


@pytest.mark.req("reliability:R3", "mechanisms:M1.walwalk")
async def test_a_second_damaged_log_is_kept_beside_the_first(tmp_path: Path) -> None:
    kept = []
    for n in range(2):
        main, log = await with_log(tmp_path, 20)
        bad = bytearray(log)
        bad[len(log) // 2 + n] ^= 4
        put(tmp_path, main, bytes(bad))
        journal = await opened(tmp_path)
        assert journal.report.damaged
        kept.append((journal.report.saved_as, bytes(bad)))
        await journal.close()
    assert [Path(name).name for name, _ in kept] == ["quintet.db-wal.damaged", "quintet.db-wal.damaged.2"]
    assert [Path(name).read_bytes() for name, _ in kept] == [bad for _, bad in kept]


@pytest.mark.req("reliability:R3", "mechanisms:M1.walwalk")
async def test_stale_frames_behind_a_bad_one_are_reported_once(tmp_path: Path) -> None:
    """Whatever lies behind the end of the log is cut off at once: a process killed later leaves no second report."""
    main, log = await with_log(tmp_path, 20)
    bad = bytearray(log)
    bad[len(log) // 2] ^= 4
    put(tmp_path, main, bytes(bad))
    journal = await opened(tmp_path)
    assert journal.report.damaged
    await journal.create_thread(a_thread())
    pair = (tmp_path / "quintet.db").read_bytes(), (tmp_path / "quintet.db-wal").read_bytes()
    await journal.close()
    put(tmp_path, *pair)  # as if it had been killed
    again = await opened(tmp_path)
    assert not again.report.damaged
    assert again.report.wal_dropped == 0
    await again.close()


@pytest.mark.req("reliability:R3", "mechanisms:M1.walwalk")
async def test_a_rolled_back_spill_is_no_damage(tmp_path: Path) -> None:
    """A transaction larger than the page cache writes frames before its commit, and rewrites some of them."""
    journal = await opened(tmp_path)
    thread = await journal.create_thread(a_thread())

    def fails(tx: Transaction) -> None:
        for n in range(3000):
            body = AssistantMessage(os.urandom(800).hex())
            emit(tx, ev.ItemAdded(Item(new_id("itm"), thread.id, "", n + 1, 1, body)), thread.id)
        raise QuintetError("no")

    before = len((tmp_path / "quintet.db-wal").read_bytes())
    for n in range(3):
        with pytest.raises(QuintetError):
            await journal.store.write("x", fails)
        await journal.append([Draft(ev.ThreadUpdated(title=f"{n}"), thread.id)])
    pair = (tmp_path / "quintet.db").read_bytes(), (tmp_path / "quintet.db-wal").read_bytes()
    assert len(pair[1]) > before + 2 * 1024 * 1024
    good = await everything(journal)
    await journal.close()
    put(tmp_path, *pair)
    again = await opened(tmp_path)
    assert again.report.wal_dropped > 0
    assert not again.report.damaged
    assert again.report.saved_as == ""
    assert await everything(again) == good
    assert (tmp_path / "quintet.db-wal").stat().st_size < 1024 * 1024
    await again.close()


@pytest.mark.req("reliability:R3")
async def test_every_flip_in_the_log_that_loses_commits_is_told(tmp_path: Path) -> None:
    main, log = await with_log(tmp_path, 8)
    size = 24 + 4096
    frames = (len(log) - 32) // size
    commits = [n for n in range(frames) if struct.unpack(">I", log[32 + n * size + 4 : 32 + n * size + 8])[0]]
    for n in range(40):
        at = (n * 104729 + 3) % len(log)
        bad = bytearray(log)
        bad[at] ^= 1 << (n % 8)
        put(tmp_path, main, bytes(bad))
        journal = await opened(tmp_path)
        kept = len(await everything(journal))
        hit = (at - 32) // size
        later = [c for c in commits if c > max(hit, 0)]
        assert journal.report.damaged or kept == 9 or not later, (at, kept)
        assert journal.report.wal_dropped or kept == 9, (at, kept)
        await journal.close()


@pytest.mark.req("reliability:R3")
async def test_what_is_no_database_is_refused_with_the_next_step(tmp_path: Path) -> None:
    await filled(tmp_path, 1)
    path = tmp_path / "quintet.db"
    whole = path.read_bytes()
    for bad in (b"hello", b"\0" * 8192, whole[: len(whole) // 2], b"SQLite format 3\0" + b"\xff" * 4096):
        path.write_bytes(bad)
        with pytest.raises(StorageDamaged) as refused:
            await opened(tmp_path)
        assert "quintet repair" in refused.value.line()
        assert path.read_bytes() == bad
    path.unlink()
    with apsw.Connection(str(path)) as foreign:
        foreign.execute("CREATE TABLE t (x)")
    with pytest.raises(StorageDamaged):
        await opened(tmp_path)


@pytest.mark.req("mechanisms:M5.delete")
async def test_what_was_erased_is_gone_from_the_file(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    thread, lease = await started(journal, text="please keep zanzibarword to yourself")
    journal.push([text_delta("itm_1", 0, "zanzibarword")], lease)
    request = replace(a_request(), request=Approval("shell", "echo zanzibarword"))
    await journal.append([asked(request), said("zanzibarword"), said("zanzibarword " * 500)], lease=lease)
    await journal.finish(lease, DONE)
    await journal.store.tidy()
    assert b"zanzibarword" in (tmp_path / "quintet.db").read_bytes()
    await journal.delete_thread(thread.id)
    await journal.close()
    assert b"zanzibarword" not in (tmp_path / "quintet.db").read_bytes()


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
        raw.execute("DROP TABLE checkpoints; DROP TABLE audit; PRAGMA user_version = 1")
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


# --- the home directory ---------------------------------------------------------------------------------------------
async def test_everything_in_the_home_is_private_from_the_first_moment(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        journal = await opened(tmp_path / "deep" / "home")
        await journal.create_thread(a_thread())
    finally:
        os.umask(old)
    for path in [tmp_path / "deep" / "home", *(tmp_path / "deep" / "home").rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), (path, oct(mode))
    await journal.close()


def watch_syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of everything that is synced from now on, by Quintet itself."""
    synced: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        real(fd)
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))

    monkeypatch.setattr(os, "fsync", fsync)
    return synced


@pytest.mark.req("reliability:R1")
async def test_the_names_of_a_new_home_and_its_file_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = watch_syncs(monkeypatch)
    home = tmp_path / "deep" / "home"
    await (await opened(home)).close()
    assert {str(tmp_path), str(tmp_path / "deep"), str(home)} <= set(synced)
    synced.clear()
    await (await opened(home)).close()
    assert synced == []


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


@pytest.mark.req("mechanisms:M2.liveness")
async def test_a_lock_file_says_who_holds_it_and_goes_with_its_process(files: Processes) -> None:
    here, there = await files.another(), await files.another()
    assert files.home is not None
    run = str(files.home / "run")
    found = {o.id: o for o in living(run)}
    assert set(found) == {here.owner, there.owner}
    assert found[here.owner].pid == os.getpid()
    assert found[here.owner].protocol == "test"
    (files.home / "run" / "own_dead.lock").write_text("{}")
    (files.home / "run" / "own_half.lock.new").write_text("")
    third = await files.another()
    assert {p.name for p in (files.home / "run").glob("own_*")} == {f"{j.owner}.lock" for j in (here, there, third)}
    await here.close()
    assert not await there.alive(here.owner)


def locks_on(path: Path) -> int:
    """How many POSIX locks this process holds on that file."""
    inode, pid = path.stat().st_ino, os.getpid()
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return sum(w[1] == "POSIX" and int(w[4]) == pid and int(w[5].rpartition(":")[2]) == inode for w in lines)


@pytest.mark.req("reliability:R16")
async def test_opening_a_home_again_drops_no_lock_of_the_same_process(tmp_path: Path) -> None:
    """Closing any descriptor of a file drops all locks the process holds on it, SQLite's own included."""
    first = await opened(tmp_path)
    await first.create_thread(a_thread())
    held = locks_on(tmp_path / "quintet.db")
    if not held:
        pytest.skip("this system does not list its locks")
    for read_only in (False, True):
        second = await opened(tmp_path, read_only=read_only)
        assert locks_on(tmp_path / "quintet.db") >= held
        await second.close()
        assert locks_on(tmp_path / "quintet.db") >= held
    await first.close()


@pytest.mark.req("reliability:R3")
async def test_a_file_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    await filled(tmp_path, 1)
    path = tmp_path / "quintet.db"
    whole = path.read_bytes()
    for cut in (1, 4095, 4096, 3 * 4096 + 7):
        path.write_bytes(whole[:-cut])
        with pytest.raises(StorageDamaged):
            await opened(tmp_path)
        assert path.read_bytes() == whole[:-cut]


@pytest.mark.req("reliability:R3", "reliability:R21", "mechanisms:M1.walwalk")
async def test_a_refused_home_keeps_its_log(tmp_path: Path) -> None:
    """Closing what was opened only to look must not fold the log into a file that was refused."""
    await filled(tmp_path)
    journal = await opened(tmp_path)
    raw = database(tmp_path)
    raw.execute("PRAGMA user_version = 7")
    raw.close()
    pair = (tmp_path / "quintet.db").read_bytes(), (tmp_path / "quintet.db-wal").read_bytes()
    await journal.close()
    put(tmp_path, *pair)
    with pytest.raises(VersionMismatch):
        await opened(tmp_path)
    assert ((tmp_path / "quintet.db").read_bytes(), (tmp_path / "quintet.db-wal").read_bytes()) == pair


@pytest.mark.req("mechanisms:M1.walwalk")
async def test_the_good_frames_of_a_long_log_are_not_looked_at_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody else waits at the gate meanwhile, so only what lies behind the good frames is read in Python."""
    await filled(tmp_path, 1)
    raw = database(tmp_path)
    raw.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
    raw.execute("CREATE TABLE bulk (x)")
    for _ in range(16):
        raw.execute("INSERT INTO bulk VALUES (zeroblob(4 << 20))")
    pair = (tmp_path / "quintet.db").read_bytes(), (tmp_path / "quintet.db-wal").read_bytes()
    raw.close()
    assert len(pair[1]) > 64 << 20
    put(tmp_path, *pair)
    summed: list[int] = []
    add = wal_module._add
    monkeypatch.setattr(wal_module, "_add", lambda *given: (summed.append(1), add(*given))[1])
    journal = await opened(tmp_path)
    assert journal.report.wal_frames >= 64 << 8
    assert journal.report.wal_dropped == 0
    await journal.close()
    assert len(summed) < 100


@pytest.mark.req("reliability:R10")
async def test_a_journal_opened_for_reading_serves_reads_and_refuses_writes(tmp_path: Path) -> None:
    events = await filled(tmp_path)
    journal = await opened(tmp_path, read_only=True)
    assert journal.report.read_only
    assert await everything(journal) == events
    assert len(await journal.search("answer")) == 3
    with pytest.raises(StorageReadOnly):
        await journal.create_thread(a_thread())
    writer = await opened(tmp_path)
    heard: list[ev.Event] = []
    journal.listen(heard.extend)
    await writer.create_thread(a_thread())
    await journal.tail()
    assert kinds(heard) == ["thread.created"]
    await writer.close()
    await journal.close()


@pytest.mark.req("reliability:R10")
async def test_a_home_that_cannot_be_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageReadOnly) as refused:
        await opened(tmp_path / "file")
    assert str(tmp_path / "file") in refused.value.line()
    with pytest.raises(StorageReadOnly):
        await opened(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()
    with pytest.raises(StorageReadOnly):
        await opened(Path("/proc/nothing/home"))


# --- size and speed -------------------------------------------------------------------------------------------------
_DICE = random.Random(7)
WORDS = ["".join(_DICE.choices("etaoinshrdlu", k=_DICE.randint(2, 9))) for _ in range(3000)]


async def test_the_file_stays_near_what_was_said(tmp_path: Path) -> None:
    clock = Clock()
    journal = await opened(tmp_path, clock=clock)
    payload = 0
    threads = [await journal.create_thread(a_thread()) for _ in range(20)]
    for n in range(300):
        _, lease = await started(journal, threads[n % 20], text=f"{n}: " + " ".join(_DICE.sample(WORDS, 20)))
        item = new_id("itm")
        words = [word + " " for word in _DICE.sample(WORDS, 500)]
        journal.push([text_delta(item, k, w) for k, w in enumerate(words)], lease)
        await journal.append([said("".join(words))], lease=lease)
        await journal.finish(lease, DONE)
    for thread in threads:
        payload += sum(len(msgspec.json.encode(item)) for item in await journal.items(thread.id))
    clock.now += 3_600_000
    await journal.prune(now_ms=clock.now)
    await journal.close()
    size = (tmp_path / "quintet.db").stat().st_size
    ((index,),) = database(tmp_path).execute("SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'words%'").fetchall()
    assert size <= 2 * payload, size / payload
    assert size - index <= 1.5 * payload, (size - index) / payload


async def test_a_one_word_delta_costs_at_most_thirty_times_its_bytes(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    _, lease = await started(journal)
    empty = (tmp_path / "quintet.db").stat().st_size
    item = new_id("itm")
    for start in range(0, 10_000, 500):
        journal.push([text_delta(item, n, "hello ") for n in range(start, start + 500)], lease)
    await journal.finish(lease, DONE)
    await journal.store.tidy()
    grown = (tmp_path / "quintet.db").stat().st_size - empty
    assert grown / 10_000 <= 25 * 6, grown / 10_000
    await journal.close()


async def test_pages_of_threads_are_read_from_an_index(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    await asyncio.gather(*(journal.create_thread(a_thread()) for _ in range(200)))
    assert len(await journal.threads(ThreadQuery(limit=50))) == 50
    for name, bindings in (("threads_recent", (1, "", 50)), ("threads_project", ("prj", 1, "", 50))):
        plan = database(tmp_path).execute("EXPLAIN QUERY PLAN " + SQL[name], bindings)
        assert name in str(plan.fetchall())
    await journal.close()


async def test_room_waits_until_the_writer_has_caught_up(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    _, lease = await started(journal)
    for n in range(5000):
        journal.push([text_delta("itm_1", n, "x")], lease)
    assert journal.store._pending == 5000  # type: ignore[attr-defined]
    await asyncio.wait_for(journal.room(), 10)
    assert journal.store._pending <= 1024  # type: ignore[attr-defined]
    await journal.close()


async def test_a_closed_journal_has_written_what_it_took_and_says_it_is_closed(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    thread, lease = await started(journal)
    journal.push([text_delta("itm_1", n, "x") for n in range(500)], lease)
    waiting = asyncio.ensure_future(journal.enqueue(a_turn(thread.id)))
    await asyncio.sleep(0)
    await journal.close()
    assert (await waiting).folded is False
    with pytest.raises(QuintetError):
        await journal.marks()
    assert not (tmp_path / "quintet.db-wal").exists()
    again = await opened(tmp_path)
    assert kinds(await everything(again)).count("text.delta") == 500
    await again.close()


@pytest.mark.req("mechanisms:M1.ceiling", "reliability:R3")
async def test_where_the_raise_of_the_ceiling_was_lost_no_number_is_given_twice(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    thread = await journal.create_thread(a_thread())
    await journal.close()
    raw = database(tmp_path)
    raw.execute("UPDATE counter SET next = ceiling - 4200")
    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    raw.close()
    journal = await opened(tmp_path)
    for _ in range(46):
        await journal.append([Draft(ev.ThreadUpdated(title="x"), thread.id) for _ in range(100)])
    told = (await journal.marks()).last
    pair = (tmp_path / "quintet.db").read_bytes(), bytearray((tmp_path / "quintet.db-wal").read_bytes())
    await journal.close()
    assert told > CEILING_STEP
    pair[1][32 + 24 + 100] ^= 1  # in the first frame of the log, so that everything behind it is lost
    put(tmp_path, pair[0], bytes(pair[1]))
    journal = await opened(tmp_path)
    assert journal.report.wal_lost > 0
    (event,) = await journal.append([Draft(ev.ThreadUpdated(title="y"), thread.id)])
    assert event.seq > told
    await journal.close()
