"""Fan-out: one event to a thousand streams beside the barest loop that does so, and what a thousand idle ones weigh."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import resource
import selectors
import socket
import subprocess
import sys
from pathlib import Path

from bench.measure import Row, fresh_home, median

STREAMS = 1_000
EVENTS = 40
ROUNDS = 3


def read(port: int, token: str, count: int) -> None:
    """So many clients that read whatever comes and do nothing with it; a process of its own."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    selector = selectors.DefaultSelector()
    head = (
        f"GET /events?kinds=thread.updated HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
    for _ in range(count):
        peer = socket.create_connection(("127.0.0.1", port), timeout=60)
        peer.sendall(head.encode())
        selector.register(peer, selectors.EVENT_READ)
    buffer = bytearray(65536)
    while selector.get_map():
        for key, _ in selector.select():
            peer = key.fileobj  # type: ignore[assignment]
            with contextlib.suppress(ConnectionResetError):
                if peer.recv_into(buffer):
                    continue
            selector.unregister(peer)


def once(kind: str, home: Path) -> tuple[float, float]:
    """(deliveries per second, MiB of the idle streams)"""
    command = [sys.executable, "-m", "bench.fanout_server", kind, str(home), str(STREAMS), str(EVENTS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        where = json.loads(server.stdout.readline())
        reader = multiprocessing.get_context("spawn").Process(
            target=read, args=(where["port"], where["token"], STREAMS), daemon=True
        )
        reader.start()
        try:
            idle = json.loads(server.stdout.readline())["idle_mib"]
            per_s = json.loads(server.stdout.readline())["per_s"]
        finally:
            reader.kill()
            reader.join()
            server.terminate()
            server.wait(20)
    return per_s, idle


def run() -> list[Row]:
    ours: list[tuple[float, float]] = []
    bare: list[float] = []
    for _ in range(ROUNDS):
        with fresh_home() as home:
            ours.append(once("ours", home / "home"))
        bare.append(once("bare", home)[0])
    mine, theirs = median([per_s for per_s, _ in ours]), median(bare)
    beside = f"{mine:,.0f} deliveries/s; the bare loop {theirs:,.0f}"
    return [
        Row(
            f"one event to {STREAMS:,} streams, of a bare uvicorn loop", mine / theirs, "x", 0.6, beside, at_least=True
        ),
        Row(f"{STREAMS:,} idle streams", max(idle for _, idle in ours), "MiB", 30, "over the server alone"),
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
