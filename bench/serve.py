"""The server over HTTP, side by side with OpenCode's own on the same model in one run."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import opencode
from bench.http_load import Target
from bench.measure import Row, fresh_home, median, percentile, rss_mib
from bench.stamping_model import BURST, PACED
from quintet.rpc.http.credential import Credential, Shown

STARTS = 3
ROUNDS = 3
MANY = 1_000
SETTLED_S = 3.0
STAMP = re.compile(r"@(\d+\.\d+) ")
TITLES = {"title": "a thread"}
_QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One of the two, running."""

    health = all = ""  # paths

    def __init__(self, home: Path, work: Path) -> None:
        self.port = free_port()
        self.target = Target(self.port)
        began = time.perf_counter()
        self._child = subprocess.Popen(
            self.command(home),
            cwd=work,
            env=self.environment(home),
            **_QUIET,
        )
        self.ready_s = self.target.until_ready(self.health, began)
        self.opened(home)

    @property
    def memory_mib(self) -> float:
        return rss_mib(str(self._child.pid))

    def stop(self) -> None:
        self._child.terminate()
        try:
            self._child.wait(10)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait(10)

    def command(self, home: Path) -> list[str]:
        raise NotImplementedError

    def environment(self, home: Path) -> dict[str, str]:
        raise NotImplementedError

    def opened(self, home: Path) -> None:
        pass

    def new(self) -> str:
        raise NotImplementedError

    def path_of(self, thread: str) -> str:
        raise NotImplementedError

    def prompt(self, thread: str, text: str) -> None:
        raise NotImplementedError

    def pieces(self, thread: str) -> Iterator[tuple[float, str]]:
        """(arrival, text) of every piece of the answer as it comes, until its end; first ("", 0) once watching."""
        raise NotImplementedError

    def fill(self, thread: str, count: int) -> None:
        raise NotImplementedError

    def items(self, thread: str, count: int) -> int:
        raise NotImplementedError

    def list_all(self) -> int:
        raise NotImplementedError


