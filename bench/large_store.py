"""A large store: a thousand threads, a million events, one thread of a hundred thousand. Starting, paging, searching.

The fault suite builds the same store and holds it to the same bars.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from bench.measure import Row, fresh_home, median
from bench.starting import server_ready
from quintet.domain.event import Draft, ItemAdded, TextDelta, TurnFinished
from quintet.domain.ids import new_id
from quintet.domain.item import AssistantMessage, Item, TextPart
from quintet.domain.principal import local
from quintet.domain.thread import Thread, ThreadQuery, ThreadSettings
from quintet.domain.turn import Lease, Mode, Turn, TurnState
from quintet.journal.appending import append, write_pushes
from quintet.journal.opening import open_journal
from quintet.journal.stored import StoredJournal
from quintet.journal.transaction import Transaction

THREADS = 1_000
EVENTS = 1_000_000
LONGEST = 100_000
ITEM_EVERY = 20  # one event in twenty is an item with words, the others are the deltas it was told in
IN_ONE_COMMIT = 500  # items
SYLLABLES = ("ba", "ko", "mi", "tu", "re", "sa", "no", "li")
ROUNDS = 7
ME = local("bench")


def sentence(dice: random.Random) -> str:
    """Forty words as people use them: few often, many rarely."""
    numbers = [min(int(dice.paretovariate(0.7)), 3000) for _ in range(40)]
    return " ".join("".join(SYLLABLES[n >> shift & 7] for shift in (0, 3, 6)) for n in numbers)


def passage(number: int, first: int, dice: random.Random, lease: Lease) -> tuple[list[Draft], Draft]:
    """An item with words, and the deltas it was told in."""
    item = new_id("itm")
    deltas = [Draft(TextDelta(item, n, "word "), lease.thread, lease.turn) for n in range(ITEM_EVERY - 1)]
    words = sentence(dice) + (f" {needle(number)}" if not first else "")
    body = Item(item, lease.thread, lease.turn, 0, 1, AssistantMessage(words))
    return deltas, Draft(ItemAdded(body), lease.thread, lease.turn)


def needle(number: int) -> str:
    """A word that one item of this thread alone has."""
    return f"needle{number:05d}x"


async def fill(journal: StoredJournal, number: int, events: int) -> str:
    """One thread with one turn and at least so many events, in large commits."""
    thread, turn = new_id("thr"), new_id("trn")
    settings = ThreadSettings("/somewhere/to/work")
    made = Thread(thread, thread, "prj_x", "default", settings, 1, number + 1, title=f"A thread about matter {number}")
    await journal.create_thread(made)
    await journal.enqueue(Turn(turn, thread, TurnState.QUEUED, journal.owner, Mode.ALLOW, ME, (TextPart("go"),), 0))
    lease = await journal.claim(turn, mode=Mode.ALLOW, model="")
    dice = random.Random(number)
    passages = [passage(number, n, dice, lease) for n in range(-(-events // ITEM_EVERY))]
    for at in range(0, len(passages), IN_ONE_COMMIT):
        part = passages[at : at + IN_ONE_COMMIT]
        await journal.store.write("append", partial(_write, part=part, lease=lease))
    await journal.finish(lease, TurnFinished(TurnState.DONE))
    return thread


def _write(tx: Transaction, part: Sequence[tuple[list[Draft], Draft]], lease: Lease) -> None:
    for deltas, item in part:
        write_pushes(tx, [(deltas, lease)])
        append(tx, [item], lease)


async def build(home: Path, scale: float = 1.0) -> str:
    """The store, or a smaller one of the same form. Returns the longest thread."""
    threads, events, longest = int(THREADS * scale), int(EVENTS * scale), int(LONGEST * scale)
    each = (events - longest) // (threads - 1)
    journal = await open_journal(home, protocol="bench")
    try:
        for number in range(threads - 1):
            await fill(journal, number, each)
        return await fill(journal, threads, events - each * (threads - 1))
    finally:
        await journal.close()


async def reading(home: Path, longest: str, rounds: int) -> tuple[list[float], list[float]]:
    """(times of last pages, times of searches) in milliseconds, the first of each among them."""
    journal = await open_journal(home, protocol="bench")
    pages: list[float] = []
    searches: list[float] = []

    async def timed(into: list[float], work: Callable[[], Awaitable[Sequence[object]]], expected: int) -> None:
        began = time.perf_counter()
        found = await work()
        into.append((time.perf_counter() - began) * 1000)
        assert len(found) == expected, f"{len(found)} found instead of {expected}"

    try:
        for n in range(rounds):
            await timed(pages, lambda: journal.items(longest, limit=100, newest=True), 100)
            last = (await journal.marks()).last
            await timed(pages, lambda last=last: journal.events(last - 101, root=longest, limit=100), 100)
            await timed(pages, lambda: journal.threads(ThreadQuery(limit=50)), 50)
            await timed(searches, lambda: journal.search("kobaba", limit=50), 50)  # in nearly every item
            await timed(searches, lambda: journal.search("kobaba mibaba", limit=50), 50)
            await timed(searches, lambda n=n: journal.search(needle(n), limit=50), 1)
            await timed(searches, lambda n=n: journal.search(f"kobaba {needle(n)}", limit=50), 1)
    finally:
        await journal.close()
    return pages, searches


def run() -> list[Row]:
    with fresh_home() as home:
        longest = asyncio.run(build(home))
        pages, searches = asyncio.run(reading(home, longest, ROUNDS))
        starts = [server_ready(home).took_s for _ in range(ROUNDS)]
        size = (home / "quintet.db").stat().st_size / 2**20
    beside = f"1,000 threads, a million events, {size:.0f} MiB"
    return [
        Row("server ready on a large store, median", median(starts), "s", 2, beside),
        Row("last page of a thread of 100,000 events, worst", max(pages), "ms", 100, beside),
        Row("search in a large store, worst", max(searches), "ms", 200, beside),
    ]
