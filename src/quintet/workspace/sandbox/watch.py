"""Watch: looks at a running command's processes and says when they are more, or hold more memory, than they may.

Looks in a thread of its own, so that neither a big tree nor busy workers keep the event loop or the next look waiting.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Literal, Protocol

from quintet.workspace.sandbox.limits import Caps

EVERY_S = 0.1
GLANCE_S = 0.02  # between two readings of how many processes the machine has, which costs next to nothing
SHARE = 5  # looking takes at most one part in so many of the time
Over = Literal["processes", "memory"]


class Watched(Protocol):
    def members(self, limit: int) -> Collection[int]:
        """The tree's processes, at most so many of them."""

    def strike(self) -> None:
        """SIGKILL to what can be reached in one go. From any thread."""


async def over_the_cap(tree: Watched, caps: Caps) -> Over:
    """Returns when a cap is exceeded and the worst is over; cancelled when the command ends before."""
    loop = asyncio.get_running_loop()
    pause_s = EVERY_S
    while True:
        usual = _processes_here()
        due = loop.time() + pause_s
        while loop.time() < due and _processes_here() - usual <= caps.processes:
            await asyncio.sleep(GLANCE_S)
        over, took_s = await loop.run_in_executor(_thread(), _judge, tree, caps)
        if over is not None:
            return over
        pause_s = max(EVERY_S, SHARE * took_s)


def _processes_here() -> int:
    """Of the whole machine: a sudden rise is a reason to look at once. 0 where that is not told."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[3].partition(b"/")[2])
    except (OSError, IndexError, ValueError):
        return 0


@cache
def _thread() -> ThreadPoolExecutor:
    """One for all commands: what looking costs stays bounded however many run."""
    return ThreadPoolExecutor(1, "watch")


def _judge(tree: Watched, caps: Caps) -> tuple[Over | None, float]:
    begun = time.monotonic()
    over = look(tree.members(caps.processes + 1), caps)
    if over is not None:
        tree.strike()  # from here: where the machine is at its limit, the event loop's next turn may be long in coming
    return over, time.monotonic() - begun


def look(pids: Collection[int], caps: Caps) -> Over | None:
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
