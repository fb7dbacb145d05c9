"""Growth: memory over a thousand turns, and what a thread costs on disk."""

from __future__ import annotations

import asyncio
import gc
import random
import subprocess
import sys
from pathlib import Path

import msgspec

from bench.measure import Row, fresh_home, rss_mib
from quintet.app import App, open_app
from quintet.domain.item import TextPart
from quintet.domain.model import ModelInfo
from quintet.domain.principal import local
from quintet.domain.thread import ThreadQuery, ThreadSettings
from quintet.domain.turn import Mode
from quintet.engine.starter import Starter
from quintet.providers.scripted import ScriptedProvider


class Fixed:
    """A models table with one scripted model."""

    def __init__(self, script: str) -> None:
        self._provider = ScriptedProvider(script)

    def resolve(self, reference: str) -> tuple[str, ScriptedProvider]:
        return "bench/scripted", self._provider

    def info(self, reference: str) -> ModelInfo:
        return ModelInfo(reference)


def prose(count: int, seed: int) -> list[str]:
    """Words as people use them: few often, many rarely, from a vocabulary of three thousand."""
    chance = random.Random(seed)
    return [_word(min(int(chance.paretovariate(0.7)), 3000)) + " " for _ in range(count)]


def _word(number: int) -> str:
    return "".join(("ba", "ko", "mi", "tu", "re", "sa", "no", "li")[number >> shift & 7] for shift in (0, 3, 6))


async def one_turn(app: App, thread: str, starter: Starter) -> None:
    started = await app.turns.start(thread, (TextPart("go on"),), starter)
    await app.turns.wait(started.turn.id)


async def memory(home: Path) -> tuple[float, float]:
    """RSS in MiB after 100 and after 1,000 turns, ten a thread."""
    script = "repeat: 50 text: word \ntool_call: list {}\n---\ntext: done\n"
    marks = {}
    async with open_app(str(home), "bench") as app:
        for number in range(1, 1001):
            if number % 10 == 1:
                thread = await app.threads.create(ThreadSettings(cwd=str(home)))
            starter = Starter(local("bench"), Fixed(script), app.tools, mode=Mode.ALLOW)
            await one_turn(app, thread.id, starter)
            if number in (100, 1000):
                gc.collect()
                marks[number] = rss_mib()
    return marks[100], marks[1000]


async def unpruned(home: Path) -> float:
    """Bytes on disk a byte of payload while every one-word delta is still kept."""
    async with open_app(str(home), "bench") as app:
        for number in range(40):
            thread = await app.threads.create(ThreadSettings(cwd=str(home)))
            said = "\n".join(f"text: {word}" for word in prose(400, number))
            await one_turn(app, thread.id, Starter(local("bench"), Fixed(said), (), mode=Mode.ALLOW))
        payload = await _payload(app)
    return _size(home) / payload  # closing has folded the log in


async def pruned(home: Path, work: Path) -> tuple[float, float]:
    """Bytes on disk a byte of payload after pruning, with the full-text index and without it.

    Forty threads of five turns: a question, a look at a file, an answer of four hundred words.
    """
    (work / "notes.txt").write_text("\n".join("".join(prose(12, n)) for n in range(80)))
    async with open_app(str(home), "bench") as app:
        for number in range(40):
            thread = await app.threads.create(ThreadSettings(cwd=str(work)))
            for turn in range(5):
                said = "\n".join(f"text: {word}" for word in prose(400, number * 10 + turn))
                script = f'tool_call: read {{"path": "notes.txt"}}\n---\n{said}\n---\n' * (turn + 1)
                await one_turn(app, thread.id, Starter(local("bench"), Fixed(script), app.tools, mode=Mode.ALLOW))
        payload = await _payload(app)
        await app.journal.prune(now_ms=app.clock.now_ms() + 10, grace_s=0.0)
    after = _size(home)
    return after / payload, _without_index(home) / payload


async def _payload(app: App) -> int:
    size = 0
    for thread in await app.threads.page(ThreadQuery(limit=1000)):
        size += sum(len(msgspec.json.encode(i)) for i in await app.threads.items(thread.id))
    return size


def _size(home: Path) -> int:
    return sum(f.stat().st_size for f in home.glob("quintet.db*"))


def _without_index(home: Path) -> int:
    import apsw

    connection = apsw.Connection(str(home / "quintet.db"))
    connection.execute("DROP TABLE words")
    connection.execute("VACUUM").fetchall()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    return _size(home)


def run() -> list[Row]:
    with fresh_home() as home:
        # In its own process: the benches before this one have left their own memory behind.
        done = subprocess.run(
            [sys.executable, "-m", "bench.growing", str(home)], check=True, capture_output=True, text=True
        )
        early, late = map(float, done.stdout.split())
    with fresh_home() as home:
        before = asyncio.run(unpruned(home))
    with fresh_home() as home, fresh_home() as work:
        after, bare = asyncio.run(pruned(home, work))
    return [
        Row(
            "memory after 1,000 turns, share of that after 100",
            late / early * 100,
            "%",
            110,
            f"{early:.0f} and {late:.0f} MiB",
        ),
        Row("disk before pruning, one-word deltas, times payload", before, "x", 30),
        Row("disk after pruning, with the full-text index, times payload", after, "x", 2),
        Row("disk after pruning, without the index, times payload", bare, "x", 1.5),
    ]


if __name__ == "__main__":
    print(*asyncio.run(memory(Path(sys.argv[1]))))
