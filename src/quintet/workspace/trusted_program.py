"""Running a program of our own choice (a searcher, our own Python) that starts no others: bytes in, bytes out, an end
in bounded time. Commands of a model are not run here; they go through processes.py and the sandbox.

It shares no core with them: there the output comes through pipes as it is written and a whole tree must be found and
ended, here it is read once from memory, and one process is killed. What is left in common is a call of Popen.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import BinaryIO, NamedTuple

from quintet.workspace.process_tree import reaped

DEAD_WITHIN_S = 0.5  # after the SIGKILL, with the event loop waiting; who is not is reaped later
LOOK_S = 0.02  # between two looks at how much there is
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
    """Run to the end. A cancel kills it first and then goes on its way.

    The output goes into memory the system holds, not through a pipe: a searcher writes once for each file, and waking
    up for each of them costs more than the searching.
    """
    if len(program.given) > INPUT_LIMIT:
        raise ValueError(f"{len(program.given)} bytes are too much to give at once")
    with _scratch() as output:
        process = _spawn(program, output.fileno())
        watch = _Watch(process, output.fileno(), program.output_limit)
        cut = Cut.NOT
        try:
            async with asyncio.timeout(program.timeout_s):
                await watch.over
                if process.poll() is None and not watch.cut:  # it closed its stderr and is about to exit
                    await asyncio.to_thread(process.wait, program.timeout_s)
        except (TimeoutError, subprocess.TimeoutExpired):
            cut = Cut.TIME
        finally:
            watch.close()
            if process.poll() is None:
                process.kill()
                reaped(process, DEAD_WITHIN_S)
        size = os.fstat(output.fileno()).st_size
        cut = Cut.SIZE if size > program.output_limit else cut
        written = os.pread(output.fileno(), min(size, program.output_limit), 0)
    code = -signal.SIGKILL if process.returncode is None else process.returncode
    return Ran(code, written, b"".join(watch.errors), cut)


def _scratch() -> BinaryIO:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("output", os.MFD_CLOEXEC), "rb", buffering=0)
    return tempfile.TemporaryFile("rb+", buffering=0)


def _spawn(program: Program, output: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        program.argv,
        cwd=_named(program.directory),
        env=dict(program.environment),
        stdin=subprocess.PIPE,
        stdout=output,
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


class _Watch:
    """A program's stderr, until its end, which is the program's; and how much it has written so far."""

    def __init__(self, process: subprocess.Popen[bytes], output: int, limit: int) -> None:
        assert process.stderr is not None
        self._loop = asyncio.get_running_loop()
        self._output = output
        self._limit = limit
        self._stderr = process.stderr
        self.errors: list[bytes] = []
        self.cut = Cut.NOT
        self.over: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(self._stderr.fileno(), False)
        self._loop.add_reader(self._stderr.fileno(), self._read)
        self._timer = self._loop.call_later(LOOK_S, self._look)

    def _read(self) -> None:
        try:
            data = os.read(self._stderr.fileno(), ERRORS_LIMIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._stderr.fileno())
            self._finish()
        elif sum(map(len, self.errors)) < ERRORS_LIMIT:
            self.errors.append(data)

    def _look(self) -> None:
        if os.fstat(self._output).st_size > self._limit:
            self.cut = Cut.SIZE
            self._finish()
        else:
            self._timer = self._loop.call_later(LOOK_S, self._look)

    def _finish(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def close(self) -> None:
        self._timer.cancel()
        if not self._stderr.closed:
            self._loop.remove_reader(self._stderr.fileno())
            self._stderr.close()
