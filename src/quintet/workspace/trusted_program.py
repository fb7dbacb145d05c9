"""Running a program of our own choice (a searcher, our own Python) that starts no others: bytes in, bytes out, an end
in bounded time. Commands of a model are not run here; they go through processes.py and the sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

READ_SIZE = 256 * 1024
ERRORS_LIMIT = 16 * 1024
_GET_PATH = 50  # macOS: F_GETPATH, where there is no /proc
INPUT_LIMIT = 32 * 1024  # fits into a pipe, so that giving it never waits


class Cut(StrEnum):
    NOT = ""
    TIME = "time"
    SIZE = "size"  # wrote more than it may


class Ran(NamedTuple):
    code: int  # as waitpid says: negative = killed by that signal
    output: bytes
    errors: bytes
    cut: Cut


class Program(NamedTuple):
    argv: Sequence[str]
    directory: int  # a handle: what was checked is what it starts in, whatever the path names by then
    environment: Mapping[str, str]
    given: bytes  # on its stdin
    timeout_s: float
    output_limit: int


async def run_program(program: Program) -> Ran:
    """Run to the end. A cancel kills it first and then goes on its way."""
    if len(program.given) > INPUT_LIMIT:
        raise ValueError(f"{len(program.given)} bytes are too much to give at once")
    process = _spawn(program)
    reading = _Reading(process, program.output_limit)
    cut = Cut.NOT
    try:
        async with asyncio.timeout(program.timeout_s):
            await reading.over
            if process.poll() is None:  # it closed its output and is about to exit
                await asyncio.to_thread(process.wait, program.timeout_s)
    except (TimeoutError, subprocess.TimeoutExpired):
        cut = Cut.TIME
    finally:
        reading.close()
        if process.poll() is None:
            process.kill()
            process.wait()
    return Ran(process.returncode, b"".join(reading.output), b"".join(reading.errors), reading.cut or cut)


def _spawn(program: Program) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        program.argv,
        cwd=_named(program.directory),
        env=dict(program.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,  # a terminal's Ctrl-C is for us, not for it
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as entrance:  # it may have refused its arguments already
        entrance.write(program.given)
    return process


def _named(directory: int) -> str:
    """A name by which a child that shares our handles finds this very directory."""
    if os.path.isdir("/proc/self/fd"):
        return f"/proc/self/fd/{directory}"
    import fcntl

    return os.fsdecode(fcntl.fcntl(directory, _GET_PATH, bytes(1024)).rstrip(b"\0"))


class _Reading:
    """Both pipes, until both are at their end or too much came."""

    def __init__(self, process: subprocess.Popen[bytes], limit: int) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._loop = asyncio.get_running_loop()
        self._limit = limit
        self._taken = 0
        self._open = {process.stdout.fileno(): process.stdout, process.stderr.fileno(): process.stderr}
        self._errors_end = process.stderr.fileno()
        self.output: list[bytes] = []
        self.errors: list[bytes] = []
        self.cut = Cut.NOT
        self.over: asyncio.Future[None] = self._loop.create_future()
        for handle in self._open:
            os.set_blocking(handle, False)
            self._loop.add_reader(handle, self._read, handle)

    def _read(self, handle: int) -> None:
        try:
            data = os.read(handle, READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._shut(handle)
        elif handle == self._errors_end:
            if sum(map(len, self.errors)) < ERRORS_LIMIT:
                self.errors.append(data[:ERRORS_LIMIT])
        else:
            self.output.append(data)
            self._taken += len(data)
            if self._taken > self._limit:
                self.cut = Cut.SIZE
                self._finish()
        if not self._open:
            self._finish()

    def _finish(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def _shut(self, handle: int) -> None:
        self._loop.remove_reader(handle)
        self._open.pop(handle).close()

    def close(self) -> None:
        for handle in list(self._open):
            self._shut(handle)


def died_of(code: int) -> str:
    """How a program ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"
