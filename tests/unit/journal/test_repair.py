"""Repair: whatever lies outside the damaged pages is there afterwards, nothing is destroyed, no number comes twice."""

from __future__ import annotations

import asyncio
import os
import random
import stat
import struct
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import apsw
import pytest

from quintet.domain import event as ev
from quintet.domain.checkpoint import Secured
from quintet.domain.errors import Busy, QuintetError, StorageDamaged, StorageFull, VersionMismatch
from quintet.domain.event import Draft, Event
from quintet.domain.item import Damaged
from quintet.domain.thread import Handle, ThreadQuery
from quintet.domain.turn import TurnState
from quintet.journal import open_journal
from quintet.journal import repair as repairing
from quintet.journal import repair_files as files
from quintet.journal.commit import JUMP
from quintet.journal.home import Home
from quintet.journal.pages import Pages
from quintet.journal.repair import Report, repair
from tests.unit.journal.nouns import (
    DONE,
    a_grant,
    a_request,
    a_thread,
    asked,
    everything,
    kinds,
    said,
    started,
    text_delta,
    yes,
)

TABLES = ("threads", "events", "items", "turns", "interactions", "handles", "kinds", "grants")
PAGE = 4096


async def filled(home: Path, threads: int = 12) -> list[Event]:
    """Enough for trees of several levels: long texts with overflow pages, deltas, requests, handles, grants."""
    journal = await open_journal(home, protocol="test")
    dice = random.Random(5)
    for n in range(threads):
        made = await journal.create_thread(a_thread(), handle=Handle("acp", "s", f"name {n}"))
        _, lease = await started(journal, made, text=f"question {n}")
        for k in range(3):
            journal.push([text_delta(f"itm_{k}", i, f"word{i} ") for i in range(40)], lease)
            noise = dice.randbytes(200 + 4000 * (k == 2)).hex()
            await journal.append([said(f"answer {n} {k} {noise}")], lease=lease)
        request = a_request()
        await journal.append([asked(request)], lease=lease)
        await journal.resolve(request.id, yes())
        await journal.finish(lease, DONE)
    found = await everything(journal)
    await journal.close()
    return found


def rows_of(home: Path) -> dict[str, dict[Any, tuple[Any, ...]]]:
    with apsw.Connection(str(home / "quintet.db")) as raw:
        found = {t: {r[0]: r for r in raw.execute(f"SELECT * FROM {t}").fetchall()} for t in TABLES}
    raw.close()
    return found


def tree_pages(home: Path, name: str) -> list[tuple[int, str]]:
    with apsw.Connection(str(home / "quintet.db")) as raw:
        found = raw.execute("SELECT pageno, pagetype FROM dbstat WHERE name = ? ORDER BY pageno", (name,)).fetchall()
    raw.close()
    return [(n, kind) for n, kind in found]


def change(home: Path, page: int, how: Callable[[bytearray], None]) -> None:
    path = home / "quintet.db"
    data = bytearray(path.read_bytes())
    one = data[(page - 1) * PAGE : page * PAGE]
    how(one)
    data[(page - 1) * PAGE : page * PAGE] = one
    path.write_bytes(data)


def zeroed(page: bytearray) -> None:
    page[:] = bytes(len(page))


def noisy(page: bytearray) -> None:
    page[:] = random.Random(1).randbytes(len(page))


def flipped(page: bytearray) -> None:
    dice = random.Random(2)
    for _ in range(40):
        page[dice.randrange(len(page))] ^= 1 << dice.randrange(8)


def headless(page: bytearray) -> None:
    page[:8] = b"\xff" * 8


DAMAGES = {"zeroed": zeroed, "noise": noisy, "flipped bits": flipped, "no head": headless}


Row = tuple[Any, int, type]  # its key, and what tells its table


def on_page(home: Path, page: int) -> set[Row]:
    """The rows that lie on this page, or run through it, by comparing what can be read without it."""
    where = Home(home)

    def read() -> dict[Row, Any]:
        pages = Pages(where.database, where.log)
        found = {(r, len(v), type(v[1])): v for leaf in pages.leaves((13,)) for r, v in leaf.rows}
        pages.close()
        return found

    whole = (home / "quintet.db").read_bytes()
    before = read()
    change(home, page, zeroed)
    after = read()
    (home / "quintet.db").write_bytes(whole)
    return {key for key, value in before.items() if after.get(key) != value}


