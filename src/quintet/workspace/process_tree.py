"""Finding and ending every process of a call: by process group, by session, by descent, and by the marker in its
environment, which also finds those that left group and session. Linux reads /proc; elsewhere the group has to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess

from quintet.workspace.environment import MARKER

GRACE_S = 0.3  # between asking and killing
LOOK_S = 0.02
ROUNDS = 60  # of looking: a tree that forks faster than it is found is given up after that


def group_lives(pid: int) -> bool:
    """Whether any process is left in the group the child began. Cheap; a dead one nobody reaped counts too."""
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def end_tree(process: subprocess.Popen[bytes], marker: str) -> int:
    """SIGTERM, a moment of grace, SIGKILL until nothing is left. How many processes there were beside the child."""
    loop = asyncio.get_running_loop()
    found = await asyncio.to_thread(tree_of, process.pid, marker)
    others = len(found - {process.pid})
    _send(found, process.pid, signal.SIGTERM)
    deadline = loop.time() + GRACE_S
    for _ in range(ROUNDS):
        process.poll()
        if not found:
            break
        await asyncio.sleep(LOOK_S)
        found = await asyncio.to_thread(tree_of, process.pid, marker)
        if loop.time() >= deadline:
            _send(found, process.pid, signal.SIGKILL)
    process.poll()
    return others


def end_tree_now(process: subprocess.Popen[bytes], marker: str) -> None:
    """SIGKILL at once, without an event loop: for the moments when there is none to wait on."""
    for _ in range(ROUNDS):
        found = tree_of(process.pid, marker)
        if not found:
            break
        _send(found, process.pid, signal.SIGKILL)
    process.wait()


def _send(pids: set[int], group: int, number: signal.Signals) -> None:
    if group_lives(group):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def tree_of(pid: int, marker: str) -> set[int]:
    """The living processes of the call (the dead that wait to be reaped left out). Blocking, a few milliseconds."""
    parents: dict[int, int] = {}
    found: set[int] = set()
    tag = f"{MARKER}={marker}".encode()
    names = _processes()
    if not names:
        return {pid} if group_lives(pid) else set()
    for name in names:
        seen = _stat(name)
        if seen is None or int(name) == os.getpid():
            continue
        parent, group, session = seen
        parents[int(name)] = parent
        if pid in (group, session) or _carries(name, tag):
            found.add(int(name))
    if pid in parents:
        found.add(pid)
    grown = True
    while grown:
        children = {child for child, parent in parents.items() if parent in found}
        grown = not children <= found
        found |= children
    return found


def _processes() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _stat(name: str) -> tuple[int, int, int] | None:
    """Parent, group and session; None for one that is gone or dead."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            # The program's name stands in brackets and may hold anything, brackets too: read behind the last one.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if len(fields) < 4 or fields[0] in (b"Z", b"X"):
        return None
    return int(fields[1]), int(fields[2]), int(fields[3])


def _carries(name: str, tag: bytes) -> bool:
    try:
        with open(f"/proc/{name}/environ", "rb") as file:
            return tag in file.read().split(b"\0")
    except OSError:
        return False
