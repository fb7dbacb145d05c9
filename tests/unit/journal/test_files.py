"""The home and its files: who may read them, who holds them, how large they grow."""

from __future__ import annotations

import asyncio
import os
import random
import stat
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from quintet.domain import event as ev
from quintet.domain.errors import QuintetError, StorageReadOnly
from quintet.domain.event import Draft, ThreadUpdated
from quintet.domain.ids import new_id
from quintet.domain.interaction import Approval
from quintet.domain.thread import ThreadQuery
from quintet.journal.owners import living
from quintet.journal.sqlite import PENDING_DELTAS
from quintet.journal.statements import SQL
from tests.unit.journal.conftest import Processes
from tests.unit.journal.homes import database, filled, opened, watch_syncs
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
)


@pytest.mark.req("mechanisms:M5.delete")
async def test_what_was_erased_is_gone_from_the_file(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    thread, lease = await started(journal, text="please keep zanzibarword to yourself")
    journal.push([text_delta("itm_1", 0, "zanzibarword")], lease)
    request = replace(a_request(), request=Approval("shell", "echo zanzibarword"))
    await journal.append([asked(request), said("zanzibarword"), said("zanzibarword " * 500)], lease=lease)
    await journal.append([Draft(ThreadUpdated(metadata={"note": "zanzibarword"}), thread.id)])
    await journal.finish(lease, DONE)
    await journal.store.tidy()
    assert b"zanzibarword" in (tmp_path / "quintet.db").read_bytes()
    await journal.delete_thread(thread.id)
    await journal.close()
    assert b"zanzibarword" not in (tmp_path / "quintet.db").read_bytes()


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


@pytest.mark.req("reliability:R1")
async def test_the_names_of_a_new_home_and_its_file_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = watch_syncs(monkeypatch)
    home = tmp_path / "deep" / "home"
    await (await opened(home)).close()
    assert {str(tmp_path), str(tmp_path / "deep"), str(home)} <= set(synced)
    synced.clear()
    await (await opened(home)).close()
    assert synced == []


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
    assert journal.store._pending <= PENDING_DELTAS  # type: ignore[attr-defined]
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
