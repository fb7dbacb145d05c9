"""Publication on both stores: after the commit, strictly by seq, each event once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import apsw
import pytest

from quintet.domain.errors import StorageDamaged
from quintet.domain.event import Event
from quintet.journal import StoredJournal, open_journal
from quintet.journal.rows import EventRow, Reads
from quintet.journal.sqlite_rows import SqliteRows
from tests.unit.journal.conftest import Processes
from tests.unit.journal.nouns import DONE, a_thread, a_turn, everything, said, started, text_delta


async def settled(journal: StoredJournal) -> None:
    """Everything committed so far has been delivered."""
    await journal.tail()
    await asyncio.sleep(0)


async def test_a_listener_hears_every_event_as_it_can_be_read(journal: StoredJournal) -> None:
    heard: list[Event] = []
    journal.listen(heard.extend)
    _, lease = await started(journal)
    journal.push([text_delta("itm_1", n, "x") for n in range(700)], lease)
    await journal.append([said("x")], lease=lease)
    await journal.finish(lease, DONE)
    await settled(journal)
    assert heard == await everything(journal)


async def test_what_was_committed_before_listening_is_not_published(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    await here.create_thread(a_thread())
    await there.create_thread(a_thread())
    heard: list[Event] = []
    stop = here.listen(heard.extend)
    await settled(here)
    assert heard == []
    await there.create_thread(a_thread())
    await settled(here)
    assert len(heard) == 1
    stop()
    await here.create_thread(a_thread())
    await settled(here)
    assert len(heard) == 1


@pytest.mark.req("mechanisms:M1.publisher")
async def test_events_of_others_come_in_their_place_before_own_ones(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    heard: list[Event] = []
    here.listen(heard.extend)
    for n in range(20):
        await (there if n % 3 else here).create_thread(a_thread())
    await here.create_thread(a_thread())
    await settled(here)
    assert [e.seq for e in heard] == list(range(1, 22))
    assert heard == await everything(there)


async def test_tailing_publishes_what_others_wrote_page_by_page(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    heard: list[Event] = []
    here.listen(heard.extend)
    thread, lease = await started(there)
    there.push([text_delta("itm_1", n, "x") for n in range(1200)], lease)
    await there.append([], lease=lease)
    assert heard == []
    assert here.changed_elsewhere()
    await settled(here)
    assert heard == await everything(there)
    assert not here.changed_elsewhere()
    await here.enqueue(a_turn(thread.id))
    await settled(here)
    assert not here.changed_elsewhere()
    await there.finish(lease, DONE)
    assert here.changed_elsewhere()
    assert not here.changed_elsewhere()


@pytest.mark.req("mechanisms:M1.counter", "mechanisms:M1.publisher")
async def test_two_writing_processes_publish_the_same_order_to_all(processes: Processes) -> None:
    both = [await processes.another(), await processes.another()]
    heard: list[list[Event]] = [[], []]
    for journal, ears in zip(both, heard, strict=True):
        journal.listen(ears.extend)

    async def write(journal: StoredJournal) -> None:
        _, lease = await started(journal)
        for n in range(30):
            journal.push([text_delta("itm_1", n, "x")], lease)
            await journal.append([said(f"{n}")], lease=lease)

    await asyncio.wait_for(asyncio.gather(*(write(j) for j in both)), 30)
    for journal in both:
        await settled(journal)
    assert heard[0] == heard[1] == await everything(both[0])


async def test_a_failing_listener_harms_nobody(journal: StoredJournal) -> None:
    problems: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context["message"]))
    heard: list[Event] = []

    def fails(events: object) -> None:
        raise RuntimeError("broken ear")

    journal.listen(fails)
    journal.listen(heard.extend)
    await journal.create_thread(a_thread())
    await settled(journal)
    assert len(heard) == 1
    assert problems == ["a listener of the journal failed"]


async def test_a_caller_hears_after_the_listeners_did(journal: StoredJournal) -> None:
    heard: list[Event] = []
    journal.listen(heard.extend)
    await journal.create_thread(a_thread())
    assert len(heard) == 1


async def test_a_cancelled_caller_loses_its_answer_and_not_the_write(journal: StoredJournal) -> None:
    task = asyncio.ensure_future(journal.create_thread(a_thread()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await journal.create_thread(a_thread())
    assert len(await everything(journal)) == 2


class Unreadable:
    """Reading events fails from the second page on, until it is mended."""

    def __init__(self, rows: SqliteRows) -> None:
        self._rows, self._real, self._pages = rows, rows.events, 0
        rows.events = self._events  # type: ignore[method-assign]

    def mend(self) -> None:
        self._rows.events = self._real  # type: ignore[method-assign]

    def _events(self, after: int, root: str, limit: int) -> list[EventRow]:
        self._pages += 1
        if self._pages > 1:
            raise apsw.CorruptError("cannot be read")
        return self._real(after, root, limit)


@pytest.mark.req("mechanisms:M1.publisher")
async def test_a_listener_is_told_to_look_itself_when_rows_of_others_cannot_be_read(files: Processes) -> None:
    here, there = await files.another(), await files.another()
    heard: list[list[int]] = []
    here.listen(lambda events: heard.append([e.seq for e in events]))
    _, lease = await started(there)
    there.push([text_delta("itm_1", n, "x") for n in range(1200)], lease)
    await there.append([], lease=lease)
    broken = Unreadable(here.store._writer.rows)  # type: ignore[attr-defined]
    own = await here.create_thread(a_thread())
    await asyncio.sleep(0)
    last = (await here.marks()).last
    assert (await here.events(last - 1))[0].thread == own.id
    assert heard == [list(range(1, 501)), [], [last]]
    broken.mend()
    await there.finish(lease, DONE)
    await settled(here)
    assert heard[3:] == [[last + 1]]


async def test_tailing_hands_over_what_could_be_read_and_goes_on_from_there(files: Processes) -> None:
    here, there = await files.another(), await files.another()
    heard: list[int] = []
    here.listen(lambda events: heard.extend(e.seq for e in events))
    _, lease = await started(there)
    there.push([text_delta("itm_1", n, "x") for n in range(1200)], lease)
    await there.append([], lease=lease)
    broken = Unreadable(here.store._writer.rows)  # type: ignore[attr-defined]
    with pytest.raises(StorageDamaged):
        await here.tail()
    assert heard == list(range(1, 501))
    broken.mend()
    await settled(here)
    assert heard == [e.seq for e in await everything(there)]


async def test_a_reading_journal_hands_over_what_could_be_read(files: Processes) -> None:
    there = await files.another()
    assert files.home is not None
    here = await open_journal(files.home, protocol="test", read_only=True)
    heard: list[int] = []
    here.listen(lambda events: heard.extend(e.seq for e in events))
    _, lease = await started(there)
    there.push([text_delta("itm_1", n, "x") for n in range(1200)], lease)
    await there.append([], lease=lease)
    real = here.store.read

    async def failing(work: Callable[[Reads], None]) -> None:
        def broken(rows: Reads) -> None:
            assert isinstance(rows, SqliteRows)
            damage = Unreadable(rows)
            try:
                work(rows)
            finally:
                damage.mend()

        await real(broken)

    here.store.read = failing  # type: ignore[method-assign,assignment]
    with pytest.raises(StorageDamaged):
        await here.tail()
    assert heard == list(range(1, 501))
    here.store.read = real  # type: ignore[method-assign]
    await settled(here)
    assert heard == [e.seq for e in await everything(there)]
    await here.close()
