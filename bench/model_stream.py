"""A model behind real HTTP, its server in a process of its own: from the socket to a subscriber in this process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.fakes.requests import request_of

from bench.measure import Row, fresh_home
from quintet.app import App, open_app
from quintet.domain.event import Event, TextDelta, TurnFinished
from quintet.domain.item import TextPart, user_text
from quintet.domain.model import TextChunk
from quintet.domain.principal import local
from quintet.domain.thread import ThreadSettings
from quintet.domain.turn import Mode
from quintet.engine.starter import Starter
from quintet.providers.settings import ProviderKind, ProviderSettings
from quintet.providers.table import ModelTable

DELTAS = 20_000
ROUNDS = 5
SCRIPT = f"repeat: {DELTAS} text: word \n"
ROOT = Path(__file__).parents[1]


@contextlib.contextmanager
def model_server(home: Path, *, packed: bool) -> Iterator[str]:
    (home / "script").write_text(SCRIPT)
    command = [sys.executable, "-m", "tests.fakes.model_server", "--script", str(home / "script")]
    command += ["--packed"] if packed else []
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
        process.terminate()


async def through_engine(home: Path, url: str, kind: ProviderKind) -> tuple[float, float]:
    """(CPU microseconds a delta, deltas a second), the best of some turns; the first also opens the client."""
    table = ModelTable({"far": ProviderSettings(kind, base_url=url)})
    figures = []
    async with open_app(str(home / "own"), "bench") as app:
        for _ in range(ROUNDS + 1):
            thread = await app.threads.create(ThreadSettings(cwd=str(home)))
            starter = Starter(local("bench"), table, (), mode=Mode.ALLOW, model="far/model")
            reading = asyncio.create_task(_read(app, app.feed.follow(root=thread.root)))
            began, cpu = time.perf_counter(), time.process_time()
            await app.turns.start(thread.id, (TextPart("go"),), starter)
            count = await reading
            figures.append(((time.process_time() - cpu) * 1e6 / count, count / (time.perf_counter() - began)))
            assert count == DELTAS
    await table.close()
    warm = figures[1:]
    return min(cpu for cpu, _ in warm), max(rate for _, rate in warm)


async def _read(app: App, subscription: object) -> int:
    count = 0
    async for entry in subscription:  # type: ignore[attr-defined]
        assert isinstance(entry, Event)
        if isinstance(entry.payload, TextDelta):
            count += 1
        elif isinstance(entry.payload, TurnFinished):
            assert entry.payload.error is None, entry.payload.error
            return count
    return count


async def provider_alone(url: str, kind: ProviderKind) -> float:
    """CPU microseconds a delta without the engine behind it."""
    table = ModelTable({"far": ProviderSettings(kind, base_url=url)})
    _, provider = table.resolve("far/model")
    figures = []
    for _ in range(ROUNDS + 1):
        cpu, count = time.process_time(), 0
        async for chunk in provider.stream(request_of([user_text("go")], tools=("read",))):
            count += type(chunk) is TextChunk
        figures.append((time.process_time() - cpu) * 1e6 / count)
    await table.close()
    return min(figures[1:])


def run() -> list[Row]:
    rows = []
    words = {True: "many events in an HTTP chunk", False: "each event an HTTP chunk"}
    for packed in (True, False):
        for kind in (ProviderKind.OPENAI_CHAT, ProviderKind.OPENAI_RESPONSES, ProviderKind.ANTHROPIC):
            with fresh_home() as home, model_server(home, packed=packed) as url:
                alone = asyncio.run(provider_alone(url, kind))
                cpu, rate = asyncio.run(through_engine(home, url, kind))
            beside = f"the provider alone {alone:.1f}"
            name = f"{kind}, {words[packed]}"
            rows.append(Row(f"CPU from socket to subscriber, per delta; {name}", cpu, "us", 30, beside))
            rows.append(Row(f"deltas a second in one turn; {name}", rate, "/s", 35_000, at_least=True))
    return rows
