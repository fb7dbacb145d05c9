import contextlib
import fcntl
import json
import os
import pty
import socket
import subprocess
import sys
import tty
from pathlib import Path
from typing import Any

import pytest

SERVER = [
    sys.executable,
    "-X",
    "dev",
    "-W",
    "ignore::UserWarning",
    str(Path(__file__).with_name("stdio_server.py")),
]
WAIT_S = 20


def request(id: int, method: str = "echo", **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


def ids(output: bytes) -> list[int]:
    lines = output.splitlines()
    return [json.loads(line)["id"] for line in lines]


def run(data: bytes | None = None, **options: Any) -> "subprocess.CompletedProcess[bytes]":
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.run(SERVER, input=data, timeout=WAIT_S, check=False, **options)


@pytest.mark.req("security:S50")
@pytest.mark.parametrize("stderr", [subprocess.PIPE, subprocess.STDOUT])
def test_prints_warnings_c_code_and_children_cannot_reach_stdout(stderr: int) -> None:
    done = run(request(1, "pollute") + request(2, text="STRAYLESS"), stderr=stderr)
    lines = done.stdout.splitlines()
    assert sorted(ids(done.stdout)) == [1, 2]
    assert len(lines) == 2
    assert not any(b"STRAY " in line for line in lines)
    assert done.returncode == 0


@pytest.mark.req("security:S50")
@pytest.mark.parametrize("kind", ["pipes", "files"])
def test_children_inherit_no_protocol_descriptor(kind: str, tmp_path: Path) -> None:
    if kind == "pipes":
        output = run(request(1, "pollute")).stdout
    else:
        (tmp_path / "in").write_bytes(request(1, "pollute"))
        with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as sink:
            run(stdin=source, stdout=sink)
        output = (tmp_path / "out").read_bytes()
    assert json.loads(output)["result"].split() == ["0", "1", "2", "3"]  # 3 is `ls` reading the directory


@pytest.mark.req("security:S50")
def test_children_cannot_eat_the_input() -> None:
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in (1, 2):
            # The child's `cat` waits for the end of its stdin, and takes what comes, if it can see ours.
            process.stdin.write(request(number, "pollute"))
            process.stdin.flush()
            assert "result" in json.loads(process.stdout.readline())
        process.stdin.close()
        assert process.wait(WAIT_S) == 0


def test_the_end_of_stdin_ends_the_process_with_0_and_a_silent_stderr() -> None:
    done = run(request(1) + request(2))
    assert (ids(done.stdout), done.returncode, done.stderr) == ([1, 2], 0, b"")


def test_stdin_may_be_a_regular_file_and_stdout_too(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"".join(request(number, x="." * 1000) for number in range(200)))
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as sink:
        done = run(stdin=source, stdout=sink)
    assert sorted(ids((tmp_path / "out").read_bytes())) == list(range(200))
    assert (done.returncode, done.stderr) == (0, b"")


def test_stdin_and_stdout_may_be_one_socket_and_stay_blocking_for_its_owner() -> None:
    ours, theirs = socket.socketpair()
    with subprocess.Popen(SERVER, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE) as process, ours:
        ours.settimeout(WAIT_S)
        ours.sendall(request(1))
        assert ids(ours.makefile("rb").readline()) == [1]
        assert not fcntl.fcntl(theirs, fcntl.F_GETFL) & os.O_NONBLOCK
        theirs.close()
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(WAIT_S) == 0


def test_a_terminal_is_served_without_making_it_non_blocking_for_its_shell() -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)
    with subprocess.Popen(SERVER, stdin=slave, stdout=slave, stderr=subprocess.PIPE) as process:
        os.write(master, request(1))
        with open(master, "rb", buffering=0, closefd=False) as screen:
            assert ids(screen.readline()) == [1]
        assert not fcntl.fcntl(slave, fcntl.F_GETFL) & os.O_NONBLOCK
        os.close(slave)
        os.close(master)  # hang-up
        assert process.wait(WAIT_S) == 0


def test_a_pipe_is_not_made_non_blocking_for_those_who_share_it() -> None:
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    with subprocess.Popen(SERVER, stdin=in_read, stdout=out_write, stderr=subprocess.PIPE) as process:
        os.write(in_write, request(1))
        assert ids(os.read(out_read, 65536)) == [1]
        for fd in (in_read, out_write):
            assert not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK
        os.close(in_write)
        assert process.wait(WAIT_S) == 0
    for fd in (in_read, out_read, out_write):
        os.close(fd)


def test_a_reader_that_goes_away_is_an_orderly_end() -> None:
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(request(1))
        process.stdin.flush()
        assert ids(process.stdout.readline()) == [1]
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(request(2))
            process.stdin.flush()
        assert process.wait(WAIT_S) == 0
        assert process.stderr.read() == b""


@pytest.mark.req("reliability:R6")
def test_a_stdout_pipe_nobody_reads_for_a_while_is_no_deadlock() -> None:
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(150):  # 3 MB: far more than both pipes and the writer's queue hold
            process.stdin.write(request(number, x="." * 20_000))
        process.stdin.close()
        assert sorted(ids(process.stdout.read())) == list(range(150))
        assert process.wait(WAIT_S) == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_missing_descriptors_are_no_crash(closed: str) -> None:
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *SERVER]
    done = subprocess.run(command, input=request(1), capture_output=True, timeout=WAIT_S, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
