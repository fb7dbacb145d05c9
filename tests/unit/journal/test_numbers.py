"""Numbers across reboots: from the ceiling on, synced where they must be, never given twice."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from quintet.domain import event as ev
from quintet.domain.event import Draft
from quintet.domain.ids import new_id
from quintet.domain.item import AssistantMessage, Item
from quintet.journal.commit import CEILING_STEP
from tests.unit.journal.homes import database, opened, put
from tests.unit.journal.nouns import (
    a_thread,
    everything,
    said,
    started,
    text_delta,
)


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
