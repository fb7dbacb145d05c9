"""Running a child: a session of its own, its output handed on as it comes, an end in bounded time.

Returns when the child exits, not when its pipes close: a background process holding them must not hold us. Spawns with
Popen and watches descriptors itself, because asyncio's own transports tie a child's end to its pipes in some versions.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

import msgspec

from quintet.workspace.environment import MARKER
from quintet.workspace.process_tree import end_tree, end_tree_now, group_lives

READ_SIZE = 65_536
DRAIN_S = 0.25  # how long output is awaited after the exit, when someone else still holds the pipes
Receiver = Callable[[str, bytes], None]  # stream name, bytes


class Cause(StrEnum):
    EXITED = "exited"
    TIMEOUT = "timeout"
    FLOOD = "flood"  # wrote more than it may


class Ended(msgspec.Struct, frozen=True):
    cause: Cause
    code: int  # as waitpid says: negative = killed by that signal
    left_behind: int = 0  # processes that were still running when the child had ended, and were ended too


class Child(msgspec.Struct, frozen=True):
    """What to run. The environment is the whole one and must carry the marker."""

    argv: Sequence[str]
    cwd: str
    environment: Mapping[str, str]
    timeout_s: float
    output_limit: int  # bytes of both streams together
    stdin: int = subprocess.DEVNULL  # or a descriptor to read from


async def run_child(child: Child, receive: Receiver) -> Ended:
    """Run to the end. A cancel, or a failure of the receiver, ends the whole tree first and then goes on its way."""
    run = _Run(child, receive)
    try:
        cause = await run.until_over()
        if cause is not Cause.EXITED:
            await run.end()
        await run.drain()
        left = await run.end() if group_lives(run.process.pid) else 0
        code = run.process.poll()
        return Ended(cause, -9 if code is None else code, left if cause is Cause.EXITED else 0)
    except BaseException:
        await run.end_whatever_comes()
        raise
    finally:
        run.close()


class _Run:
    def __init__(self, child: Child, receive: Receiver) -> None:
        self._loop = asyncio.get_running_loop()
        self._child = child
        self._receive = receive
        self._marker = child.environment[MARKER]
        self._taken = 0
        self._over: asyncio.Future[Cause] = self._loop.create_future()
        self._silent = asyncio.Event()  # both pipes are at their end
        self._pipes: dict[int, str] = {}
        self.process = self._spawn()
        try:
            self._watch = _watch_exit(self._loop, self.process.pid, self._exited)
        except BaseException:
            end_tree_now(self.process, self._marker)
            for handle in self._pipes:
                os.close(handle)
            raise
        for handle in self._pipes:
            self._loop.add_reader(handle, self._read, handle)

    def _spawn(self) -> subprocess.Popen[bytes]:
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        try:
            process = subprocess.Popen(
                self._child.argv,
                cwd=self._child.cwd,
                env=dict(self._child.environment),
                stdin=self._child.stdin,
                stdout=out_end,
                stderr=err_end,
                close_fds=True,  # the journal's locks must never live on in a child
                start_new_session=True,
            )
        except BaseException:
            os.close(out)
            os.close(err)
            raise
        finally:
            os.close(out_end)
            os.close(err_end)
        os.set_blocking(out, False)
        os.set_blocking(err, False)
        self._pipes = {out: "stdout", err: "stderr"}
        return process

    def _read(self, handle: int) -> None:
        try:
            data = os.read(handle, READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._shut(handle)
            return
        self._taken += len(data)
        try:
            self._receive(self._pipes[handle], data)
        except Exception as error:
            if not self._over.done():
                self._over.set_exception(error)
        if self._taken > self._child.output_limit:
            self._finish(Cause.FLOOD)

    def _shut(self, handle: int) -> None:
        self._loop.remove_reader(handle)
        os.close(handle)
        del self._pipes[handle]
        if not self._pipes:
            self._silent.set()

    def _exited(self) -> None:
        self._finish(Cause.EXITED)

    def _finish(self, cause: Cause) -> None:
        if not self._over.done():
            self._over.set_result(cause)

    async def until_over(self) -> Cause:
        try:
            return await asyncio.wait_for(asyncio.shield(self._over), self._child.timeout_s)
        except TimeoutError:
            return Cause.TIMEOUT

    async def drain(self) -> None:
        """Take what the child wrote before it exited. What it wrote lies in the pipes already; the wait is bounded
        because whoever inherited them may keep them open, or go on writing, forever."""
        try:
            await asyncio.wait_for(self._silent.wait(), DRAIN_S)
        except TimeoutError:
            return

    async def end(self) -> int:
        """End every process of this call; how many there were beside the child itself."""
        return await end_tree(self.process, self._marker)

    async def end_whatever_comes(self) -> None:
        """The end of a cancelled call: a second cancel does not leave the tree alive."""
        ending = asyncio.ensure_future(self.end())
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                continue
        if ending.cancelled():  # the loop itself is shutting down and took every task with it
            end_tree_now(self.process, self._marker)

    def close(self) -> None:
        self._watch()
        for handle in list(self._pipes):
            self._shut(handle)


def _watch_exit(loop: asyncio.AbstractEventLoop, pid: int, exited: Callable[[], None]) -> Callable[[], None]:
    """Call once when the process ends, without reaping it; returns what stops watching."""
    if hasattr(os, "pidfd_open"):
        handle = os.pidfd_open(pid)

        def seen() -> None:
            loop.remove_reader(handle)
            exited()

        def stop() -> None:
            loop.remove_reader(handle)
            os.close(handle)

        loop.add_reader(handle, seen)
        return stop
    waiting = loop.run_in_executor(None, os.waitid, os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    waiting.add_done_callback(lambda done: None if done.cancelled() or done.exception() else exited())
    return lambda: None
