"""Watch: looks at a running command's processes and says when they are more, or hold more memory, than they may.

Looks in a thread of its own, so that neither a big tree nor busy workers keep the event loop or the next look waiting.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Protocol

from quintet.workspace.sandbox.groups import Group
from quintet.workspace.sandbox.limits import Caps, Over, processes_here

EVERY_S = 0.1
GLANCE_S = 0.02  # between two readings of how many processes there are, which costs next to nothing
RISE = 64  # more than that, and the next look is due at once
SHARE = 5  # looking takes at most one part in so many of the time


class Watched(Protocol):
    def members(self, limit: int) -> Collection[int]:
        """The tree's processes, at most so many of them."""

    def strike(self) -> None:
        """SIGKILL to what can be reached in one go. From any thread."""


class Watch:
    """Over one command. With a group the kernel counts, and holds what grows faster than it is looked at."""

    def __init__(self, tree: Watched, caps: Caps, group: Group | None = None) -> None:
        self._tree = tree
        self._caps = caps
        self._group = group
        self.over: Over | None = None  # set before anything is killed for it

    async def until_over(self) -> None:
        """Returns when a cap is exceeded and the worst is over; cancelled when the command ends before."""
        loop = asyncio.get_running_loop()
        took_s = 0.0
        while self.over is None:
            await _pause(max(EVERY_S, SHARE * took_s), self._group.tasks if self._group else processes_here)
            took_s = await loop.run_in_executor(_thread(), self._look)

    def _look(self) -> float:
        begun = time.monotonic()
        counted = self._group or self._tree
        self.over = judged(counted.members(self._caps.processes + 1), self._caps) or self.hit()
        if self.over is not None:
            # From here: where the machine is at its limit, the event loop's next turn may be long in coming.
            if self._group is not None:
                self._group.strike()
            self._tree.strike()
        return time.monotonic() - begun

    def hit(self) -> Over | None:
        """The cap at which the kernel has stopped it, which a command may survive, or die of unseen."""
        return self._group.hit() if self._group is not None else None


async def _pause(seconds: float, count: Callable[[], int]) -> None:
    """Until the next look: shorter where processes (of the whole machine, where there is no group) suddenly become
    many."""
    usual = count()
    for _ in range(round(seconds / GLANCE_S)):
        await asyncio.sleep(GLANCE_S)
        if count() - usual > RISE:
            return


@cache
def _thread() -> ThreadPoolExecutor:
    """One for all commands: what looking costs stays bounded however many run."""
    return ThreadPoolExecutor(1, "watch")


def judged(pids: Collection[int], caps: Caps) -> Over | None:
    if len(pids) > caps.processes:
        return "processes"
    if sum(map(_resident, pids)) <= caps.memory:
        return None
    # What forked processes still share was counted once for each. The exact figure costs more, so it comes second.
    return "memory" if sum(map(_proportional, pids)) > caps.memory else None


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return _resident(pid)  # gone, or not ours to look into
