"""Durable appends from a hundred callers at once; beside it a raw group-commit loop on the same disk."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from pathlib import Path

import apsw

from bench.measure import Row, fresh_home
from bench.reading import running_turn
from quintet.domain.event import Draft, ToolFinished
from quintet.domain.ids import new_id
from quintet.domain.item import ResultStatus
from quintet.domain.turn import Lease
from quintet.journal.codec import encode, event_sum
from quintet.journal.opening import open_journal

CALLERS = 100
EACH = 100
ROUNDS = 5
NOW = 1_800_000_000_000
THREAD, TURN = new_id("thr"), new_id("trn")


async def journal_rate(home: Path) -> float:
    """Each caller has its own running turn and appends facts to it."""
    journal = await open_journal(home, protocol="bench")
    leases = [await running_turn(journal) for _ in range(CALLERS)]

    async def caller(lease: Lease) -> None:
        for number in range(EACH):
            fact = ToolFinished(f"call-{number}", "shell", ResultStatus.OK, number)
            await journal.append([Draft(fact, lease.thread, lease.turn)], lease=lease)

    began = time.perf_counter()
    await asyncio.gather(*(caller(lease) for lease in leases))
    rate = CALLERS * EACH / (time.perf_counter() - began)
    await journal.close()
    return rate


async def raw_rate(home: Path) -> float:
    """The same rows by hand: a thread that encodes, sums and commits, synced, whatever waits. No lease, no rules, no
    numbers shared with other processes, nobody to tell; callers wait for their commit."""
    loop = asyncio.get_running_loop()
    jobs: queue.SimpleQueue[tuple[ToolFinished, asyncio.Future[None]] | None] = queue.SimpleQueue()

    def wake(batch: list[asyncio.Future[None]]) -> None:
        for future in batch:
            future.set_result(None)

    def write() -> None:
        connection = apsw.Connection(str(home / "raw.db"))
        for statement in ("journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {statement}").fetchall()
        connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, kind, at_ms, root, thread, turn, sum, body)")
        connection.execute("CREATE INDEX events_root ON events (root)")
        seq = 0
        while (job := jobs.get()) is not None:
            batch = [job]
            while len(batch) < 256 and not jobs.empty() and (more := jobs.get()) is not None:
                batch.append(more)
            rows = []
            for fact, _ in batch:
                seq += 1
                said = encode(fact)
                rows.append((seq, 7, NOW, 1, None, 1, event_sum(seq, "tool.finished", NOW, THREAD, TURN, said), said))
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            connection.execute("COMMIT")
            loop.call_soon_threadsafe(wake, [future for _, future in batch])
        connection.close()

    thread = threading.Thread(target=write)
    thread.start()

    async def caller() -> None:
        for number in range(EACH):
            future = loop.create_future()
            jobs.put((ToolFinished(f"call-{number}", "shell", ResultStatus.OK, number), future))
            await future

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    rate = CALLERS * EACH / (time.perf_counter() - began)
    jobs.put(None)
    thread.join()
    return rate


def run() -> list[Row]:
    best = best_raw = 0.0
    for _ in range(ROUNDS):  # alternating, so that a slow moment of the machine hits both
        with fresh_home() as home:
            best = max(best, asyncio.run(journal_rate(home)))
        with fresh_home() as home:
            best_raw = max(best_raw, asyncio.run(raw_rate(home)))
    beside = f"{best:,.0f}/s against {best_raw:,.0f}/s raw"
    return [
        Row(
            "durable appends from 100 callers, share of the raw rate",
            best / best_raw * 100,
            "%",
            60,
            beside,
            at_least=True,
        )
    ]