class Ours(Server):
    home: Path
    health, all = "/health", "/threads?limit=50"

    def command(self, home: Path) -> list[str]:
        self.home = home
        program = str(Path(sys.executable).with_name("quintet"))
        return [program, "serve", "--knp-port", str(self.port), "--home", str(home)]

    def environment(self, home: Path) -> dict[str, str]:
        return {k: v for k, v in os.environ.items() if not k.startswith("QUINTET_")}

    def opened(self, home: Path) -> None:
        facts = json.loads((home / "server.json").read_text())
        self.target.headers = {"Authorization": f"Bearer {facts['token']}"}

    def new(self) -> str:
        return str(self.target.ask("POST", "/threads", TITLES)["tid"])

    def path_of(self, thread: str) -> str:
        return f"/threads/{thread}"

    def prompt(self, thread: str, text: str) -> None:
        body = {"input": [{"kind": "text", "text": text}]}
        self.target.ask("POST", f"/threads/{thread}/runs?detach=true", body)

    def pieces(self, thread: str) -> Iterator[tuple[float, str]]:
        for at, frame in self.target.stream(f"/events?tid={thread}"):
            if frame["kind"] == "connected":
                yield at, ""
            elif frame["kind"] == "text.delta":
                yield at, frame["data"]["delta"]
            elif frame["kind"] == "run.finished":
                assert frame["data"]["status"] == "completed", frame
                return

    def fill(self, thread: str, count: int) -> None:
        for _ in range(count // 2):  # a word, and its answer
            self.target.ask("POST", f"/threads/{thread}/runs", {"input": [{"kind": "text", "text": "hello"}]})

    def items(self, thread: str, count: int) -> int:
        return len(self.target.ask("GET", f"/threads/{thread}/events?limit={count}")["events"])

    def list_all(self) -> int:
        found, cursor = 0, ""
        while True:
            page = self.target.ask("GET", f"/threads?limit=200{cursor}")
            found += len(page["threads"])
            if not page["next"]:
                return found
            cursor = f"&cursor={page['next']}"


class Theirs(Server):
    health, all = "/global/health", "/session?limit=50"
    program = ""

    def command(self, home: Path) -> list[str]:
        return [self.program, "serve", "--port", str(self.port)]

    def environment(self, home: Path) -> dict[str, str]:
        return opencode.environment(home)

    def new(self) -> str:
        return str(self.target.ask("POST", "/session", TITLES)["id"])

    def path_of(self, thread: str) -> str:
        return f"/session/{thread}"

    def prompt(self, thread: str, text: str) -> None:
        self.target.ask("POST", f"/session/{thread}/prompt_async", {"parts": [{"type": "text", "text": text}]})

    def pieces(self, thread: str) -> Iterator[tuple[float, str]]:
        begun = False
        for at, frame in self.target.stream("/event"):
            kind, told = frame.get("type"), frame.get("properties", {})
            if kind == "server.connected":
                yield at, ""
            elif kind == "message.part.delta" and told.get("field") == "text":
                begun = True
                yield at, told["delta"]
            elif kind == "session.idle" and begun:
                return

    def fill(self, thread: str, count: int) -> None:
        body = {"noReply": True, "parts": [{"type": "text", "text": "hello"}]}
        for _ in range(count):
            self.target.ask("POST", f"/session/{thread}/message", body)

    def items(self, thread: str, count: int) -> int:
        return len(self.target.ask("GET", f"/session/{thread}/message?limit={count}"))

    def list_all(self) -> int:
        return len(self.target.ask("GET", f"/session?limit={2 * MANY}"))


@contextmanager
def model() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.stamping_model"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        yield str(json.loads(child.stdout.readline())["url"])
        child.terminate()


@contextmanager
def started(kind: type[Server], place: Path, url: str) -> Iterator[Server]:
    """A server with a home and a project of its own."""
    home, work = place / "home", place / "work"
    home.mkdir(parents=True, exist_ok=True)
    work.mkdir(exist_ok=True)
    if kind is Ours:
        home.chmod(0o700)
        models = '[models."fake/stamping"]\ncontext_window = 10000000\n'
        provider = f'[providers.fake]\nkind = "openai-chat"\nbase_url = "{url}"\napi_key = "none"\n'
        (home / "config.toml").write_text(f'default_model = "fake/stamping"\n{provider}{models}')
    else:
        opencode.configure(work, url)
    server = kind(home, work)
    try:
        yield server
    finally:
        server.stop()


def turn(server: Server, text: str) -> tuple[float, float, list[float]]:
    """(first, last, delays): seconds from the prompt to the first and the last piece, and every piece's own delay."""
    thread = server.new()
    pieces = server.pieces(thread)
    next(pieces)
    began = time.time()
    threading.Thread(target=server.prompt, args=(thread, text), daemon=True).start()
    arrivals, delays, rest = [], [], ""
    for at, words in pieces:
        rest += words
        for found in STAMP.finditer(rest):
            arrivals.append(at)
            delays.append(at - float(found[1]))
        rest = rest[-40:] if not STAMP.search(rest) else STAMP.sub("", rest)
    return arrivals[0] - began, arrivals[-1] - began, delays


def foreign_s(server: Ours, work: Path) -> list[float]:
    """How late the stream tells what another process does on the same home."""
    delays: list[float] = []
    program = str(Path(sys.executable).with_name("quintet"))
    frames = server.target.stream("/events")
    next(frames)
    for _ in range(ROUNDS):
        words = [program, "run", "-m", "offline/offline", "echo hello", "--home", str(server.home)]
        child = subprocess.Popen(words, cwd=work, env=server.environment(server.home), **_QUIET)
        for at, frame in frames:
            delays.append(at - frame["timestamp"] / 1000)
            if frame["kind"] == "run.finished":
                break
        child.wait(30)
    return delays


class Figures(NamedTuple):
    ready_s: float
    memory_mib: float
    health: float
    listing: float
    reading: float
    last_s: float
    delay_p95_s: float
    items_s: float
    list_s: float
    foreign_p95_s: float = 0.0  # of ours


def measure(kind: type[Server], url: str) -> Figures:
    ready: list[float] = []
    with fresh_home() as place:
        for n in range(STARTS):
            with started(kind, place / "starts", url) as server:
                ready.append(server.ready_s)
                if n == STARTS - 1:
                    time.sleep(SETTLED_S)
                    memory = server.memory_mib
    with fresh_home() as place, started(kind, place / "work", url) as server:
        turn(server, "pace")  # what is made at the first use of anything
        lasts, delays = [], []
        for _ in range(ROUNDS):
            _, last, all_of_them = turn(server, "burst")
            assert len(all_of_them) == BURST, len(all_of_them)
            lasts.append(last)
            _, _, all_of_them = turn(server, "pace")
            assert len(all_of_them) == PACED, len(all_of_them)
            delays += all_of_them
        with ThreadPoolExecutor(20) as pool:
            threads = list(pool.map(lambda _: server.new(), range(MANY)))
        one = server.path_of(threads[0])
        health, listing, reading = (server.target.per_second(path) for path in (server.health, server.all, one))
        server.fill(threads[0], MANY)
        items_s = timed(lambda: server.items(threads[0], MANY), MANY)
        list_s = timed(server.list_all, MANY)
        foreign = percentile(foreign_s(server, place / "work" / "work"), 0.95) if isinstance(server, Ours) else 0.0
    delay = percentile(delays, 0.95)
    return Figures(median(ready), memory, health, listing, reading, median(lasts), delay, items_s, list_s, foreign)


def timed(deed: Callable[[], int], least: int) -> float:
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        found = deed()
        taken.append(time.perf_counter() - began)
        assert found >= least, found
    return median(taken)


def run() -> list[Row]:
    found = opencode.reference()
    with model() as url:
        ours = measure(Ours, url)
        if isinstance(found, str):
            print(f"serve: no comparison with opencode {opencode.VERSION}: {found}", file=sys.stderr)
            return alone(ours)
        Theirs.program = str(found)
        theirs = measure(Theirs, url)
    return [*alone(ours), *beside(ours, theirs)]


def guessing() -> float:
    """How much longer a token takes that is wrong in its last character than one wrong in its first; the rounds of both
    alternate, and the quickest of each counts."""
    right = secrets.token_urlsafe(32)
    credential = Credential(right)
    wrong = [Shown("bearer", "!" + right[1:]), Shown("bearer", right[:-1] + "!")]
    best = [float("inf")] * 2
    for _ in range(300):
        for n, shown in enumerate(wrong):
            began = time.perf_counter()
            for _ in range(200):
                credential.accepts(shown)
            best[n] = min(best[n], time.perf_counter() - began)
    return max(best) / min(best)


def alone(ours: Figures) -> list[Row]:
    return [
        Row("serve: added delay of a delta, p95", ours.delay_p95_s * 1000, "ms", 3, "200 of them, 5 ms apart"),
        Row("serve: a token wrong at its end, to one wrong at its beginning", guessing(), "x", 1.05, "time to refuse"),
        Row("serve: what another process does is on the stream, p95", ours.foreign_p95_s * 1000, "ms", 100),
    ]


def beside(ours: Figures, theirs: Figures) -> list[Row]:
    name = f"opencode {opencode.VERSION}"

    def ratio(what: str, mine: float, other: float, unit: str, bar: float, *, at_least: bool = False) -> Row:
        return Row(f"serve: {what}", mine / other, "x", bar, f"{mine:,.4g} {unit}; {name} {other:,.4g}", at_least)

    return [
        ratio("ready to answer", ours.ready_s, theirs.ready_s, "s", 1 / 3),
        ratio("memory while idle", ours.memory_mib, theirs.memory_mib, "MiB", 1 / 4),
        ratio("health", ours.health, theirs.health, "/s", 1.5, at_least=True),
        ratio("a page of threads", ours.listing, theirs.listing, "/s", 4, at_least=True),
        ratio("one thread", ours.reading, theirs.reading, "/s", 4, at_least=True),
        ratio(f"the last of {BURST:,} deltas", ours.last_s, theirs.last_s, "s", 1),
        ratio(f"{MANY:,} items fetched", ours.items_s, theirs.items_s, "s", 1),
        ratio(f"{MANY:,} threads listed", ours.list_s, theirs.list_s, "s", 1),
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
