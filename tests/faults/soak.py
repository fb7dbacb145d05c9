"""The process that is soaked: turn after turn at a steady pace through the real engine, with tools, forks and readers
that come and go. After each turn, when nothing runs, it prints how large it is.

    python -m tests.faults.soak HOME TURNS TURNS_A_SECOND
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import sys
import threading
import time
from pathlib import Path

import msgspec

from quintet.app import App, open_app
from quintet.domain.event import Event
from quintet.domain.item import TextPart
from quintet.domain.model import ModelInfo
from quintet.domain.ports import Provider
from quintet.domain.principal import local
from quintet.domain.thread import ThreadQuery, ThreadSettings
from quintet.domain.turn import Mode, TurnState
from quintet.engine.starter import Starter
from quintet.providers.scripted import ScriptedProvider

ME = local("soak")
READERS = 6
TURNS_A_THREAD = 10
SYLLABLES = ("ba", "ko", "mi", "tu", "re", "sa", "no", "li")


class OneScript:
    """Models of a turn that has a script of its own."""

    def __init__(self, script: str) -> None:
        self._provider = ScriptedProvider(script)

    def info(self, reference: str) -> ModelInfo:
        return ModelInfo(reference)

    def resolve(self, reference: str) -> tuple[str, Provider]:
        return "fake/scripted", self._provider


def prose(count: int, dice: random.Random) -> str:
    """Words as people use them: few often, many rarely."""
    numbers = [min(int(dice.paretovariate(0.7)), 3000) for _ in range(count)]
    return " ".join("".join(SYLLABLES[n >> shift & 7] for shift in (0, 3, 6)) for n in numbers)


def script(number: int, dice: random.Random) -> str:
    """A look at a file, a command behind the wall, a file written, an answer of two hundred words.

    The first command lasts until it is looked at, so that the thread that looks is there before anything is counted.
    """
    command = "sleep 1; wc -w notes.txt" if number == 0 else "wc -w notes.txt"
    said = "\n".join(f"text: {word} " for word in prose(200, dice).split())
    content = json.dumps({"path": f"made{number % 7}.txt", "content": prose(60, dice)})
    return (
        'scope: turn\nthink: Let me look.\ntool_call: read {"path": "notes.txt"}\n'
        f'tool_call: shell {{"command": "{command}"}}\n---\n'
        f"tool_call: write {content}\n---\n{said}\n"
    )


class Reader:
    """Follows everything, is cut after any number of events, comes back with its cursor. Keeps counts, not events."""

    def __init__(self, app: App, dice: random.Random) -> None:
        self.app = app
        self.dice = dice
        self.cursor = 0
        self.seen = 0
        self.connections = 0

    async def connect(self, events: int, until: int = 0) -> None:
        self.connections += 1
        stream = aiter(self.app.feed.follow(self.cursor))
        try:
            async for entry in stream:
                if not isinstance(entry, Event):
                    raise AssertionError(f"a reader that kept up was told of a gap: {entry}")
                if entry.seq <= self.cursor:
                    raise AssertionError(f"{entry.seq} came after {self.cursor}")
                self.cursor = entry.seq
                self.seen += 1
                events -= 1
                if not events or (until and entry.seq >= until):
                    return
        finally:
            await stream.aclose()  # type: ignore[attr-defined]

    async def come_and_go(self) -> None:
        while True:
            await self.connect(self.dice.randint(1, 400))


def size() -> dict[str, float]:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {
        "rss_mib": int(status["VmRSS"].split()[0]) / 1024,
        "threads": int(status["Threads"]),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "children": len(children),
    }


async def fill_the_thread_pool() -> None:
    """asyncio's pool grows to its bound whenever chance wants it; all of it is there before anything is counted."""
    many = min(32, (os.cpu_count() or 1) + 4)
    barrier = threading.Barrier(many)
    await asyncio.gather(*(asyncio.to_thread(barrier.wait, 30) for _ in range(many)))


async def payload(app: App) -> int:
    """Bytes of final items, tool output as kept among them."""
    total = 0
    before = None
    while page := await app.threads.page(ThreadQuery(limit=200, before=before)):
        for thread in page:
            total += sum(len(msgspec.json.encode(i)) for i in await app.threads.items(thread.id))
        before = (page[-1].updated_ms, page[-1].id)
    return total


async def soak(app: App, work: Path, turns: int, pace: float) -> None:
    dice = random.Random(8)
    readers = [Reader(app, random.Random(n)) for n in range(READERS)]
    reading = [asyncio.create_task(reader.come_and_go()) for reader in readers]
    begun = time.monotonic()
    thread = ""
    for number in range(turns):
        await asyncio.sleep(max(0.0, begun + number / pace - time.monotonic()))
        if number % TURNS_A_THREAD == 0:
            thread = (await app.threads.create(ThreadSettings(str(work)))).id
        elif number % TURNS_A_THREAD == 7:
            thread = (await app.threads.fork(thread)).id
        starter = Starter(ME, OneScript(script(number, dice)), app.tools, mode=Mode.ALLOW)
        started = await app.turns.start(thread, (TextPart(f"turn {number}"),), starter)
        ended = await app.turns.wait(started.turn.id, 60)
        if ended.state is not TurnState.DONE:
            raise AssertionError(f"turn {number} ended as {ended.state}: {ended.error}")
        gc.collect()
        print(json.dumps({"turn": number, "at_s": time.monotonic() - begun, **size()}), flush=True)
    for task in reading:
        task.cancel()
    for outcome in await asyncio.gather(*reading, return_exceptions=True):
        if not isinstance(outcome, asyncio.CancelledError):
            raise AssertionError(f"a reader ended by itself: {outcome!r}")
    last = (await app.journal.marks()).last
    for reader in readers:
        if reader.cursor < last:
            await asyncio.wait_for(reader.connect(-1, until=last), 60)
    seen = {reader.seen for reader in readers}
    said = {"readers_saw": sorted(seen), "connections": sum(r.connections for r in readers)}
    print(json.dumps({"payload": await payload(app), **said}), flush=True)


async def main(home: Path, turns: int, pace: float) -> None:
    work = home.parent / "work"
    work.mkdir()
    (work / "notes.txt").write_text("\n".join(prose(12, random.Random(n)) for n in range(60)) + "\n")
    async with open_app(str(home), "soak", starts_turns=True) as app:
        await fill_the_thread_pool()
        tidying = asyncio.create_task(app.housekeeping.run())
        await soak(app, work, turns, pace)
        tidying.cancel()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