async def repaired(home: Path, **how: Any) -> Report:
    report = await repair(home, **how)
    journal = await open_journal(home, protocol="test")
    await everything(journal)
    await journal.close()
    return report


def compare(home: Path, good: dict[str, dict[Any, tuple[Any, ...]]], hit: set[Row]) -> None:
    """Every row outside the damaged page is there and equal."""
    now = rows_of(home)
    for table, rows in good.items():
        for key, row in rows.items():
            if (key, len(row), type(row[1])) not in hit:
                assert now[table].get(key) == row, (table, key)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "tree", ["events", "items", "threads", "turns", "interactions", "kinds", "events_root", "words_data"]
)
async def test_everything_outside_a_damaged_page_is_kept(tmp_path: Path, tree: str, damage: str) -> None:
    await filled(tmp_path)
    good = rows_of(tmp_path)
    highest = max(good["events"])
    found = tree_pages(tmp_path, tree)
    whole = (tmp_path / "quintet.db").read_bytes()
    chosen = {kind: n for n, kind in found}  # one leaf, one inner, one overflow page, as far as there are
    for kind, page in chosen.items():
        (tmp_path / "quintet.db").write_bytes(whole)
        hit = on_page(tmp_path, page)
        change(tmp_path, page, DAMAGES[damage])
        report = await repaired(tmp_path)
        assert report.outcome in ("repaired", "healthy", "unchanged"), (kind, report)
        if kind == "leaf" and tree in ("events", "items", "turns", "threads"):
            assert report.outcome == "repaired"
            assert report.unreadable_pages or report.lost or report.damaged_events or report.damaged_items
        compare(tmp_path, good, hit)
        with apsw.Connection(str(tmp_path / "quintet.db")) as raw:
            assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert raw.execute("SELECT next FROM counter").fetchall()[0][0] > highest
        raw.close()


async def test_a_damaged_page_above_the_leaves_costs_no_row(tmp_path: Path) -> None:
    before = await filled(tmp_path)
    roots = [n for t in ("events", "items") for n, kind in tree_pages(tmp_path, t) if kind == "internal"]
    assert len(roots) >= 2
    for page in roots:
        change(tmp_path, page, zeroed)
    with pytest.raises(StorageDamaged):
        await open_journal(tmp_path, protocol="test")
    report = await repair(tmp_path)
    assert report.lost == {}
    journal = await open_journal(tmp_path, protocol="test")
    assert await everything(journal) == before
    assert len(await journal.search("answer", limit=1000)) == 36
    await journal.close()


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_lost_first_page_with_header_and_schema_costs_no_row(tmp_path: Path, damage: str) -> None:
    before = await filled(tmp_path)
    change(tmp_path, 1, DAMAGES[damage])
    report = await repair(tmp_path)
    assert report.outcome == "repaired"
    journal = await open_journal(tmp_path, protocol="test")
    assert await everything(journal) == before
    await journal.close()


@pytest.mark.req("mechanisms:M8.index")
async def test_the_list_of_checkpoints_is_made_anew_from_the_events_that_were_saved(tmp_path: Path) -> None:
    journal = await open_journal(tmp_path, protocol="test")
    _, lease = await started(journal)
    for n in range(300):
        await journal.append([Draft(ev.CheckpointMade(f"c{n}", "shell", Secured("/w")))], lease=lease)
    before = await journal.checkpoints()
    await journal.finish(lease, DONE)
    await journal.close()
    for page in {1, *(n for n, _ in tree_pages(tmp_path, "checkpoints"))}:
        change(tmp_path, page, zeroed)
    assert (await repair(tmp_path)).outcome == "repaired"
    again = await open_journal(tmp_path, protocol="test")
    assert len(before) == 300
    assert await again.checkpoints() == before
    assert await again.unknown_effects() == [], "its rows were taken for another table's"
    await again.close()


