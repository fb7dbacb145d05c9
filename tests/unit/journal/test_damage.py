"""Damage to the file or its log: found, told and kept aside, never served as good."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

import apsw
import pytest

from quintet.domain import event as ev
from quintet.domain.errors import QuintetError, StorageDamaged, VersionMismatch
from quintet.domain.event import Draft
from quintet.domain.ids import new_id
from quintet.domain.item import AssistantMessage, Damaged, Item
from quintet.domain.thread import ThreadQuery
from quintet.journal import wal as wal_module
from quintet.journal.emitting import emit
from quintet.journal.transaction import Transaction
from quintet.journal.wal import walk
from tests.unit.journal.homes import database, filled, first_with, opened, put, with_log
from tests.unit.journal.nouns import (
    a_thread,
    everything,
)


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
