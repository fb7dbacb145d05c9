"""From a model's chunk to a subscriber in the same process, the journal on; beside it a bare writer thread."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import apsw

from bench.measure import Row, fresh_home, median
from quintet.app import App, open_app
from quintet.domain.event import Event, TextDelta, TurnFinished
from quintet.domain.item import TextPart
from quintet.domain.model import Chunk, Finish, FinishChunk, ModelInfo, ModelRequest, TextChunk
from quintet.domain.ports import Provider
from quintet.domain.principal import local
from quintet.domain.thread import ThreadSettings
from quintet.domain.turn import Mode
from quintet.engine.starter import Starter

BURST = 20_000
LONE = 400


class Stamping:
    """A model whose words are the time they were said at: a burst, or one at a time with a pause."""

    def __init__(self, count: int, pause_s: float) -> None:
        self._count = count
        self._pause_s = pause_s

    def resolve(self, reference: str) -> tuple[str, Provider]:
        return "bench/stamping", self

    def info(self, reference: str) -> ModelInfo:
        return ModelInfo(reference)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        for _ in range(self._count):
            if self._pause_s:
                await asyncio.sleep(self._pause_s)
            yield TextChunk(f"{time.perf_counter_ns()} ")
        yield FinishChunk(Finish.STOP)


async def engine_deltas(home: Path, count: int, pause_s: float) -> tuple[float, float]:
    """(CPU microseconds a delta, median milliseconds from chunk to subscriber)."""
    async with open_app(str(home), "bench") as app:
        thread = await app.threads.create(ThreadSettings(cwd=str(home)))
        starter = Starter(local("bench"), Stamping(count, pause_s), (), mode=Mode.ALLOW)
        subscription = app.feed.follow(root=thread.root)
        reading = asyncio.create_task(_read(app, subscription))
        began = time.process_time()
        await app.turns.start(thread.id, (TextPart("go"),), starter)
        late = await reading
        cpu_us = (time.process_time() - began) * 1e6 / count
    assert len(late) == count
    return cpu_us, median(late)


async def _read(app: App, subscription: AsyncIterator[object]) -> list[float]:
    late = []
    async for entry in subscription:
        assert isinstance(entry, Event)
        if isinstance(entry.payload, TextDelta):
            late.append((time.perf_counter_ns() - int(entry.payload.text)) / 1e6)
        elif isinstance(entry.payload, TurnFinished):
            return late
    return late


async def bare_deltas(home: Path, count: int, pause_s: float) -> tuple[float, float]:
    """The least there can be: a queue, a thread that inserts and commits what waits, one call back a batch."""
    loop = asyncio.get_running_loop()
    jobs: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    done = asyncio.Event()
    late: list[float] = []

    def deliver(batch: list[bytes]) -> None:
        now = time.perf_counter_ns()
        late.extend((now - int(said)) / 1e6 for said in batch)
        if len(late) == count:
            done.set()

    def write() -> None:
        connection = apsw.Connection(str(home / "bare.db"))
        for statement in ("journal_mode=WAL", "synchronous=NORMAL"):
            connection.execute(f"PRAGMA {statement}").fetchall()
        connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, body BLOB)")
        while (first := jobs.get()) is not None:
            batch = [first]
            while len(batch) < 256 and not jobs.empty() and (more := jobs.get()) is not None:
                batch.append(more)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO events (body) VALUES (?)", [(said,) for said in batch])
            connection.execute("COMMIT")
            loop.call_soon_threadsafe(deliver, batch)
        connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    began = time.process_time()
    for number in range(count):
        if pause_s:
            await asyncio.sleep(pause_s)
        elif number % 32 == 0:
            await asyncio.sleep(0)
        jobs.put(str(time.perf_counter_ns()).encode())
    await done.wait()
    cpu_us = (time.process_time() - began) * 1e6 / count
    jobs.put(None)
    thread.join()
    return cpu_us, median(late)


def run() -> list[Row]:
    with fresh_home() as home:
        cpu, _ = asyncio.run(engine_deltas(home, BURST, 0))
    with fresh_home() as home:
        bare_cpu, _ = asyncio.run(bare_deltas(home, BURST, 0))
    with fresh_home() as home:
        _, late = asyncio.run(engine_deltas(home, LONE, 0.003))
    with fresh_home() as home:
        _, bare_late = asyncio.run(bare_deltas(home, LONE, 0.003))
    return [
        Row(
            "CPU from a model's chunk to a subscriber, per delta, in a burst",
            cpu,
            "us",
            20,
            f"bare thread {bare_cpu:.1f}",
        ),
        Row("added latency of a lone delta, median", late, "ms", 0.3, f"bare thread {bare_late:.2f}"),
    ]
