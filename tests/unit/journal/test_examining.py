"""A look at a journal from outside: whole, damaged in each way there is, and in use; nothing is changed by looking."""

from __future__ import annotations

import asyncio
import os
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from quintet.domain.checkup import Health, Row
from quintet.domain.thread import ThreadQuery
from quintet.journal import open_journal, opening, peeking
from quintet.journal.examining import examine
from quintet.journal.peeking import glance
from quintet.journal.repair import repair
from tests.unit.journal.conftest import Processes
from tests.unit.journal.nouns import DONE, Clock, a_request, a_thread, asked, said, started
from tests.unit.journal.test_repair import filled

BOTH = pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])


def journal_row(home: Path, *, deep: bool) -> Row:
    return examine(home, deep=deep)[0]


def contents(home: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in home.iterdir() if p.is_file()}


def change(home: Path, sql: str, *given: object) -> None:
    with apsw.Connection(str(home / "quintet.db")) as raw:
        raw.execute(sql, given)  # type: ignore[arg-type]
    raw.close()


@BOTH
@pytest.mark.req("first_minutes:F5")
async def test_a_whole_journal_is_fine_and_looking_changes_no_file(tmp_path: Path, deep: bool) -> None:
    await filled(tmp_path, 2)
    before = contents(tmp_path)
    row = journal_row(tmp_path, deep=deep)
    assert row.health is Health.OK, row
    assert ("8 items" if deep else "2 threads") in row.detail
    assert contents(tmp_path) == before


