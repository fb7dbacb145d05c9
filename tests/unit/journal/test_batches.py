"""Jobs that share one commit: one that is refused takes nothing of the others with it and leaves nothing behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from quintet.domain import event as ev
from quintet.domain.errors import Denied, NotFound, QuintetError
from quintet.domain.event import Draft, Event
from quintet.domain.item import AssistantMessage
from quintet.domain.thread import Handle
from quintet.journal import StoredJournal
from quintet.journal.emitting import emit
from quintet.journal.transaction import Transaction
from tests.unit.journal.conftest import Processes
from tests.unit.journal.nouns import a_thread, everything, kinds, said, started


@asynccontextmanager
async def one_batch(journal: StoredJournal) -> AsyncIterator[None]:
    """What is asked for within is committed together: the writer is busy until then."""
    held = asyncio.ensure_future(journal.store.write("hold", lambda tx: time.sleep(0.15)))
    await asyncio.sleep(0.03)
    yield
    await held


@pytest.mark.req("mechanisms:M1.facts")
@pytest.mark.parametrize("also", ["reads events", "reads nothing"])
async def test_an_event_of_a_turn_that_is_not_fails_alone(journal: StoredJournal, also: str) -> None:
    def look(tx: Transaction) -> int:
        return len(tx.rows.events(0, "", 5000)) if also == "reads events" else 0

    thread, lease = await started(journal)
    heard: list[Event] = []
    journal.listen(heard.extend)
    before = len(await everything(journal))
    async with one_batch(journal):
        good = asyncio.ensure_future(journal.append([said("I am acknowledged")], lease=lease))
        bogus = Draft(ev.ThreadUpdated(title="x"), thread.id, "trn_bogus")
        bad = asyncio.ensure_future(journal.append([bogus]))
        reads = asyncio.ensure_future(journal.store.write("prune", look))
        last = asyncio.ensure_future(journal.append([said("me too")], lease=lease))
        done = await asyncio.gather(good, bad, reads, last, return_exceptions=True)
    assert [type(d) for d in done] == [list, NotFound, int, list], done
    stored = await everything(journal)
    assert heard == stored[before:]
    assert kinds(heard) == ["item.added", "item.added"]
    bodies = [i.body for i in await journal.items(thread.id)][1:]
    assert bodies == [AssistantMessage("I am acknowledged"), AssistantMessage("me too")]
    assert (await journal.thread(thread.id)).title != "x"


async def test_a_job_refused_after_changing_rows_leaves_nothing(journal: StoredJournal) -> None:
    thread = await journal.create_thread(a_thread())

    def refused(tx: Transaction) -> None:
        tx.rows.insert_handle(Handle("wire", "", "half done", thread.id))
        raise Denied("changed my mind")

    async with one_batch(journal):
        one = asyncio.ensure_future(journal.store.write("x", refused))
        other = asyncio.ensure_future(journal.append([Draft(ev.ThreadUpdated(title="kept"), thread.id)]))
        done = await asyncio.gather(one, other, return_exceptions=True)
    assert isinstance(done[0], Denied)
    assert isinstance(done[1], list)
    assert await journal.find_handle("wire", "", "half done") is None
    assert (await journal.thread(thread.id)).title == "kept"


async def test_a_job_refused_after_an_event_leaves_nothing(journal: StoredJournal) -> None:
    thread = await journal.create_thread(a_thread())

    def refused(tx: Transaction) -> None:
        emit(tx, ev.ThreadUpdated(title="never"), thread.id)
        raise Denied("changed my mind")

    async with one_batch(journal):
        jobs = [journal.append([Draft(ev.ThreadUpdated(title=t), thread.id)]) for t in ("one", "two")]
        waiting = [asyncio.ensure_future(j) for j in (jobs[0], journal.store.write("x", refused), jobs[1])]
        done = await asyncio.gather(*waiting, return_exceptions=True)
    assert [isinstance(d, QuintetError) for d in done] == [False, True, False]
    assert [e.payload.title for e in await everything(journal) if isinstance(e.payload, ev.ThreadUpdated)] == [
        "one",
        "two",
    ]


async def test_rows_that_cannot_be_written_are_kept_back_from_nobody_else(files: Processes) -> None:
    """A job that fails while it makes room for its own reading must not use up what others are still to write."""
    journal = await files.another()
    thread = await journal.create_thread(a_thread())
    await journal.append([Draft(ev.ThreadUpdated(title="first"), thread.id)])
    rows = journal.store._writer.rows  # type: ignore[attr-defined]
    real, failed = rows._many, []

    def once(*given: object) -> object:
        if not failed:
            failed.append(1)
            raise TypeError("not now")
        return real(*given)

    rows._many = once
    async with one_batch(journal):
        writes = asyncio.ensure_future(journal.append([Draft(ev.ThreadUpdated(title="kept"), thread.id)]))
        reads = asyncio.ensure_future(journal.store.write("x", lambda tx: len(tx.rows.events(0, "", 10))))
        done = await asyncio.gather(writes, reads, return_exceptions=True)
    assert failed
    assert isinstance(done[0], list), done
    assert kinds(await everything(journal)) == ["thread.created", "thread.updated", "thread.updated"]
