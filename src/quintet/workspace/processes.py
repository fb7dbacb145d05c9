"""Running a child: a session of its own, its output handed on as it comes, an end in bounded time.

Returns when the child exits, not when its pipes close: a background process holding them must not hold us. Spawns with
Popen and watches descriptors itself, because asyncio's own transports tie a child's end to its pipes in some versions.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

from quintet.workspace.child import Cause, Child, Ended, Receiver
from quintet.workspace.environment import MARKER
from quintet.workspace.process_tree import GRACE_S, LooseTree, reaped
from quintet.workspace.sandbox.namespace import WalledTree
from quintet.workspace.sandbox.warden import Report
from quintet.workspace.sandbox.watch import Watch

READ_SIZE = 65_536
DRAIN_S = 0.25  # how long output is awaited after the exit, when someone else still holds the pipes
_DEADLY = frozenset({*range(1, 32)} - {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH})
_GREEDY = frozenset({Cause.PROCESSES, Cause.TASKS, Cause.MEMORY})


async def run_child(child: Child, receive: Receiver, started: Callable[[], None] = lambda: None) -> Ended:
    """Run to the end. A cancel, or a failure of the receiver, ends the whole tree first and then goes on its way."""
    run = _Run(child, receive)
    try:
        started()
        cause = await run.until_over()
        if cause is not Cause.EXITED:
            # Whoever takes more than his share gets no moment to take more.
            await run.tree.end(0 if cause in _GREEDY else GRACE_S)
        await run.drain()
        left = await run.left_behind() if cause is Cause.EXITED else 0
        if left is None:
            return Ended(Cause.NO_WALL, run.code(), wall_words=run.held_words())
        return Ended(cause, run.code(), left)
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
        self._taken = 0
        self._over: asyncio.Future[Cause] = self._loop.create_future()
        self._gone = asyncio.Event()  # the child has exited
        self._silent = asyncio.Event()  # both pipes are at their end
        self._pipes: dict[int, str] = {}
        self._held: list[tuple[str, bytes]] | None = [] if child.walled else None  # before the command has begun
        self.process, self._report = self._spawn()
        self.tree = self._tree()
        try:
            _first_to_go(self.process.pid)
            self._watch = _watch_exit(self._loop, self.process.pid, self._exited)
        except BaseException:
            self.tree.end_now()
            self._let_go()
            raise
        for handle in self._pipes:
            self._loop.add_reader(handle, self._read, handle)
        if self._report is not None:
            self._loop.add_reader(self._report.pipe, self._hear)

    def _spawn(self) -> tuple[subprocess.Popen[bytes], Report | None]:
        group = self._child.group
        ours, theirs = zip(*(os.pipe() for _ in range(3 if self._child.walled else 2)), strict=True)
        try:
            process = subprocess.Popen(
                group.entering(self._child.argv) if group else self._child.argv,
                cwd=self._child.cwd,
                env=dict(self._child.environment),
                stdin=theirs[2] if self._child.walled else self._child.stdin,
                stdout=theirs[0],
                stderr=theirs[1],
                close_fds=True,  # the journal's locks must never live on in a child
                start_new_session=True,
            )
        except BaseException:
            for handle in ours:
                os.close(handle)
            raise
        finally:
            for handle in theirs:
                os.close(handle)
        self._pipes = {ours[0]: "stdout", ours[1]: "stderr"}
        for handle in self._pipes:
            os.set_blocking(handle, False)
        return process, Report(ours[2]) if self._child.walled else None

    def _tree(self) -> WalledTree | LooseTree:
        if self._child.walled:
            return WalledTree(self.process, self._gone)
        group = self._child.group
        return LooseTree(self.process, self._child.environment[MARKER], group.members if group else tuple)

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
        if self._held is None:
            self._hand_on(self._pipes[handle], data)
        else:
            self._held.append((self._pipes[handle], data))
        if self._taken > self._child.output_limit:
            self._finish(Cause.FLOOD)

    def _hand_on(self, stream: str, data: bytes) -> None:
        try:
            self._receive(stream, data)
        except Exception as error:
            if not self._over.done():
                self._over.set_exception(error)

    def _hear(self) -> None:
        """The warden speaks: what was written until now was the command's, not the wall's."""
        if self._report is None:
            return
        if not self._report.read():
            self._loop.remove_reader(self._report.pipe)
        if self._report.begun:
            held, self._held = self._held or [], None
            for stream, data in held:
                self._hand_on(stream, data)

    def held_words(self) -> str:
        return b"".join(data for _, data in self._held or []).decode("utf-8", "replace").strip()

    def _shut(self, handle: int) -> None:
        self._loop.remove_reader(handle)
        os.close(handle)
        del self._pipes[handle]
        if not self._pipes:
            self._silent.set()

    def _exited(self) -> None:
        self._gone.set()
        self._finish(Cause.EXITED)

    def _finish(self, cause: Cause) -> None:
        if not self._over.done():
            self._over.set_result(cause)

    async def until_over(self) -> Cause:
        watch = Watch(self.tree, self._child.caps, self._child.group) if self._child.caps else None
        watching = asyncio.ensure_future(watch.until_over()) if watch else None
        ends: list[asyncio.Future[Any]] = [self._over] if watching is None else [self._over, watching]
        try:
            async with asyncio.timeout(self._child.timeout_s):
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            return Cause.TIMEOUT
        finally:
            if watching is not None and not watching.done():
                watching.cancel()
        if watch and (over := watch.over or watch.hit()):  # its blow may be felt before its word is heard
            return Cause(over)
        if not self._over.done() and watching is not None:
            watching.result()  # the watch itself has failed
        return self._over.result()

    async def drain(self) -> None:
        """Take what the child wrote before it exited. What it wrote lies in the pipes already; the wait is bounded
        because whoever inherited them may keep them open, or go on writing, forever."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._silent.wait(), DRAIN_S)
        self._hear()

    async def left_behind(self) -> int | None:
        """How many processes the child had left running; they have been ended. None: there never was a child."""
        self._hear()
        if self._report is not None:
            return self._report.left_behind if self._report.begun else None
        if self._child.alone:
            self.process.poll()  # until it is buried its group counts as alive, and the whole machine is searched
        return await self.tree.end() if self.tree.lives_on else 0

    def code(self) -> int:
        if not reaped(self.process):
            return -signal.SIGKILL
        code = self.process.returncode
        # A wall tells death by signal as shells do.
        return 128 - code if self._child.walled and code - 128 in _DEADLY else code

    async def end_whatever_comes(self) -> None:
        """The end of a cancelled call: a second cancel does not leave the tree alive."""
        ending = asyncio.ensure_future(self.tree.end())
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                continue
        if ending.cancelled():  # the loop itself is shutting down and took every task with it
            self.tree.end_now()

    def close(self) -> None:
        self._watch()
        for handle in list(self._pipes):
            self._shut(handle)
        self._let_go()

    def _let_go(self) -> None:
        for handle in self._pipes:
            os.close(handle)
        if self._report is not None:
            self._loop.remove_reader(self._report.pipe)
            os.close(self._report.pipe)


def _first_to_go(pid: int) -> None:
    """Where the machine runs out of memory, the kernel takes the command and not Quintet."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as file:
        file.write("1000")


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
