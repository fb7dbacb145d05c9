"""Starting: the command line's version, and the first reply of a small stdio server that stands on the whole engine."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from bench.measure import Row, fresh_home, median

ROUNDS = 15
REQUEST = b'{"jsonrpc":"2.0","id":"1","method":"initialize"}\n'


def bare_s() -> float:
    return _timed([sys.executable, "-c", "pass"])


def version_s() -> float:
    return _timed([str(Path(sys.executable).with_name("quintet")), "--version"])


def first_reply_s(home: Path) -> float:
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "bench.stdio_loop", str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(REQUEST)
        child.stdin.flush()
        line = child.stdout.readline()
        took = time.perf_counter() - began
        child.stdin.close()
        child.stdout.read()
        assert child.wait(10) == 0
    assert b'"threads":0' in line, line
    return took


def _timed(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def run() -> list[Row]:
    bare, version, reply = [], [], []
    with fresh_home() as home:
        first_reply_s(home)  # makes the home, and the byte code
        for _ in range(ROUNDS):  # alternating, so that a slow moment of the machine hits all three
            bare.append(bare_s())
            version.append(version_s())
            reply.append(first_reply_s(home))
    base = median(bare)
    beside = f"bare Python {base * 1000:.0f} ms"
    return [
        Row("quintet --version, times a bare Python", median(version) / base, "x", 3, beside),
        Row("first reply on stdio from the whole engine, times a bare Python", median(reply) / base, "x", 10, beside),
    ]
