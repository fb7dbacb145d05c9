"""Output that nobody takes: a stopped terminal, a pager left open. Whoever ends the command is heard all the same."""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import signal
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.terminals import Pty, at_pty
from tests.faults.processes import QUINTET, environment, quintet, wait_until, write_home

pytestmark = pytest.mark.timeout(90)
TALKS = 'scope: turn\ntext: "more\\n"\nuntil: never\n'


@contextlib.contextmanager
def into_a_full_pipe(*words: str, home: Path, cwd: Path, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command whose first word of output finds no room."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b" " * 4096)
    os.set_blocking(writer, True)
    argv = [QUINTET, *words, "--home", str(home)]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=writer, cwd=cwd, env=environment(**env)) as process:
        os.close(writer)
        try:
            yield process
        finally:
            process.kill()
            os.close(reader)


def hears(process: subprocess.Popen[bytes], number: signal.Signals) -> bool:
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (number - 1) & 1)


def rests(process: subprocess.Popen[bytes]) -> bool:
    """It has used no processor for a while, in which it would have gone on if it could."""
    used = []
    for _ in range(2):
        used.append(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13])
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.25)
    return used[0] == used[1]


def unread(terminal: Pty) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(terminal.master, termios.FIONREAD, count)
    return count[0]


@pytest.mark.req("first_minutes:F18")
@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_a_conversation_at_a_terminal_that_takes_nothing_is_ended_by_a_signal(tmp_path: Path, term: str) -> None:
    home = write_home(tmp_path / "home")
    with at_pty([QUINTET, "chat", "--home", str(home)], tmp_path, TERM=term) as terminal:
        terminal.until("/help lists commands")
        terminal.type("/help\n" * 100 if term == "dumb" else "/help\r" * 100)  # and nobody reads what it says to that
        wait_until(lambda: unread(terminal) > 1000 and rests(terminal.popen), 20)
        terminal.popen.send_signal(signal.SIGTERM)
        assert terminal.popen.wait(20) == 130
        assert terminal.settings() == terminal.before


@pytest.mark.req("first_minutes:F18")
def test_a_run_whose_output_nobody_reads_is_ended_by_a_signal_and_by_its_time_limit(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", TALKS)
    with (
        into_a_full_pipe("run", "x", home=home, cwd=tmp_path) as by_signal,
        into_a_full_pipe("run", "--timeout", "1", "x", home=home, cwd=tmp_path) as by_limit,
    ):
        wait_until(lambda: hears(by_signal, signal.SIGTERM) and rests(by_signal), 20)
        by_signal.send_signal(signal.SIGTERM)
        assert by_signal.wait(20) == 130
        assert by_limit.wait(20) == 124
    assert {thread["state"] for thread in quintet("threads", "list", "--json", home=home).lines} == {"interrupted"}


@pytest.mark.req("first_minutes:F18")
def test_a_demo_whose_output_nobody_reads_leaves_nothing_when_it_is_ended(tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    with into_a_full_pipe("demo", home=tmp_path / "home", cwd=tmp_path, TMPDIR=str(room)) as demo:
        wait_until(lambda: any(room.iterdir()) and rests(demo), 20)
        demo.send_signal(signal.SIGTERM)
        assert demo.wait(20) == 130
    assert list(room.iterdir()) == []
