"""`quintet serve`: one server per home, honest about ports, private files, and gone when told."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http.client
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

from quintet.cli import serve
from quintet.domain.errors import Busy
from quintet.rpc.http.binding import bind
from quintet.serving.server import Wish
from tests.fakes.knp_server import knp_server
from tests.faults.processes import Process, one_line, quintet, quintet_running, wait_until, write_home


@contextmanager
def server(home: Path, ready: Path) -> Iterator[tuple[Process, dict[str, object], int]]:
    with quintet_running("serve", "--knp-port", "0", "--ready-file", str(ready), home=home) as process:
        wait_until(lambda: ready.exists() or process.popen.poll() is not None, 10)
        assert ready.exists(), process.words()
        facts = json.loads(ready.read_text())
        yield process, facts, int(facts["knp"]["url"].rpartition(":")[2])


def get(port: int, path: str, host: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.putrequest("GET", path, skip_host=True)
        connection.putheader("Host", host)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.req("mechanisms:M2.oneserver")
def test_a_second_server_is_refused_with_the_first_ones_address(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    with server(home, tmp_path / "ready") as (process, facts, port):
        second = quintet("serve", "--knp-port", "0", home=home)
        line = one_line(second, 1)
        assert f"http://127.0.0.1:{port}" in line
        assert str(facts["pid"]) in line
        assert json.loads((home / "server.json").read_text()) == facts, "the second one took the file away"
        assert get(port, "/health", f"127.0.0.1:{port}") == 200
        assert process.popen.poll() is None


@pytest.mark.req("reliability:R10")
def test_a_taken_port_is_one_line_and_nothing_is_left_running(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        line = one_line(quintet("serve", "--knp-port", str(port), home=home), 1)
    assert str(port) in line
    assert "--knp-port" in line
    assert not (home / "server.json").exists()
    with server(home, tmp_path / "ready"):
        pass


@pytest.mark.req("security:S2")
def test_a_foreign_host_is_refused_before_routing(tmp_path: Path) -> None:
    with server(write_home(tmp_path / "home"), tmp_path / "ready") as (_, _, port):
        for good in (f"127.0.0.1:{port}", f"localhost:{port}"):
            assert get(port, "/health", good) == 200, good
        for bad in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", f"127.0.0.1:{port + 1}", ""):
            assert get(port, "/health", bad) in (400, 403, 421), bad
            assert get(port, "/nothing", bad) in (400, 403, 421), bad


@pytest.mark.req("security:S19")
def test_the_files_that_lead_to_the_server_are_private_and_gone_after_it(tmp_path: Path) -> None:
    home, ready = write_home(tmp_path / "home"), tmp_path / "ready"
    with server(home, ready) as (process, _, port):
        assert (home / "server.json").stat().st_mode & 0o777 == 0o600
        assert ready.stat().st_mode & 0o777 == 0o600
        begun = time.monotonic()
        process.popen.send_signal(signal.SIGTERM)
        assert process.wait(6) == 0, process.words()
        assert time.monotonic() - begun < 5
        assert process.err == [], process.words()
    assert not (home / "server.json").exists()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.req("mechanisms:M2.oneserver", "mechanisms:M2.liveness")
def test_a_killed_server_leaves_no_lock_behind(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    with server(home, tmp_path / "ready") as (process, first, _):
        process.kill()
    with server(home, tmp_path / "ready2") as (_, second, _):
        assert second["pid"] != first["pid"]
        assert json.loads((home / "server.json").read_text()) == second


@pytest.mark.req("mechanisms:M2.recovery")
def test_a_server_ends_what_a_killed_process_left_when_it_starts(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", "scope: turn\ntext: begin\nuntil: never\n")
    with quintet_running("run", "--json", "x", home=home) as run:
        run.event("text.delta")
        run.kill()
    assert quintet("threads", "list", "--json", home=home).lines[0]["state"] == "interrupted"
    with server(home, tmp_path / "ready"):
        assert quintet("threads", "list", "--json", home=home).lines[0]["state"] == "idle"
    last = quintet("events", "--json", home=home).lines[-1]
    assert (last["kind"], last["payload"]["state"]) == ("turn.finished", "interrupted")


@pytest.mark.parametrize(
    "words",
    [("--knp-port", "70000"), ("--knp-port", "x"), ("--host", "0.0.0.0", "--no-auth")],
    ids=" ".join,
)
def test_addresses_that_cannot_be_served_are_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    one_line(quintet("serve", *words, home=write_home(tmp_path / "home")), 2)


@pytest.mark.req("security:S7")
def test_a_server_without_a_token_stays_on_loopback_unless_a_long_flag_says_otherwise(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    line = one_line(quintet("serve", "--host", "0.0.0.0", "--no-auth", home=home), 2)
    assert "loopback only" in line
    assert not (home / "server.json").exists()


@pytest.mark.req("security:S7")
async def test_a_server_that_is_open_to_a_network_says_so_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    heard = asyncio.Event()

    class Screen:
        def note(self, text: str) -> None:
            said.append(text)
            if len(said) == 3:
                heard.set()

    invocation = SimpleNamespace(screen=Screen())
    monkeypatch.setattr(serve, "WARN_EVERY_S", 0.01)
    warning = asyncio.create_task(serve._warn(invocation, Wish(host="192.0.2.1", auth=False)))
    await asyncio.wait_for(heard.wait(), 20)
    warning.cancel()
    assert "can run commands" in said[0]
    await serve._warn(invocation, Wish(host="192.0.2.1"))
    await serve._warn(invocation, Wish(auth=False))  # at once: there is nothing to warn of
    assert serve.ANY_NETWORK in said[0]


def test_an_address_of_no_interface_here_is_one_line(tmp_path: Path) -> None:
    one_line(quintet("serve", "--host", "192.0.2.1", home=write_home(tmp_path / "home")), 2)


@pytest.mark.req("knp:K42")
def test_whoever_comes_before_the_server_can_answer_is_refused_not_kept_waiting() -> None:
    with bind("127.0.0.1", 0) as listener, socket.socket() as early:
        assert early.connect_ex(listener.getsockname()) == errno.ECONNREFUSED


@pytest.mark.req("knp:K42")
def test_a_port_that_two_take_at_once_goes_to_one_and_the_other_says_so(tmp_path: Path) -> None:
    """An address can be bound twice while nobody listens on it."""
    with knp_server(write_home(tmp_path / "a")) as first:
        with bind("127.0.0.1", 0) as rival:
            port = rival.getsockname()[1]
            with knp_server(write_home(tmp_path / "b"), Wish(knp_port=port)) as second:
                assert second.ask("GET", "/health").status == 200
                with pytest.raises(OSError, match="in use"):
                    rival.listen()
        with (
            pytest.raises(Busy, match=str(first.port)),
            knp_server(write_home(tmp_path / "c"), Wish(knp_port=first.port)),
        ):
            pass


def test_protocols_that_are_not_served_yet_are_said_not_to_be(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    line = one_line(quintet("serve", "--only", "opencode", home=home), 2)
    assert "OpenCode adapter" in line
    one_line(quintet("serve", "--knp-port", "off", home=home), 2)
    assert quintet("serve", "--only", "nonsense", home=home).code == 2
    ready = tmp_path / "ready"
    words = ("--knp-port", "0", "--opencode-port", "0", "--cursorclaw-port", "off", "--ready-file", str(ready))
    with quintet_running("serve", *words, home=home) as process:
        process.until(lambda line: line.startswith("Next:"))
        told = "".join(line for _, line in process.lines)
        assert "Not served yet: the OpenCode adapter." in told
        assert "CursorClaw" not in told
        assert set(json.loads(ready.read_text())) == {"pid", "token", "knp"}


def test_what_is_printed_leads_there(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    with quintet_running("serve", "--knp-port", "0", home=home) as process:
        process.until(lambda line: line.startswith("Next:"))
        told = "".join(line for _, line in process.lines)
        facts = json.loads((home / "server.json").read_text())
        assert facts["knp"]["url"] in told
        assert facts["token"] in told
        assert str(home / "server.json") in told
        url = quintet("url", home=home)
        assert url.out.strip() == f"{facts['knp']['url']}/t/{facts['token']}"
        with urlopen(f"{url.out.strip()}/openapi.json", timeout=20) as answer:
            assert answer.status == 200
        assert quintet("url", "--plain", home=home).out.strip() == facts["knp"]["url"]
        assert quintet("url", "--json", home=home).lines == [facts]


@pytest.mark.req("security:S9")
def test_a_token_is_rotated_by_a_command(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    with server(home, tmp_path / "ready") as (process, facts, port):
        new = quintet("url", "--rotate", "--json", home=home).lines[0]
        assert new["token"] != facts["token"]
        assert json.loads((home / "server.json").read_text()) == json.loads((tmp_path / "ready").read_text()) == new
        for token, status in ((facts["token"], 401), (new["token"], 200)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/openapi.json", headers={"Authorization": f"Bearer {token}"})
            assert connection.getresponse().status == status
            connection.close()
        assert process.popen.poll() is None
    assert quintet("url", home=home).code == 7


@pytest.mark.req("security:S19")
def test_a_socket_beside_the_port_is_private_and_asks_for_the_token_too(tmp_path: Path) -> None:
    home, path = write_home(tmp_path / "home"), tmp_path / "s"
    with knp_server(home, Wish(knp_port=None, socket=str(path))) as running:
        assert path.stat().st_mode & 0o777 == 0o600
        assert unix(path, "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").startswith(
            b"HTTP/1.1 200"
        )
        asked = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}\r\n"
        assert unix(path, asked.format("")).startswith(b"HTTP/1.1 401")
        assert unix(path, asked.format(f"Authorization: Bearer {running.token}\r\n")).startswith(b"HTTP/1.1 200")
        assert unix(path, asked.format("").replace("localhost", "evil.example")).startswith(b"HTTP/1.1 403")
        assert running.server.facts()["knp"] == {"socket": str(path)}
    assert not path.exists()


@pytest.mark.req("security:S19")
def test_a_peer_of_another_user_is_turned_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    with knp_server(write_home(tmp_path / "home"), Wish(knp_port=None, socket=str(path))):
        monkeypatch.setattr("quintet.rpc.http.connections.peer_uid", lambda peer: os.geteuid() + 1)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            assert unix(path, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n") == b""


def unix(path: Path, request: str) -> bytes:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(20)
        peer.connect(str(path))
        peer.sendall(request.encode())
        answer = b""
        while chunk := peer.recv(65536):
            answer += chunk
        return answer


@pytest.mark.req("reliability:R13")
def test_a_server_with_open_streams_is_gone_when_told(tmp_path: Path) -> None:
    with server(write_home(tmp_path / "home"), tmp_path / "ready") as (process, facts, port):
        streams = []
        for _ in range(50):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/events", headers={"Authorization": f"Bearer {facts['token']}"})
            streams.append((connection, connection.getresponse()))
        for _, answer in streams:
            assert answer.readline().startswith(b"data:")
        begun = time.monotonic()
        process.popen.send_signal(signal.SIGTERM)
        for connection, answer in streams:
            answer.read()  # to its proper end
            connection.close()
        assert process.wait(10) == 0, process.words()
        assert time.monotonic() - begun < 5
        assert process.err == [], process.words()