async def test_client_keys_are_kept_from_every_level_of_their_tree(tmp_path: Path) -> None:
    await filled(tmp_path, 1)
    rows = [("scope", f"key {n}", "d" * 64, f"trn_{n}", f"thr_{n}", n) for n in range(500)]
    with apsw.Connection(str(tmp_path / "quintet.db")) as raw:
        raw.executemany("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?)", rows)
    raw.close()
    change(tmp_path, 1, zeroed)
    await repair(tmp_path)
    with apsw.Connection(str(tmp_path / "quintet.db")) as raw:
        assert sorted(raw.execute("SELECT * FROM keys").fetchall()) == sorted(rows)
    raw.close()


async def test_a_truncated_file_gives_what_is_left(tmp_path: Path) -> None:
    await filled(tmp_path)
    good = rows_of(tmp_path)
    path = tmp_path / "quintet.db"
    whole = path.read_bytes()
    for cut in (100, PAGE * 3, len(whole) // 2):
        path.write_bytes(whole)
        hit: set[Row] = set()
        for page in range((len(whole) - cut) // PAGE + 1, len(whole) // PAGE + 1) if cut < len(whole) // 3 else ():
            hit |= on_page(tmp_path, page)
        path.write_bytes(whole[:-cut])
        report = await repaired(tmp_path)
        assert report.outcome == "repaired"
        assert report.unreadable_pages or cut < PAGE
        if hit:
            compare(tmp_path, good, hit)
        assert sum(report.kept.values()) > 50


# --- numbers and names -----------------------------------------------------------------------------------------------
async def next_number(home: Path) -> int:
    journal = await open_journal(home, protocol="test")
    await journal.create_thread(a_thread())
    last = (await journal.marks()).last
    await journal.close()
    return last


async def test_numbers_go_on_behind_the_old_ceiling_or_far_behind_when_the_counter_is_lost(tmp_path: Path) -> None:
    before = await filled(tmp_path)
    with apsw.Connection(str(tmp_path / "quintet.db")) as raw:
        raw.execute("UPDATE counter SET pruned_through = 3")
        ((ceiling, store),) = raw.execute("SELECT ceiling, store_id FROM counter").fetchall()
    raw.close()
    whole = (tmp_path / "quintet.db").read_bytes()
    change(tmp_path, tree_pages(tmp_path, "events_root")[0][0], noisy)
    await repair(tmp_path)
    with apsw.Connection(str(tmp_path / "quintet.db")) as raw:
        assert raw.execute("SELECT pruned_through, store_id FROM counter").fetchall() == [(3, store)]
    raw.close()
    assert await next_number(tmp_path) >= ceiling
    (tmp_path / "quintet.db").write_bytes(whole)
    change(tmp_path, tree_pages(tmp_path, "counter")[0][0], zeroed)
    report = await repair(tmp_path)
    assert report.lost["counter"] == 1
    assert await next_number(tmp_path) >= before[-1].seq + JUMP


async def test_a_thread_that_lost_its_row_is_named_again_by_its_events(tmp_path: Path) -> None:
    before = await filled(tmp_path)
    with apsw.Connection(str(tmp_path / "quintet.db")) as raw:
        raw.execute("DELETE FROM threads WHERE key IN (3, 5)")
        raw.execute("UPDATE threads SET body = x'7b' WHERE key = 6")
        raw.execute(
            "DELETE FROM events WHERE root = 5 AND kind IN "
            "(SELECT code FROM kinds WHERE name IN ('thread.created', 'thread.updated'))"
        )
        raw.execute("UPDATE interactions SET thread = 'x', root = 'x' WHERE thread NOT IN (SELECT id FROM threads)")
        raw.execute("UPDATE handles SET thread = 'x' WHERE external_id = 'name 4'")
        raw.execute("DELETE FROM kinds WHERE name = 'text.delta'")
    raw.close()
    report = await repair(tmp_path)
    assert (report.recovered_threads, report.unnamed_threads) == (2, 1)
    assert report.lost["threads"] == 1
    journal = await open_journal(tmp_path, protocol="test")
    found = {e.seq: e for e in await everything(journal)}
    roots = list(dict.fromkeys(e.root for e in before))
    for event in before:
        if event.root != roots[4] and not event.kind.startswith("interaction."):
            assert found[event.seq] == event
    titles = {t.id: t.title for t in await journal.threads(ThreadQuery())}
    assert titles[roots[2]].startswith("(recovered)")
    assert len(titles) == 11
    items = await journal.items(roots[2])
    assert len(items) == 4
    assert not any(isinstance(i.body, Damaged) for i in items)
    _, lease = await started(journal, await journal.thread(roots[2]))
    await journal.append([said("goes on")], lease=lease)
    assert (await journal.create_thread(a_thread())).id not in roots
    await journal.close()


async def test_a_running_turn_is_left_to_recovery(tmp_path: Path) -> None:
    journal = await open_journal(tmp_path, protocol="test")
    thread, lease = await started(journal)
    await journal.append([said("half")], lease=lease)
    await journal.close()
    for lost in ("DELETE FROM events WHERE seq = 999", "DELETE FROM threads"):
        with apsw.Connection(str(tmp_path / "quintet.db")) as raw:
            raw.execute(lost)
        raw.close()
        change(tmp_path, tree_pages(tmp_path, "turns_thread")[0][0], noisy)
        await repair(tmp_path)
        assert next(iter(rows_of(tmp_path)["turns"].values()))[3] == "running"
    journal = await open_journal(tmp_path, protocol="test")
    await journal.recover()
    assert [t.state for t in await journal.turns(thread.id)] == [TurnState.INTERRUPTED]
    await journal.close()


# --- the log ---------------------------------------------------------------------------------------------------------
async def test_commits_that_are_only_in_the_log_are_kept(tmp_path: Path) -> None:
    await filled(tmp_path)
    journal = await open_journal(tmp_path, protocol="test")
    late = await journal.create_thread(a_thread())
    before = await everything(journal)
    pair = (tmp_path / "quintet.db").read_bytes(), (tmp_path / "quintet.db-wal").read_bytes()
    await journal.close()
    (tmp_path / "quintet.db").write_bytes(pair[0])
    (tmp_path / "quintet.db-wal").write_bytes(pair[1])
    change(tmp_path, next(n for n, kind in tree_pages_of(pair, tmp_path) if kind == "internal"), zeroed)
    (tmp_path / "quintet.db-wal").write_bytes(pair[1])
    report = await repair(tmp_path)
    assert report.outcome == "repaired"
    assert (Path(report.copied_to) / "quintet.db-wal").read_bytes() == pair[1]
    journal = await open_journal(tmp_path, protocol="test")
    assert await everything(journal) == before
    assert (await journal.thread(late.id)).id == late.id
    await journal.close()


def tree_pages_of(pair: tuple[bytes, bytes], home: Path) -> list[tuple[int, str]]:
    other = home / "other"
    other.mkdir()
    (other / "quintet.db").write_bytes(pair[0])
    return tree_pages(other, "items")


async def test_a_bad_frame_in_the_log_costs_what_stands_behind_it_and_no_number(tmp_path: Path) -> None:
    await filled(tmp_path, 2)
    journal = await open_journal(tmp_path, protocol="test")
    for _ in range(20):
        await journal.create_thread(a_thread())
    last = (await journal.marks()).last
    main, log = (tmp_path / "quintet.db").read_bytes(), bytearray((tmp_path / "quintet.db-wal").read_bytes())
    await journal.close()
    log[len(log) // 2] ^= 8
    (tmp_path / "quintet.db").write_bytes(main)
    (tmp_path / "quintet.db-wal").write_bytes(log)
    report = await repair(tmp_path)
    assert report.lost_frames > 0
    assert not (tmp_path / "quintet.db-wal").exists()
    assert await next_number(tmp_path) >= last + JUMP


# --- what it must not do ---------------------------------------------------------------------------------------------
def snapshot(home: Path) -> dict[str, bytes]:
    return {
        p.relative_to(home).as_posix(): p.read_bytes() for p in home.rglob("*") if p.is_file() and "run" not in p.parts
    }


async def test_a_healthy_journal_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await filled(home)
    before = snapshot(home)
    report = await repair(home)
    assert (report.outcome, report.lost, report.copied_to) == ("healthy", {}, "")
    assert report.kept["threads"] == 12
    assert snapshot(home) == before


async def test_a_dry_run_says_the_same_and_changes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await filled(home)
    change(home, next(n for n, kind in tree_pages(home, "items") if kind == "leaf"), zeroed)
    before = snapshot(home)
    would = await repair(home, dry_run=True)
    assert would.outcome == "repaired"
    assert would.lost["items"] > 0
    assert snapshot(home) == before
    did = await repair(home)
    assert (would.kept, would.lost, would.outcome) == (did.kept, did.lost, did.outcome)


async def test_the_old_files_are_copied_privately_before_anything_is_touched(tmp_path: Path) -> None:
    await filled(tmp_path)
    change(tmp_path, tree_pages(tmp_path, "events")[-1][0], noisy)
    (tmp_path / "quintet.db-wal.damaged").write_bytes(b"from earlier")
    old = (tmp_path / "quintet.db").read_bytes()
    report = await repair(tmp_path)
    folder = Path(report.copied_to)
    assert folder.parent == tmp_path / "backups"
    assert folder.name.startswith("damaged-")
    assert (folder / "quintet.db").read_bytes() == old
    assert (folder / "quintet.db-wal.damaged").read_bytes() == b"from earlier"
    for path in (folder, *folder.iterdir(), tmp_path / "quintet.db"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert {p.name for p in tmp_path.glob("quintet.db*")} == {"quintet.db", "quintet.db-wal.damaged"}


async def test_a_second_repair_changes_nothing(tmp_path: Path) -> None:
    await filled(tmp_path)
    for tree in ("events", "items", "threads", "turns"):
        change(tmp_path, tree_pages(tmp_path, tree)[-1][0], flipped)
    assert (await repair(tmp_path)).outcome == "repaired"
    before = snapshot(tmp_path)
    again = await repair(tmp_path)
    assert again.outcome in ("healthy", "unchanged")
    assert snapshot(tmp_path) == before


async def test_it_is_refused_while_anybody_uses_the_home(tmp_path: Path) -> None:
    await filled(tmp_path, 1)
    journal = await open_journal(tmp_path, protocol="acp")
    with pytest.raises(Busy) as refused:
        await repair(tmp_path)
    assert f"acp (pid {os.getpid()})" in refused.value.line()
    await journal.close()
    assert (await repair(tmp_path)).outcome == "healthy"


async def test_without_room_for_a_copy_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(tmp_path)
    change(tmp_path, tree_pages(tmp_path, "events")[-1][0], zeroed)
    before = snapshot(tmp_path)
    monkeypatch.setattr(Home, "free_bytes", lambda _: 1_500_000)
    with pytest.raises(StorageFull) as refused:
        await repair(tmp_path)
    assert "MiB" in refused.value.line()
    assert snapshot(tmp_path) == before


async def test_nothing_is_touched_when_what_was_salvaged_does_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(tmp_path)
    change(tmp_path, tree_pages(tmp_path, "events")[-1][0], zeroed)
    old = (tmp_path / "quintet.db").read_bytes()

    async def fails(*_: object, **__: object) -> None:
        raise StorageDamaged("no")

    monkeypatch.setattr(repairing, "open_journal", fails)
    with pytest.raises(StorageDamaged) as refused:
        await repair(tmp_path)
    assert "nothing was changed" in refused.value.line()
    assert (tmp_path / "quintet.db").read_bytes() == old


@pytest.mark.parametrize("failure", [OSError(5, "Input/output error"), KeyboardInterrupt()], ids=["fails", "cut-off"])
@pytest.mark.parametrize("at", ["rename", "unlink"])
async def test_an_exchange_that_fails_or_is_cut_off_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, at: str
) -> None:
    """A KeyboardInterrupt stands for a kill: nothing behind it runs."""
    await filled(tmp_path)
    change(tmp_path, tree_pages(tmp_path, "events")[-1][0], zeroed)
    old = (tmp_path / "quintet.db").read_bytes()
    real, database = getattr(os, at), str(tmp_path / "quintet.db")

    def fails(*given: str, **more: int) -> None:
        if given[-1] == database:
            monkeypatch.setattr(files.os, at, real)
            raise failure
        real(*given, **more)

    monkeypatch.setattr(files.os, at, fails)
    with pytest.raises((QuintetError, KeyboardInterrupt)):
        await asyncio.to_thread(_now, repair(tmp_path))
    if isinstance(failure, OSError):
        assert (tmp_path / "quintet.db").read_bytes() == old
    else:
        with pytest.raises(StorageDamaged, match="cut off"):
            await open_journal(tmp_path, protocol="test")
    report = await repaired(tmp_path)
    assert report.outcome == "repaired"
    assert not (tmp_path / "quintet.db.repairing").exists()
    await (await open_journal(tmp_path, protocol="test")).close()


def _now(work: Coroutine[Any, Any, object]) -> object:
    return asyncio.run(work)


@pytest.mark.parametrize("content", [b"", b"hello", b"\0" * 8192, random.Random(3).randbytes(40_000), None])
async def test_what_holds_nothing_is_kept_and_replaced_only_when_asked(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "quintet.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StorageDamaged) as refused:
        await repair(tmp_path)
    assert "--start-anew" in refused.value.line()
    assert path.exists() == (content is not None)
    report = await repaired(tmp_path, start_anew=True)
    assert report.outcome == "started-anew"
    if content is not None:
        assert (Path(report.copied_to) / "quintet.db").read_bytes() == content
    assert await next_number(tmp_path) == 1


async def test_start_anew_never_throws_away_what_can_be_salvaged(tmp_path: Path) -> None:
    before = await filled(tmp_path)
    assert (await repair(tmp_path, start_anew=True)).outcome == "healthy"
    change(tmp_path, 1, zeroed)
    assert (await repair(tmp_path, start_anew=True)).outcome == "repaired"
    journal = await open_journal(tmp_path, protocol="test")
    assert await everything(journal) == before
    await journal.close()


async def test_a_newer_format_is_not_touched(tmp_path: Path) -> None:
    await filled(tmp_path, 1)
    with apsw.Connection(str(tmp_path / "quintet.db")) as raw:
        raw.execute("PRAGMA user_version = 7")
    raw.close()
    with pytest.raises(VersionMismatch):
        await repair(tmp_path)


async def test_a_damaged_row_is_kept_and_shown_as_damaged(tmp_path: Path) -> None:
    before = await filled(tmp_path, 3)
    with apsw.Connection(str(tmp_path / "quintet.db")) as raw:
        raw.execute("UPDATE events SET at_ms = at_ms + 1 WHERE seq = 4")
    raw.close()
    change(tmp_path, tree_pages(tmp_path, "events_root")[0][0], noisy)
    report = await repair(tmp_path)
    assert (report.damaged_events, report.lost) == (1, {})
    journal = await open_journal(tmp_path, protocol="test")
    found = await everything(journal)
    assert [e.seq for e in found if e.damaged] == [4]
    assert kinds(found) == kinds(before)
    await journal.close()


async def test_flipped_bits_anywhere_never_stop_a_repair(tmp_path: Path) -> None:
    before = {e.seq: e for e in await filled(tmp_path, 4)}
    whole = (tmp_path / "quintet.db").read_bytes()
    dice = random.Random(11)
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(dice.choice((1, 5, 50))):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        data[60:64] = struct.pack(">I", 1)  # a newer format is another matter
        (tmp_path / "quintet.db").write_bytes(data)
        await repair(tmp_path)
        journal = await open_journal(tmp_path, protocol="test")
        for event in await everything(journal):
            assert event.damaged or before.get(event.seq) == event
        await journal.create_thread(a_thread())
        assert (await journal.marks()).last > max(before)
        await journal.close()


async def test_columns_that_repeat_a_body_follow_it(tmp_path: Path) -> None:
    journal = await open_journal(tmp_path, protocol="test")
    grant = a_grant((await journal.create_thread(a_thread())).id)
    await journal.append([Draft(ev.GrantMade(grant))])
    await journal.revoke_grant(grant.id)
    await journal.close()
    with apsw.Connection(str(tmp_path / "quintet.db")) as raw:
        raw.execute("UPDATE grants SET revoked = 0")
    raw.close()
    change(tmp_path, tree_pages(tmp_path, "threads_root")[0][0], noisy)
    assert (await repair(tmp_path)).outcome == "repaired"
    assert [row[3] for row in rows_of(tmp_path)["grants"].values()] == [1]
