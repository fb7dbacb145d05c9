"""The processes of a walled command: all that hangs below the wall's own program. They cannot leave, and when the first
process in there is killed the kernel kills the rest, so nothing has to be searched for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess

from quintet.workspace.process_tree import DEAD_WITHIN_S, GRACE_S, children, descendants, reaped

ASKED = 4_096  # processes that get their SIGTERM; beyond that nobody is tidying up


class WalledTree:
    """Of a child that is bubblewrap: it waits outside, its one child is the first process inside."""

    lives_on = False  # nothing in there outlives it

    def __init__(self, process: subprocess.Popen[bytes], exited: asyncio.Event) -> None:
        self._process = process
        self._exited = exited

    def members(self, limit: int) -> list[int]:
        return descendants(self._process.pid, limit)

    def strike(self) -> None:
        """SIGKILL for the wall and so for all inside. From any thread."""
        first = self._first()
        self._kill(first)
        if first is not None:
            os.close(first)

    async def end(self, grace_s: float = GRACE_S) -> int:
        """SIGTERM inside, a moment of grace, then the wall falls. How many processes there were inside."""
        first = self._first()
        try:
            inside = []
            if grace_s:
                # Not the wall's own two: asked to end, the outer one would take the rest with it, without grace.
                inside = (await asyncio.to_thread(self.members, ASKED))[1:]
                for pid in inside:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGTERM)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._exited.wait(), grace_s)
            self._kill(first)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.gather(_gone(first), self._exited.wait()), DEAD_WITHIN_S)
            self._process.poll()
            return len(inside)
        finally:
            if first is not None:
                os.close(first)

    def end_now(self) -> None:
        """The same without grace and without an event loop."""
        first = self._first()
        self._kill(first)
        if first is not None:
            select.select([first], [], [], DEAD_WITHIN_S)
            os.close(first)
        reaped(self._process, DEAD_WITHIN_S)

    def _first(self) -> int | None:
        """A handle on the first process inside. None: it has not begun, and dies with its parent; or it is over."""
        for pid in children(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                return os.pidfd_open(pid)
        return None

    def _kill(self, first: int | None) -> None:
        if first is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(first, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            self._process.kill()


async def _gone(first: int | None) -> None:
    """Until that process is dead, which it is only after all others in its namespace are."""
    if first is None:
        return
    loop = asyncio.get_running_loop()
    dead = asyncio.Event()
    loop.add_reader(first, dead.set)
    try:
        await dead.wait()
    finally:
        loop.remove_reader(first)
