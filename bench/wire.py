"""Kimi Wire beside the server it stands in for, in one run: the start to the first reply, the memory then, and one turn
of many small deltas. Both are given the same configuration, the same script and the same reader."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.kimi import Published, Reference, reference
from bench.measure import Row, fresh_home, median, rss_mib

STARTS = 7
TURNS = 3
DELTAS = 20_000
LIMIT_S = 60.0
OURS = str(Path(sys.executable).with_name("quintet-kimi"))


class Figures(NamedTuple):
    start_s: float
    memory_mib: float
    events_per_s: float


class Server:
    """One started server, on its pipes."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self.child = child

    def call(self, method: str, **params: object) -> int:
        """Lines until the reply, which has to be a result."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        message = {"jsonrpc": "2.0", "id": "the-call", "method": method, "params": params}
        self.child.stdin.write(json.dumps(message).encode() + b"\n")
        self.child.stdin.flush()
        for count, line in enumerate(self.child.stdout):
            if b'"the-call"' in line:
                assert "result" in json.loads(line), line
                return count
        raise AssertionError(f"the server ended with {self.child.wait(LIMIT_S)} and did not answer {method}")


def configure(home: Path) -> Path:
    """Kimi's own configuration with its scripted model: so many words, one delta each."""
    home.mkdir(exist_ok=True)
    (home / "scripts.json").write_text(json.dumps(["text: word \n" * DELTAS] * TURNS))
    scripts = {"KIMI_SCRIPTED_ECHO_SCRIPTS": str(home / "scripts.json")}
    config = {
        "default_model": "words",
        "models": {"words": {"provider": "echo", "model": "scripted_echo", "max_context_size": 1_000_000}},
        "providers": {"echo": {"type": "_scripted_echo", "base_url": "", "api_key": "", "env": scripts}},
    }
    (home / "config.json").write_text(json.dumps(config))
    return home


@contextlib.contextmanager
def serving(program: str, home: Path) -> Iterator[tuple[Server, float]]:
    """(the server, seconds from its start to its reply)."""
    work = home / "work"
    work.mkdir(exist_ok=True)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("QUINTET_", "KIMI_"))}
    own = {"HOME": str(home), "KIMI_SHARE_DIR": str(home / "share"), "QUINTET_HOME": str(home / "quintet")}
    began = time.perf_counter()
    with subprocess.Popen(
        [program, "--wire", "--config-file", str(home / "config.json"), "--work-dir", str(work)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it takes leave there
        env=kept | own,
    ) as child:
        try:
            server = Server(child)
            server.call("initialize", protocol_version="1.10", client={"name": "bench", "version": "1"})
            yield server, time.perf_counter() - began
            assert child.stdin is not None
            child.stdin.close()
            child.wait(LIMIT_S)
        finally:
            if child.poll() is None:
                child.kill()


def start(program: str, home: Path) -> tuple[float, float]:
    with serving(program, home) as (server, took):
        return took, rss_mib(str(server.child.pid))


def rates(pairs: list[tuple[str, Path]]) -> list[list[float]]:
    """Events a second of each one's turns, played by turns."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(serving(program, place))[0] for program, place in pairs]
        return [list(each) for each in zip(*([rate(server) for server in servers] for _ in range(TURNS)), strict=True)]


def rate(server: Server) -> float:
    began = time.perf_counter()
    events = server.call("prompt", user_input="go")
    took = time.perf_counter() - began
    assert events > DELTAS, f"only {events} events for {DELTAS} deltas"
    return events / took


def measured(programs: list[str], home: Path) -> list[Figures]:
    """Taken in turns, so that a slow moment of the machine hits all."""
    homes = [configure(home / f"of-{number}") for number in range(len(programs))]
    pairs = list(zip(programs, homes, strict=True))
    starts: list[list[tuple[float, float]]] = [[] for _ in pairs]
    for number in range(STARTS + 1):
        for taken, (program, place) in zip(starts, pairs, strict=True):
            one = start(program, place)
            if number:  # the first makes its directories
                taken.append(one)
    return [
        Figures(median([took for took, _ in taken]), max(memory for _, memory in taken), median(each))
        for taken, each in zip(starts, rates(pairs), strict=True)
    ]


def run() -> list[Row]:
    found = reference()
    with fresh_home() as home:
        if isinstance(found, Reference):
            ours, theirs = measured([OURS, found.program], home)
            whose = "kimi-cli 1.49.0"
        else:
            (ours,) = measured([OURS], home)
            theirs = Figures(Published.start_s, Published.memory_mib, Published.events_per_s)
            whose = f"not beside kimi-cli ({found}); as it was once measured elsewhere"
    start_words = f"{ours.start_s * 1000:.0f} ms; {whose} {theirs.start_s * 1000:.0f} ms"
    memory_words = f"{ours.memory_mib:.0f} MiB; {whose} {theirs.memory_mib:.0f} MiB"
    rate_words = f"{ours.events_per_s:.0f}/s; {whose} {theirs.events_per_s:.0f}/s"
    ratio = ours.events_per_s / theirs.events_per_s
    return [
        Row("Wire: start to the reply to initialize", ours.start_s / theirs.start_s, "x", 0.1, start_words),
        Row("Wire: memory then", ours.memory_mib / theirs.memory_mib, "x", 0.5, memory_words),
        Row("Wire: events a second in a turn of small deltas", ratio, "x", 4, rate_words, at_least=True),
    ]