@BOTH
async def test_no_journal_is_no_fault_and_none_is_made(tmp_path: Path, deep: bool) -> None:
    assert journal_row(tmp_path, deep=deep).health is Health.OK
    assert glance(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


class Meanwhile:
    """Told how far a look is, it lets somebody else open the journal, delete a thread, move every page, and go."""

    def __init__(self, home: Path, times: int) -> None:
        self._home, self.left = home, times

    def __call__(self, doing: str, done: int, total: int) -> None:
        if self.left:
            self.left -= 1
            with ThreadPoolExecutor() as another:
                another.submit(asyncio.run, self._write()).result(20)
            change(self._home, "VACUUM")

    async def _write(self) -> None:
        journal = await open_journal(self._home, protocol="test")
        (thread,) = await journal.threads(ThreadQuery(limit=1))
        await journal.delete_thread(thread.id)
        await journal.close()


@pytest.fixture
def nothing_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are read when they are needed, as those of a large journal are."""

    def connect(source: str, flags: int) -> apsw.Connection:
        connection = opening.connect(source, flags)
        connection.execute("PRAGMA cache_size = 1").fetchall()
        return connection

    monkeypatch.setattr(peeking, "connect", connect)


@pytest.mark.req("first_minutes:F9")
@pytest.mark.usefixtures("nothing_cached")
@pytest.mark.parametrize("times", [1, 3])
async def test_somebody_who_writes_during_a_deep_look_is_no_damage(tmp_path: Path, times: int) -> None:
    await filled(tmp_path, 6)
    meanwhile = Meanwhile(tmp_path, times)
    rows = examine(tmp_path, deep=True, progress=meanwhile)
    assert meanwhile.left == 0
    assert {row.health for row in rows} == {Health.OK}, rows
    assert contents(tmp_path).keys() >= {"quintet.db"}
    assert not (tmp_path / "quintet.db-wal").exists(), "it was read as it lies there"


@pytest.mark.usefixtures("nothing_cached")
async def test_a_journal_that_is_never_left_alone_is_not_called_damaged(tmp_path: Path) -> None:
    await filled(tmp_path, 6)
    row = examine(tmp_path, deep=True, progress=Meanwhile(tmp_path, 1_000))[0]
    assert (row.health, row.fix) == (Health.WARN, "quintet doctor")


@BOTH
async def test_a_journal_that_others_write_is_looked_at_meanwhile(files: Processes, deep: bool) -> None:
    journal = await files.another()
    _, lease = await started(journal, text="still going on")
    home = Path(journal.store.home.path)  # type: ignore[attr-defined]
    assert journal_row(home, deep=deep).health is Health.OK
    await journal.append([said("and on")], lease=lease)
    assert journal_row(home, deep=deep).health is Health.OK


@BOTH
@pytest.mark.req("first_minutes:F6")
async def test_a_file_that_is_no_database_fails_with_repair_as_the_way_out(tmp_path: Path, deep: bool) -> None:
    (tmp_path / "quintet.db").write_bytes(b"not a database at all" * 300)
    row = journal_row(tmp_path, deep=deep)
    assert row.health is Health.FAIL
    assert "quintet repair" in row.fix


@BOTH
@pytest.mark.req("first_minutes:F6")
async def test_a_torn_page_fails(tmp_path: Path, deep: bool) -> None:
    await filled(tmp_path, 4)
    with apsw.Connection(str(tmp_path / "quintet.db")) as raw:
        [(page,)] = raw.execute("SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' LIMIT 1")
    raw.close()
    with (tmp_path / "quintet.db").open("r+b") as file:
        file.seek((int(str(page)) - 1) * 4096)
        file.write(b"\xff" * 2000)
    row = journal_row(tmp_path, deep=deep)
    assert (row.health, row.fix) == (Health.FAIL, "quintet repair")


@pytest.mark.req("first_minutes:F9")
@pytest.mark.parametrize(("table", "words"), [("events", "1 events do not match"), ("items", "1 items do not match")])
async def test_one_changed_row_is_found_by_a_deep_look_alone(tmp_path: Path, table: str, words: str) -> None:
    await filled(tmp_path, 1)
    change(tmp_path, f"UPDATE {table} SET at_ms = at_ms + 1 WHERE rowid = (SELECT min(rowid) FROM {table})")
    assert journal_row(tmp_path, deep=False).health is Health.OK
    row = journal_row(tmp_path, deep=True)
    assert (row.health, row.fix) == (Health.FAIL, "quintet repair")
    assert words in row.detail


@pytest.mark.req("first_minutes:F9")
async def test_items_that_searching_misses_are_found_and_repair_mends_that(tmp_path: Path) -> None:
    await filled(tmp_path, 1)
    change(tmp_path, "INSERT INTO words (words) VALUES ('delete-all')")
    assert "items are not found by searching" in journal_row(tmp_path, deep=True).detail
    report = await repair(tmp_path)
    assert (report.outcome, report.why) == ("repaired", "The search words do not fit the items.")
    assert journal_row(tmp_path, deep=True).health is Health.OK
    journal = await open_journal(tmp_path, protocol="test")
    assert await journal.search("question")
    await journal.close()


@pytest.mark.req("first_minutes:F9")
async def test_words_of_items_that_are_gone_are_found_and_repair_mends_that(tmp_path: Path) -> None:
    await filled(tmp_path, 1)
    change(tmp_path, "INSERT INTO words (rowid, body) VALUES (?, ?)", 77 << 24, "erased long ago")
    row = journal_row(tmp_path, deep=True)
    assert row.health is Health.FAIL
    assert "1 items that are gone are still found" in row.detail
    assert (await repair(tmp_path)).outcome == "repaired"
    assert journal_row(tmp_path, deep=True).health is Health.OK


@pytest.mark.req("first_minutes:F9")
async def test_a_broken_audit_chain_is_found_by_a_deep_look(tmp_path: Path) -> None:
    await filled(tmp_path, 1)
    rows = {row.name: row for row in examine(tmp_path, deep=True)}
    assert rows["audit chain"].health is Health.OK
    change(tmp_path, "DELETE FROM audit WHERE rowid = 2")
    rows = {row.name: row for row in examine(tmp_path, deep=True)}
    assert rows["journal"].health is Health.OK, "the rows themselves are whole"
    assert (rows["audit chain"].health, rows["audit chain"].fix) == (Health.FAIL, "quintet audit verify")
    assert "row 2 is missing" in rows["audit chain"].detail


@BOTH
@pytest.mark.req("first_minutes:F6")
async def test_a_journal_of_a_newer_quintet_fails_and_says_so(tmp_path: Path, deep: bool) -> None:
    await filled(tmp_path, 1)
    change(tmp_path, "PRAGMA user_version = 99")
    row = journal_row(tmp_path, deep=deep)
    assert row.health is Health.FAIL
    assert "newer Quintet" in row.detail + row.fix


@BOTH
@pytest.mark.req("first_minutes:F6")
async def test_a_repair_that_was_cut_off_fails(tmp_path: Path, deep: bool) -> None:
    await filled(tmp_path, 1)
    (tmp_path / "quintet.db.repairing").write_text("")
    assert "quintet repair" in journal_row(tmp_path, deep=deep).fix


@BOTH
@pytest.mark.req("first_minutes:F6")
async def test_a_lost_table_or_counter_fails(tmp_path: Path, deep: bool) -> None:
    await filled(tmp_path, 1)
    change(tmp_path, "DELETE FROM counter")
    assert journal_row(tmp_path, deep=deep).fix == "quintet repair"
    change(tmp_path, "DROP TABLE interactions")
    assert journal_row(tmp_path, deep=deep).fix == "quintet repair"


@pytest.mark.req("first_minutes:F6")
async def test_commits_behind_a_bad_frame_of_the_log_fail_before_anything_drops_them(files: Processes) -> None:
    journal = await files.another()
    for n in range(6):
        await journal.create_thread(a_thread(title=f"number {n}"))
    home = Path(journal.store.home.path)  # type: ignore[attr-defined]
    kept = {name: (home / name).read_bytes() for name in ("quintet.db", "quintet.db-wal")}
    await journal.close()
    elsewhere = home / "copy"
    elsewhere.mkdir()
    for name, data in kept.items():
        (elsewhere / name).write_bytes(data)
    page_size = struct.unpack(">I", kept["quintet.db-wal"][8:12])[0]
    assert len(kept["quintet.db-wal"]) > 32 + 3 * (24 + page_size)
    assert journal_row(elsewhere, deep=False).health is Health.OK
    for name in os.listdir(elsewhere):
        (elsewhere / name).unlink()
    broken = bytearray(kept["quintet.db-wal"])
    broken[32 + 24 + 24 + page_size + 100] ^= 0xFF
    (elsewhere / "quintet.db").write_bytes(kept["quintet.db"])
    (elsewhere / "quintet.db-wal").write_bytes(broken)
    row = journal_row(elsewhere, deep=False)
    assert (row.health, row.fix) == (Health.FAIL, "quintet repair")
    assert "behind a bad one" in row.detail
    assert (elsewhere / "quintet.db-wal").read_bytes() == bytes(broken)


@BOTH
@pytest.mark.req("first_minutes:F6")
async def test_events_dated_in_the_future_warn(tmp_path: Path, deep: bool) -> None:
    ahead = Clock(time.time_ns() // 1_000_000 + 3_600_000)
    journal = await open_journal(tmp_path, protocol="test", clock=ahead)
    await journal.create_thread(a_thread())
    await journal.close()
    rows = {row.name: row for row in examine(tmp_path, deep=deep)}
    assert rows["journal"].health is Health.OK
    assert rows["journal's times"].health is Health.WARN
    assert "timedatectl" in rows["journal's times"].fix


@pytest.mark.req("first_minutes:F1")
async def test_a_glance_counts_threads_and_tells_running_waiting_and_cut_off_apart(files: Processes) -> None:
    living, dying = await files.another(), await files.another()
    home = Path(living.store.home.path)  # type: ignore[attr-defined]
    done, lease = await started(living, text="done")
    await living.finish(lease, DONE)
    _, lease = await started(living, text="going on")
    request = a_request()
    await living.append([asked(request)], lease=lease)
    await started(dying, text="cut off")
    files.die(dying)
    found = glance(home)
    assert found is not None
    assert (found.threads, found.running, found.interrupted, found.waiting) == (3, 1, 1, 1)
    newest = await living.threads(ThreadQuery(limit=1))
    assert found.newest_ms == newest[0].updated_ms
    await living.delete_thread(done.id)
    after = glance(home)
    assert after is not None
    assert after.threads == 2
