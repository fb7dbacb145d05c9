"""`quintet serve`: one server per home, honest about ports, private files, and gone when told."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

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
