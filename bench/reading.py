"""Reading back: a long replay, and the first page of many threads."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bench.measure import Row, fresh_home, median
from quintet.domain.event import Draft, TextDelta
from quintet.domain.ids import new_id
from quintet.domain.item import TextPart
from quintet.domain.ports import Journal
from quintet.domain.principal import local
from quintet.domain.thread import Thread, ThreadQuery, ThreadSettings
from quintet.domain.turn import Lease, Mode, Turn, TurnState
from quintet.engine.subscription import replay
from quintet.journal.opening import open_journal

EVENTS = 100_000
THREADS = 10_000


async def running_turn(journal: Journal) -> Lease:
    thread, turn = new_id("thr"), new_id("trn")
    await journal.create_thread(Thread(thread, thread, "prj_x", "default", ThreadSettings("/"), 0, 0))
    me = local("bench")
    await journal.enqueue(Turn(turn, thread, TurnState.QUEUED, journal.owner, Mode.ALLOW, me, (TextPart("go"),), 0))
    return await journal.claim(turn, mode=Mode.ALLOW, model="")


async def replay_s(home: Path) -> float:
    journal = await open_journal(home, protocol="bench")
    lease = await running_turn(journal)
    item = new_id("itm")
    for number in range(EVENTS):
        journal.push([Draft(TextDelta(item, number, "word "), lease.thread, lease.turn)], lease)
        if number % 256 == 0:
            await journal.room()
    await journal.append([], lease=lease)  # everything before it is committed when this returns
    count = 0
    began = time.perf_counter()
    async for _ in replay(journal, 0, lease.thread):
        count += 1
    took = time.perf_counter() - began
    assert count >= EVENTS
    await journal.close()
    return took


async def first_page_ms(home: Path) -> float:
    journal = await open_journal(home, protocol="bench")
    for start in range(0, THREADS, 100):
        names = [new_id("thr") for _ in range(100)]
        settings = ThreadSettings("/somewhere/to/work")
        await asyncio.gather(
            *(
                journal.create_thread(
                    Thread(n, n, "prj_x", "default", settings, 1, start + i, title=f"A thread about matter {start + i}")
                )
                for i, n in enumerate(names)
            )
        )
    times = []
    for _ in range(50):
        began = time.perf_counter()
        page = await journal.threads(ThreadQuery(limit=50))
        times.append((time.perf_counter() - began) * 1000)
        assert len(page) == 50
    await journal.close()
    return median(times)


def run() -> list[Row]:
    with fresh_home() as home:
        took = asyncio.run(replay_s(home))
    with fresh_home() as home:
        page = asyncio.run(first_page_ms(home))
    return [
        Row("replay of 100,000 events, decoded and checked", took, "s", 0.5),
        Row("first page (50) of 10,000 threads, median", page, "ms", 2),
    ]
