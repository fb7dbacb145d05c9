"""`quintet run` and the stdin it was given: as a pipe that never ends, and as one somebody writes to."""

from __future__ import annotations

import array
import fcntl
import os
import signal
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.processes import QUINTET, environment, wait_until

WITHIN_S = 30.0


@contextmanager
def run(tmp_path: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process, and the writing end of its stdin, which stays open."""
    reading, writing = os.pipe()
    argv = [QUINTET, "run", *words, "--home", str(tmp_path / "home")]
    with subprocess.Popen(
        argv, stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment()
    ) as process:
        try:
            yield process, writing
        finally:
            process.kill()
            for descriptor in (reading, writing):
                os.close(descriptor)


@pytest.mark.req("first_minutes:F15")
def test_a_pipe_that_nobody_writes_or_closes_holds_nothing_up(tmp_path: Path) -> None:
    with run(tmp_path, "echo hello") as (process, _):
        out, err = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, out) == (0, b"hello\n")
    assert b"stdin" not in err


@pytest.mark.req("first_minutes:F15")
def test_what_is_piped_in_unasked_is_told_once_and_not_taken(tmp_path: Path) -> None:
    with run(tmp_path, "echo hello") as (process, writing):
        os.write(writing, b"more\n")
        out, err = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, out) == (0, b"hello\n")
    assert err.count(b"stdin was not read") == 1


@pytest.mark.req("first_minutes:F15")
def test_waiting_for_stdin_is_ended_by_one_ctrl_c(tmp_path: Path) -> None:
    with run(tmp_path, "-") as (process, writing):
        os.write(writing, b"the beginning of a prompt")
        wait_until(lambda: waiting_in(writing) == 0, WITHIN_S)  # it reads, and more would have to come
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert not (tmp_path / "home").exists()


def waiting_in(pipe: int) -> int:
    """How many bytes nobody has taken yet."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]
