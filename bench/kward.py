"""Kward RPC: a process answers as soon as it is started, and one that is started only for the list has it at once."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.measure import Row, fresh_home, median
from bench.starting import bare_s

ROUNDS = 15
SESSIONS = 1_000
MESSAGES = 4


def block(id: int, method: str, **params: Any) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Child:
    """One process, with the time it was started."""

    def __init__(self, work: Path, environment: Mapping[str, str]) -> None:
        self.began = time.perf_counter()
        program = str(Path(sys.executable).with_name("quintet-kward"))
        self.popen = subprocess.Popen(
            [program, "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=work, env=environment
        )

    def ask(self, data: bytes) -> Any:
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.popen.stdin.write(data)
        self.popen.stdin.flush()
        size = int(self.popen.stdout.readline().split()[1])
        self.popen.stdout.readline()
        return json.loads(self.popen.stdout.read(size))["result"]

    def since_start_s(self) -> float:
        return time.perf_counter() - self.began

    def leave_s(self) -> float:
        """How long it takes to be gone once its input has ended."""
        began = time.perf_counter()
        assert self.popen.stdin is not None
        self.popen.stdin.close()
        assert self.popen.wait(10) == 0
        assert self.popen.stdout is not None
        self.popen.stdout.close()
        return time.perf_counter() - began


async def fill(home: Path, work: Path, sessions: Path) -> None:
    """Sessions with a few messages each, and their files."""
    from quintet.app import open_app
    from quintet.domain.ids import new_id
    from quintet.domain.item import AssistantMessage, Item, user_text
    from quintet.domain.thread import ThreadSettings
    from quintet.protocols.kward.places import new_place

    async with open_app(str(home), "kward") as app:
        for number in range(SESSIONS):
            bodies = [user_text(f"question {number}"), AssistantMessage(f"answer {number}")] * (MESSAGES // 2)
            items = [Item(new_id("itm"), "", "", n, 0, body) for n, body in enumerate(bodies, 1)]
            place = new_place(str(sessions), str(work), app.clock.now_ms(), f"{number:08d}-0000-4000-8000-000000000000")
            thread = await app.threads.create(ThreadSettings(str(work)), items=items, handle=place.handle())
            await app.feed.mirror(thread.id)


def run() -> list[Row]:
    bare, first, listed, left = [], [], [], []
    with fresh_home() as home:
        work = Path(os.path.realpath(home)) / "work"
        work.mkdir()
        kward = home / "kward"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("QUINTET_")}
        environment |= {"QUINTET_HOME": str(home / "own"), "KWARD_CONFIG_PATH": str(kward / "config.json")}
        asyncio.run(fill(home / "own", work, kward))
        for round in range(ROUNDS + 1):
            bare.append(bare_s())
            child = Child(work, environment)
            child.ask(block(1, "initialize"))
            first.append(child.since_start_s())
            left.append(child.leave_s())
            child = Child(work, environment)
            child.ask(block(1, "initialize"))
            rows = child.ask(block(2, "sessions/list"))["sessions"]
            listed.append(child.since_start_s())
            child.leave_s()
            assert len(rows) == 20
            assert rows[0]["messageCount"] == MESSAGES
            if not round:  # has made the byte code
                bare, first, listed, left = [], [], [], []
    base = median(bare)
    beside = f"bare Python {base * 1000:.0f} ms"
    return [
        Row("kward: first reply, times a bare Python", median(first) / base, "x", 10, beside),
        Row(f"kward: a list of {SESSIONS:,} sessions, since the process was started", median(listed) * 1000, "ms", 300),
        Row("kward: gone after the end of its input", median(left) * 1000, "ms", 2_000),
    ]
