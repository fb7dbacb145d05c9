"""R5: many threads, turns and subscribers at once, on one real server; what is measured is what its clients see."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import re
import selectors
import socket
import time
from bisect import bisect
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from bench.measure import percentile, rss_mib

from tests.faults import tiers
from tests.faults.processes import figures, quintet_running, wait_until, write_home
from tests.faults.test_http import Remote

pytestmark = pytest.mark.fault
THREADS, RUNNING, SUBSCRIBERS, IDLE = {
    "test": (100, 20, 200, 0),
    "pr": (100, 20, 200, 0),
    "long": (1_000, 50, 200, 800),
}[tiers.TIER]
SECONDS = 2
STAMP = re.compile(rb'"kind":"text.delta".*?"timestamp":(\d+)')


def queued_s(pid: int) -> float:
    """How long a process's threads have stood in line for processors that others had."""
    return sum(int(p.read_text().split()[1]) for p in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


class Line:
    """How long both sides stood in line since a moment: what others on the machine took is not what is measured."""

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self._times: list[float] = []
        self._stood: list[float] = []
        self.look()

    def look(self) -> None:
        self._times.append(time.time())
        self._stood.append(sum(map(queued_s, self._pids)))

    def since(self, moment: float) -> float:
        return self._stood[-1] - self._stood[max(0, bisect(self._times, moment) - 1)]


class Readers:
    """Many streams, read by one loop; the delay of every delta against the time the journal gave it."""

    def __init__(self, line: Line) -> None:
        self.delays: list[float] = []
        self._line = line
        self._selector = selectors.DefaultSelector()
        self._rest: dict[socket.socket, bytes] = {}

    def add(self, client: Remote, path: str) -> None:
        peer = socket.create_connection(("127.0.0.1", client.port), timeout=30)
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nAuthorization: Bearer {client.token}\r\n\r\n"
        peer.sendall(head.encode())
        answer = b""
        while b'"connected"' not in answer:
            answer += peer.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200"), answer
        self._rest[peer] = b""
        self._selector.register(peer, selectors.EVENT_READ)

    def read(self, deltas: int, within_s: float) -> None:
        """Until so many deltas have come."""
        deadline = time.monotonic() + within_s
        while len(self.delays) < deltas:
            assert time.monotonic() < deadline, f"{len(self.delays)} of {deltas} came"
            ready = self._selector.select(0.1)
            self._line.look()
            for key, _ in ready:
                peer: socket.socket = key.fileobj  # type: ignore[assignment]
                data = peer.recv(1 << 18)
                assert data, "a stream was cut off"
                now = time.time()
                *whole, self._rest[peer] = (self._rest[peer] + data).split(b"\n\n")
                for frame in whole:
                    if found := STAMP.search(frame):
                        said = int(found[1]) / 1000
                        self.delays.append(max(0.0, now - said - self._line.since(said)))

    def close(self) -> None:
        for peer in self._rest:
            peer.close()
        self._selector.close()


def ask_again_and_again(port: int, server: int, stop: Event, told: Queue[list[float]]) -> None:
    """How long the loop lets a small question wait, without the time that others on the machine took from either side.
    A process of its own: the readers keep this one busy."""
    me = os.getpid()
    waits: list[float] = []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    while not stop.wait(0.02):
        begun, queued = time.monotonic(), queued_s(server) + queued_s(me)
        connection.request("GET", "/health")
        assert connection.getresponse().read()
        took, stood = time.monotonic() - begun, queued_s(server) + queued_s(me) - queued
        waits.append(max(0.0, took - stood))
    connection.close()
    told.put(waits)


@pytest.mark.req("reliability:R5")
@pytest.mark.timeout(tiers.limit_s(120))
def test_many_threads_turns_and_subscribers_are_held_at_once(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", f"scope: turn\nrepeat: {SECONDS * 10} every 0.1 text: word\n")
    ready = tmp_path / "ready"
    words = ("--knp-port", "0", "--ready-file", str(ready), "--project", str(tmp_path))
    context = multiprocessing.get_context("spawn")
    stop, told = context.Event(), context.Queue()
    with quintet_running("serve", *words, home=home, cwd=tmp_path) as process:
        wait_until(ready.exists, 30)
        client = Remote(json.loads(ready.read_text()))
        readers = Readers(Line(process.pid, os.getpid()))
        tids = [client.ask("POST", "/threads", {}).json["tid"] for _ in range(THREADS)]
        for n in range(SUBSCRIBERS):
            readers.add(client, f"/events?tid={tids[n % RUNNING]}")
        for _ in range(IDLE):
            readers.add(client, f"/events?tid={tids[-1]}")
        asking = context.Process(target=ask_again_and_again, args=(client.port, process.pid, stop, told), daemon=True)
        asking.start()
        body = {"input": [{"kind": "text", "text": "go"}]}
        with ThreadPoolExecutor(1) as pool:  # read from the first moment on
            started = pool.map(lambda tid: client.ask("POST", f"/threads/{tid}/runs?detach=true", body), tids[:RUNNING])
            readers.read(SUBSCRIBERS * SECONDS * 10, 60)
        assert [answer.status for answer in started] == [202] * RUNNING
        memory = rss_mib(str(process.pid))
        stop.set()
        waits = told.get(timeout=30)
        asking.join(30)
        readers.close()
    figures("a delta to one of many", readers.delays)
    figures("a question meanwhile", waits)
    print(f"memory: {memory:.0f} MiB")
    assert percentile(readers.delays, 0.99) < 0.5
    assert percentile(waits, 0.99) < 0.1
    assert memory < 300
