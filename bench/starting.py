"""Starting: the command line's version, the first reply of Kimi Wire on stdio, and the server, with the memory it has
while nobody asks anything of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from bench.measure import Row, fresh_home, median, rss_mib

ROUNDS = 15
REQUEST = b'{"jsonrpc":"2.0","id":"1","method":"initialize","params":{"protocol_version":"1.1"}}\n'


def bare_s() -> float:
    return _timed([sys.executable, "-c", "pass"])


def version_s() -> float:
    return _timed([str(Path(sys.executable).with_name("quintet")), "--version"])


def first_reply_s(home: Path) -> float:
    program = str(Path(sys.executable).with_name("quintet"))
    command = [program, "wire", "--work-dir", str(home), "--home", str(home)]
    environment = os.environ | {"KIMI_SHARE_DIR": str(home / "kimi")}
    began = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(REQUEST)
        child.stdin.flush()
        line = child.stdout.readline()
        took = time.perf_counter() - began
        child.stdin.close()
        child.stdout.read()
        assert child.wait(10) == 0
    assert b'"protocol_version"' in line, line
    return took


class Started(NamedTuple):
    """One start of the server: until its ready file was there, how much of that its main thread stood in line for a
    processor that others had, and its memory then."""

    took_s: float
    queued_s: float
    memory_mib: float


def server_ready(home: Path) -> Started:
    ready = home / f"ready-{time.monotonic_ns()}"
    program = str(Path(sys.executable).with_name("quintet"))
    command = [program, "serve", "--knp-port", "0", "--ready-file", str(ready), "--home", str(home)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("QUINTET_")}
    began = time.time()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as child:
        try:
            while not ready.exists():
                assert child.poll() is None, f"the server ended with {child.returncode}"
                assert time.time() - began < 60, "the server did not get ready"
                time.sleep(0.001)
            queued = _queued_s(child.pid)
            memory = rss_mib(str(child.pid))
            assert json.loads(ready.read_text())["pid"] == child.pid
            took = ready.stat().st_mtime - began
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait(10)
    assert child.returncode == 0
    ready.unlink()
    return Started(took, queued, memory)


def _queued_s(pid: int) -> float:
    """Nothing where the kernel does not count it."""
    counted = Path(f"/proc/{pid}/schedstat")
    return int(counted.read_text().split()[1]) / 1e9 if counted.exists() else 0.0


def _timed(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def run() -> list[Row]:
    bare, version, reply, servers = [], [], [], []
    with fresh_home() as home:
        first_reply_s(home)  # makes the home, and the byte code
        for _ in range(ROUNDS):  # alternating, so that a slow moment of the machine hits all
            bare.append(bare_s())
            version.append(version_s())
            reply.append(first_reply_s(home))
            servers.append(server_ready(home))
    base = median(bare)
    beside = f"bare Python {base * 1000:.0f} ms"
    return [
        Row("quintet --version, times a bare Python", median(version) / base, "x", 3, beside),
        Row("first reply of Kimi Wire on stdio, times a bare Python", median(reply) / base, "x", 10, beside),
        Row("server ready, median", median([s.took_s for s in servers]) * 1000, "ms", 500, beside),
        Row("memory of an idle server, most", max(s.memory_mib for s in servers), "MiB", 70),
    ]
