"""The home's own server in a check-up: none, one that answers, one that falls behind, one that is stuck."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quintet.domain.checkup import Health
from quintet.workspace import server_check
from quintet.workspace.server_check import look_at_server, own_ports
from quintet.workspace.server_lock import ServerLock


@contextmanager
def a_server(answer: bytes | None) -> Iterator[int]:
    """Says this to whoever comes; nothing at all where that is None. Its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = threading.Event()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                if answer is not None:
                    connection.recv(4096)
                    connection.sendall(answer)
                else:
                    done.wait(20)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        done.set()
        thread.join(20)


@pytest.mark.req("first_minutes:F5", "first_minutes:F6")
def test_that_none_runs_is_fine_and_looking_makes_nothing(tmp_path: Path) -> None:
    (row,) = look_at_server(tmp_path / "home")
    assert row.health is Health.OK
    assert not (tmp_path / "home").exists()


@pytest.mark.req("first_minutes:F5", "first_minutes:F6")
def test_one_that_holds_the_home_and_says_nowhere_where_it_is_warns(tmp_path: Path) -> None:
    with ServerLock(tmp_path):
        (row,) = look_at_server(tmp_path)
        assert (row.health, own_ports(tmp_path)) == (Health.WARN, [])


@pytest.mark.req("first_minutes:F5", "first_minutes:F6")
@pytest.mark.parametrize(
    ("answer", "health", "words"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", Health.OK, "answers at http://127.0.0.1:"),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", Health.WARN, "falls behind"),
        (b"SSH-2.0-OpenSSH\r\n", Health.FAIL, "nothing like HTTP"),
        (b"", Health.FAIL, "nothing like HTTP"),
        (None, Health.FAIL, "does not answer"),
    ],
    ids=["well", "late", "another", "hangs up", "stuck"],
)
def test_it_is_asked_and_each_answer_has_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes | None, health: Health, words: str
) -> None:
    if answer is None:
        monkeypatch.setattr(server_check, "ANSWERS_WITHIN_S", 0.2)
    with a_server(answer) as port, ServerLock(tmp_path) as lock:
        lock.announce({"pid": 4711, "token": "t", "knp": {"url": f"http://127.0.0.1:{port}"}}, None)
        assert own_ports(tmp_path) == [port]
        (row,) = look_at_server(tmp_path)
    assert (row.health, words in row.detail) == (health, True), row
    if health is Health.FAIL:
        assert row.fix == "kill 4711 && quintet serve"


@pytest.mark.req("first_minutes:F5", "first_minutes:F6")
@pytest.mark.parametrize("knp", [{"url": 5}, {"url": "http://127.0.0.1:999999"}, {"socket": "/nowhere/s"}, [], None])
def test_a_file_that_makes_no_sense_is_no_defect(tmp_path: Path, knp: object) -> None:
    with ServerLock(tmp_path) as lock:
        lock.announce({"pid": 4711, "token": "t", "knp": knp}, None)
        (row,) = look_at_server(tmp_path)
        assert row.health is not Health.OK
        assert own_ports(tmp_path) == []
