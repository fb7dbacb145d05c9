"""Faults over HTTP: storms of reconnects, readers that stop, requests that are none, keys sent twice, a sudden end."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.event import Draft, ThreadUpdated
from quintet.serving.server import Wish
from tests.fakes.knp_server import Running, Sse, knp_server, wait_for
from tests.faults import tiers
from tests.faults.processes import (
    end_leftovers,
    figures,
    living_with,
    quintet,
    quintet_running,
    wait_until,
    write_home,
)
from tests.faults.test_stopping import all_there, tree

pytestmark = pytest.mark.fault
AT_ONCE = 20
STOPPED = 50
HANG_S = 1.0
STORED = "scope: turn\nthink: hm\nrepeat: 300 text: w\n"
ALLOW = '[policy]\nmode = "allow"\n[policy.rules]\n"shell: *" = "allow"\n'


@contextlib.contextmanager
def serving(tmp_path: Path, script: str = STORED, config: str = "") -> Iterator[Running]:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    with knp_server(write_home(tmp_path / "home", script, config), Wish(knp_port=0, roots=(str(work),))) as running:
        yield running


def new_thread(server: Running) -> str:
    return str(server.ask("POST", "/threads", {"title": "t"}).json["tid"])


def run(server: Running, tid: str, text: str = "go", **headers: str) -> Any:
    return server.ask("POST", f"/threads/{tid}/runs", {"input": [{"kind": "text", "text": text}]}, headers=headers)


def numbered(stream: Sse) -> dict[str, Any]:
    while (frame := stream.next()) is not None:
        if frame["sse_id"] is not None:
            return frame
    raise AssertionError("the stream ended")


@pytest.mark.req("reliability:R4")
@pytest.mark.parametrize(("part", "reconnects"), tiers.shares("R4", 2))
@pytest.mark.timeout(tiers.limit_s(90))
def test_readers_over_http_cut_anywhere_get_the_whole_log_in_order(tmp_path: Path, part: int, reconnects: int) -> None:
    dice = tiers.seeded(f"http-reconnect{part}")
    with serving(tmp_path) as server:
        tid = new_thread(server)
        turns = threading.Thread(target=lambda: [run(server, tid) for _ in range(3)])
        turns.start()
        got: list[tuple[int, str]] = []
        inside = 0
        for n in range(reconnects):
            cursor = got[-1][0] if got else 0
            path, headers = (f"/events?after={cursor}", {}) if n % 2 else ("/events", {"last_event_id": str(cursor)})
            with server.stream(path, **headers) as stream:
                for _ in range(dice.randint(1, 60)):
                    if not turns.is_alive() and got and got[-1][1] == "run.finished":
                        break
                    frame = numbered(stream)
                    got.append((frame["seq"], frame["kind"]))
                inside += bool(got) and got[-1][0] % 16 == 0
        turns.join(60)
        with server.stream("/events", last_event_id=str(got[-1][0])) as stream:
            finished = [f for f in got if f[1] == "run.finished"]
            while len(finished) < 3:
                frame = numbered(stream)
                got.append((frame["seq"], frame["kind"]))
                finished += [got[-1]] if frame["kind"] == "run.finished" else []
        with server.stream("/events?after=0") as stream:
            whole = []
            while not whole or whole[-1][0] < got[-1][0]:
                frame = numbered(stream)
                whole.append((frame["seq"], frame["kind"]))
    assert got == whole
    assert inside, "nobody was cut inside an event"


@pytest.mark.req("reliability:R6", "knp:K18")
@pytest.mark.timeout(tiers.limit_s(120))
def test_fifty_readers_that_stopped_are_cut_off_and_one_that_reads_hears_everything(tmp_path: Path) -> None:
    with serving(tmp_path) as server, contextlib.ExitStack() as opened:
        tid = new_thread(server)
        face = server.server.faces["knp"]
        head = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        for _ in range(STOPPED):
            stopped = opened.enter_context(socket.socket())
            stopped.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stopped.connect(("127.0.0.1", server.port))
            stopped.sendall(head.encode())
        wait_for(lambda: len(face.streams) == STOPPED)
        stream = opened.enter_context(server.stream("/events"))
        stream.next()
        words = "x" * 100_000

        async def flood() -> None:
            for n in range(100):
                await server.app.feed.append([Draft(ThreadUpdated(title=f"{n} {words}"), tid)])

        flooding = threading.Thread(target=lambda: server.call(flood()))
        flooding.start()
        titles = [numbered(stream)["kind"] for _ in range(100)]
        flooding.join(30)
        assert titles == ["thread.updated"] * 100
        wait_for(lambda: len(face.streams) == 1)
        assert run(server, tid).json["status"] == "completed"


def bad_requests(dice: random.Random, port: int, token: str, tid: str, count: int) -> Iterator[bytes]:
    """Sound requests with something wrong in them, and what is none at all."""
    body = b'{"title":"a","metadata":{"k":[1,2,3]}}'
    sound = (
        b"POST /threads HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %b\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (port, token.encode(), len(body), body)
    )
    fixed = [
        sound.replace(b"Content-Length: ", b"Content-Length: -"),
        sound.replace(b"Content-Length: ", b"Content-Length: 5\r\nContent-Length: "),
        sound.replace(b"Content-Length: ", b"Transfer-Encoding: chunked\r\nContent-Length: "),
        sound.replace(b"Content-Length: ", b"Content-Length: 99999999999999999999"),
        sound.replace(body, b"\xff" * len(body)),
        sound.replace(body, b"[" * len(body)),
        sound.replace(body, b'{"title":"\\ud800"}'.ljust(len(body))),
        sound.replace(body, b'{"title":NaN}'.ljust(len(body))),
        sound.replace(body, b'{"title":1}'.ljust(len(body))),
        sound.replace(b"/threads", b"/threads/%2e%2e/%00"),
        sound.replace(b"/threads", b"/threads/" + tid.encode() + b"/runs"),
        sound.replace(b"HTTP/1.1", b"HTTP/9.9"),
        sound.replace(b"\r\n", b"\n"),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET http://evil.example/threads HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port,
        b"\r\n" * 50,
        b"\0" * 500,
    ]
    for n in range(count):
        if n < len(fixed):
            yield fixed[n]
            continue
        raw = bytearray(sound)
        match dice.randrange(4):
            case 0:
                del raw[dice.randrange(len(raw)) :]
            case 1:
                raw[dice.randrange(len(raw))] = dice.randrange(256)
            case 2:
                at = dice.randrange(len(raw))
                raw[at:at] = dice.randbytes(dice.randint(1, 40))
            case _:
                at = dice.randrange(len(raw))
                del raw[at : at + dice.randint(1, 20)]
        yield bytes(raw)


def sent(port: int, raw: bytes, pieces: int) -> bytes:
    """The answer to these bytes, sent in so many pieces; the sending side is closed behind them."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
        size = max(1, len(raw) // pieces)
        answer = b""
        with contextlib.suppress(OSError):  # it may have heard enough before all of it was sent
            for at in range(0, len(raw), size):
                peer.sendall(raw[at : at + size])
        with contextlib.suppress(OSError):  # it has been closed and reset from the other side already
            peer.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while chunk := peer.recv(65536):
                answer += chunk
        return answer


@pytest.mark.req("reliability:R7", "security:S14")
@pytest.mark.parametrize(("part", "count"), tiers.shares("R7", 2))
@pytest.mark.timeout(tiers.limit_s(120))
def test_requests_that_are_none_are_refused_and_the_next_one_is_served(tmp_path: Path, part: int, count: int) -> None:
    dice = tiers.seeded(f"http-input{part}")
    with serving(tmp_path) as server:
        tid = new_thread(server)
        slow = []
        for n, raw in enumerate(bad_requests(dice, server.port, server.token, tid, count)):
            begun = time.monotonic()
            answer = sent(server.port, raw, dice.choice((1, 1, 2, 7)))
            slow.append(time.monotonic() - begun)
            for status in [line[9:12] for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]:
                assert status[:1] in b"24" or status == b"100", (raw, answer[:300])
            if n % 25 == 0:
                assert server.ask("GET", "/health").status == 200
        assert server.ask("GET", f"/threads/{tid}").status == 200
        assert not (server.app.home / "quintet.log").exists(), (server.app.home / "quintet.log").read_text()
    figures("a bad request", slow)
    assert sorted(slow)[int(len(slow) * 0.99)] < HANG_S


@pytest.mark.req("reliability:R7")
def test_a_request_cut_at_any_byte_changes_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        body = b'{"title":"cut"}'
        whole = (
            b"POST /threads HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %b\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
            % (server.port, server.token.encode(), len(body), body)
        )
        for at in range(len(whole)):
            sent(server.port, whole[:at], 1)
        assert server.ask("GET", "/threads").json["threads"] == []
        for at in range(1, len(whole), 7):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as peer:
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                peer.sendall(whole[:at])
                peer.sendall(whole[at:])
                assert peer.recv(12) == b"HTTP/1.1 200"


@pytest.mark.req("reliability:R13")
@pytest.mark.parametrize(("part", "rounds"), tiers.shares("R13", 3))
@pytest.mark.timeout(tiers.limit_s(180))
def test_sigterm_ends_a_busy_server_within_five_seconds_and_leaves_nothing(
    tmp_path: Path, part: int, rounds: int
) -> None:
    taken = []
    for number in range(rounds):
        command, word = tree(130_000 + part * 10_000 + number)
        script = f"scope: turn\ntool_call: shell {json.dumps({'command': command})}\n---\ntext: over\n"
        home = write_home(tmp_path / f"home{number}", script, ALLOW)
        ready, path = tmp_path / f"ready{number}", tmp_path / f"socket{number}"
        words = ("--knp-port", "0", "--ready-file", str(ready), "--socket", str(path), "--project", str(tmp_path))
        try:
            with quintet_running("serve", *words, home=home, cwd=tmp_path) as process:
                wait_until(ready.exists, 20)
                client = Remote(json.loads(ready.read_text()))
                tid = client.ask("POST", "/threads", {}).json["tid"]
                with ThreadPoolExecutor(1) as pool, client.stream("/events") as stream:
                    stream.next()
                    held = pool.submit(run, client, tid)
                    stream.until("approval.requested")
                    approval = client.ask("GET", "/approvals").json["approvals"][0]["id"]
                    assert client.ask("POST", f"/approvals/{approval}", {"decision": "allow"}).status == 200
                    wait_until(lambda word=word: all_there(word), 20)
                    begun = time.monotonic()
                    process.popen.send_signal(signal.SIGTERM)
                    finished = stream.until("run.finished")
                    assert finished["data"]["status"] in ("failed", "aborted")
                    assert stream.next() is None
                    assert held.result(20).json["status"] == finished["data"]["status"]
                    assert process.wait(20) == 0, process.words()
                    taken.append(time.monotonic() - begun)
                assert living_with(word) == [], process.words()
                assert process.err == [], process.words()
            assert taken[-1] < 5.0
            assert not path.exists()
            assert not (home / "server.json").exists()
            assert [name for name in os.listdir(home / "run") if name.startswith("own_")] == []
            last = quintet("events", "--json", home=home).lines[-1]
            assert (last["kind"], last["payload"]["state"]) == ("turn.finished", "interrupted")
        finally:
            end_leftovers(living_with(word))
    figures("SIGTERM to exit of a server", taken)


@pytest.mark.req("reliability:R14", "knp:K7")
@pytest.mark.timeout(tiers.limit_s(120))
def test_an_abort_over_http_ends_the_run_within_a_second_and_its_processes_within_two(tmp_path: Path) -> None:
    told, dead = [], []
    for number in range(max(1, tiers.figure("R14") // 5)):
        place = tmp_path / str(number)
        place.mkdir()
        command, word = tree(190_000 + number)
        script = f"scope: turn\ntool_call: shell {json.dumps({'command': command})}\n---\ntext: over\n"
        try:
            with serving(place, script) as server:
                tid = new_thread(server)
                with server.stream("/events") as stream:
                    stream.next()
                    started = server.ask(
                        "POST", f"/threads/{tid}/runs?detach=true", {"input": [{"kind": "text", "text": "go"}]}
                    )
                    assert started.status == 202
                    approval = stream.until("approval.requested")["data"]["id"]
                    server.ask("POST", f"/approvals/{approval}", {"decision": "allow"})
                    wait_until(lambda word=word: all_there(word), 20)
                    begun = time.monotonic()
                    assert server.ask("POST", f"/threads/{tid}/runs/abort").json == {"aborted": True}
                    assert stream.until("run.finished")["data"]["status"] == "aborted"
                    told.append(time.monotonic() - begun)
                    wait_until(lambda word=word: not living_with(word), 20)
                    dead.append(time.monotonic() - begun)
                assert server.ask("POST", f"/threads/{tid}/runs/abort").json == {"aborted": False}
        finally:
            end_leftovers(living_with(word))
    figures("abort to the end of the run", told)
    figures("abort to the last process gone", dead)
    assert max(told) < 1.0
    assert max(dead) < 2.0


@pytest.mark.req("reliability:R15", "knp:K28")
@pytest.mark.timeout(tiers.limit_s(90))
def test_one_key_sent_twenty_times_at_once_makes_one_thread_and_one_run(tmp_path: Path) -> None:
    with serving(tmp_path, "scope: turn\ntext: once\n") as server, ThreadPoolExecutor(AT_ONCE) as pool:
        for number in range(tiers.figure("R15")):
            key = {"Idempotency-Key": f"key{number}"}
            made = list(
                pool.map(lambda _, key=key: server.ask("POST", "/threads", {}, headers=key).json, range(AT_ONCE))
            )
            assert len({thread["tid"] for thread in made}) == 1
            tid = made[0]["tid"]
            runs = list(pool.map(lambda _, tid=tid, key=key: run(server, tid, **key).json, range(AT_ONCE)))
            assert len({answer["runId"] for answer in runs}) == 1, runs
            assert {json.dumps(answer, sort_keys=True) for answer in runs} == {json.dumps(runs[0], sort_keys=True)}
            assert runs[0]["status"] == "completed"
            assert run(server, tid, "another body", **key).status == 409
            assert server.ask("POST", "/threads", {"title": "other"}, headers=key).status == 409
            history = server.ask("GET", f"/threads/{tid}/events").json["events"]
            assert len([e for e in history if e["kind"] == "message" and e["role"] == "user"]) == 1
        assert len(server.ask("GET", "/threads?limit=200").json["threads"]) == tiers.figure("R15")


class Remote(Running):
    """A server in a process of its own, reached the same way."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._token = str(facts["token"])
        self.port = int(facts["knp"]["url"].rpartition(":")[2])

    @property
    def token(self) -> str:
        return self._token
