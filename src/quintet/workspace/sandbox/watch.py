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
from typing import Literal

from quintet.workspace.sandbox.limits import Caps

EVERY_S = 0.1
SHARE = 5  # looking takes at most one part in so many of the time
Members = Callable[[int], Collection[int]]  # the tree's processes, at most so many of them
Over = Literal["processes", "memory"]


async def over_the_cap(members: Members, caps: Caps) -> Over:
    """Returns when a cap is exceeded; cancelled when the command ends before."""
    loop = asyncio.get_running_loop()
    pause_s = EVERY_S
    while True:
        await asyncio.sleep(pause_s)
        over, took_s = await loop.run_in_executor(_thread(), _timed_look, members, caps)
        if over is not None:
            return over
        pause_s = max(EVERY_S, SHARE * took_s)


@cache
def _thread() -> ThreadPoolExecutor:
    """One for all commands: what looking costs stays bounded however many run."""
    return ThreadPoolExecutor(1, "watch")


def _timed_look(members: Members, caps: Caps) -> tuple[Over | None, float]:
    begun = time.monotonic()
    return look(members, caps), time.monotonic() - begun


def look(members: Members, caps: Caps) -> Over | None:
    pids = members(caps.processes + 1)
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
