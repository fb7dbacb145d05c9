"""A process that uses a journal until it is killed or done. Says on stdout what it was told: one JSON line per event it
heard or was answered with, so that a test can compare the list with what is readable afterwards.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from quintet.domain.command import Outcome
from quintet.domain.event import Event
from quintet.domain.ids import new_id
from quintet.domain.item import AssistantMessage, Item
from quintet.domain.turn import TurnState
from quintet.journal import StoredJournal, open_journal
from tests.unit.journal.nouns import (
    DONE,
    a_request,
    a_steer,
    a_thread,
    a_turn,
    an_intent,
    asked,
    said,
    started,
    text_delta,
    yes,
)


def tell(events: Sequence[Event]) -> None:
    for event in events:
        sys.stdout.write(msgspec.json.encode([event.seq, event.kind, event.thread]).decode() + "\n")
    sys.stdout.flush()


async def everything_once(journal: StoredJournal) -> None:
    """Each kind of write at least once."""
    await journal.recover()
    thread, lease = await started(journal)
    request = a_request()
    journal.push([text_delta("itm_1", n, "x") for n in range(10)], lease)
    await journal.append([said("x" * 10), an_intent("cal_1"), asked(request)], lease=lease)
    await journal.resolve(request.id, yes())
    steer = await journal.post(a_steer(thread.id, lease.turn))
    await journal.settle(steer.id, Outcome.ACCEPTED, [], lease)
    await journal.finish(lease, DONE)
    await journal.prune(now_ms=1 << 50)
    doomed = await journal.create_thread(a_thread())
    await journal.delete_thread(doomed.id)
    queued = await journal.enqueue(a_turn(thread.id))
    await journal.drop_queued(queued.turn.id, DONE)
    await journal.claim((await journal.enqueue(a_turn(thread.id))).turn.id, mode="ask", model="")


async def appends(journal: StoredJournal, count: int) -> None:
    """Many small turns beside other processes."""
    thread = await journal.create_thread(a_thread())
    for n in range(count):
        _, lease = await started(journal, thread)
        journal.push([text_delta("itm_1", k, "x") for k in range(5)], lease)
        await journal.append([said(f"{n}")], lease=lease)
        await journal.finish(lease, DONE)
        assert (await journal.turn(lease.turn)).state is TurnState.DONE


async def large(journal: StoredJournal) -> None:
    """One transaction larger than SQLite's page cache, which therefore reaches the log before its commit."""
    await started(journal)
    items = [Item(new_id("itm"), "", "", n + 1, 1, AssistantMessage(os.urandom(800).hex())) for n in range(3000)]
    await journal.create_thread(a_thread(), items=items)


async def main(home: str, what: str, count: int) -> None:
    journal = await open_journal(Path(home), protocol="worker")
    journal.listen(tell)
    if what == "once":
        await everything_once(journal)
    elif what == "large":
        await large(journal)
    elif what == "hold":
        await started(journal)
        sys.stdout.write("held\n")
        sys.stdout.flush()
        await asyncio.Event().wait()
    else:
        await appends(journal, count)
    await journal.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
