"""The processes of a command without a wall: found by process group, by session, by descent, and by the marker in the
environment, which also finds those that left group and session. Linux reads /proc; elsewhere the group has to do.

We do not adopt orphans (as a child subreaper): nobody would bury those that die, and a command that multiplies would
fill the machine with its dead.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from functools import cache

from quintet.workspace.environment import MARKER

GRACE_S = 0.3  # between asking and killing
DEAD_WITHIN_S = 1.5  # after the SIGKILL; who is not is reaped later
LOOK_S = 0.02
ROUNDS = 60  # of looking: a tree that forks faster than it is found is given up after that
_BEGUN = 19  # the field of /proc/N/stat behind the name that tells one process from the next of its number


class LooseTree:
    """Of a child that was spawned without a wall, in a session of its own. `grouped` names those in its control group,
    where it has one: they are found there whatever they do."""

    def __init__(
        self, process: subprocess.Popen[bytes], marker: str, grouped: Callable[[], Collection[int]] = tuple
    ) -> None:
        self._process = process
        self._marker = marker
        self._grouped = grouped
        self._known: dict[int, bytes] = {}  # everyone ever found, by the time it began

    def members(self, limit: int) -> set[int]:
        return tree_of(self._process.pid, self._marker, self._known, limit).union(self._grouped())

    def strike(self) -> None:
        """SIGKILL for all who stayed in the group, and so for most. From any thread."""
        _send((), self._process.pid, signal.SIGKILL)

    @property
    def lives_on(self) -> bool:
        return group_lives(self._process.pid) or bool(self._grouped())

    async def end(self, grace_s: float = GRACE_S) -> int:
        """SIGTERM, a moment of grace, SIGKILL until nothing is left. How many processes there were beside the child."""
        loop = asyncio.get_running_loop()
        group = self._process.pid
        found = await asyncio.to_thread(self.members, 0)
        others = len(found - {group})
        _send(found, group, signal.SIGTERM if grace_s else signal.SIGKILL)
        deadline = loop.time() + grace_s
        for _ in range(ROUNDS):
            self._process.poll()
            if not found:
                break
            await asyncio.sleep(LOOK_S)
            found = await asyncio.to_thread(self.members, 0)
            if loop.time() >= deadline:
                _send(found, group, signal.SIGKILL)
        self._process.poll()
        return others

    def end_now(self) -> None:
        """SIGKILL at once, without an event loop: for the moments when there is none to wait on."""
        for _ in range(ROUNDS):
            found = self.members(0)
            if not found:
                break
            _send(found, self._process.pid, signal.SIGKILL)
        reaped(self._process, DEAD_WITHIN_S)


_undead: list[subprocess.Popen[bytes]] = []  # killed and not dead yet; each is asked again when the next one ends


def reaped(process: subprocess.Popen[bytes], within_s: float = 0.0) -> bool:
    """Wait at most so long for one that was killed. A disk that does not answer, or a debugger, can keep it from dying
    for as long as it likes; it is then remembered and reaped later, and nobody waits for it."""
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        _undead.append(process)
    _undead[:] = [one for one in _undead if one.poll() is None]
    return process.returncode is not None


def group_lives(pid: int) -> bool:
    """Whether any process is left in the group the child began. Cheap; a dead one nobody reaped counts too."""
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _send(pids: Iterable[int], group: int, number: signal.Signals) -> None:
    if group_lives(group):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def tree_of(pid: int, marker: str, known: dict[int, bytes] | None = None, limit: int = 0) -> set[int]:
    """The living processes of the call (the dead that wait to be reaped left out). Blocking, a few milliseconds.

    `known` remembers between two looks: who was found once is found again, whatever it did to hide meanwhile. With a
    limit it stops there, and looks at the youngest first: whoever multiplies is found at once.
    """
    known = {} if known is None else known
    parents: dict[int, int] = {}
    begun: dict[int, bytes] = {}
    found: set[int] = set()
    tag = f"{MARKER}={marker}".encode()
    names = _processes()
    if not names:
        return {pid} if group_lives(pid) else set()
    for name in sorted(names, key=int, reverse=True):
        fields, number = _fields(name), int(name)
        if fields is None or fields[0] in (b"Z", b"X") or number == os.getpid():
            continue
        parents[number], begun[number] = int(fields[1]), fields[_BEGUN]
        in_session = pid in (number, int(fields[2]), int(fields[3]))
        if in_session or known.get(number) == fields[_BEGUN] or _carries(name, tag):
            found.add(number)
            if len(found) == limit:
                return found
    grown = True
    while grown:
        below = {child for child, parent in parents.items() if parent in found}
        grown = not below <= found
        found |= below
    known.update((number, begun[number]) for number in found)
    return found


def begun(pid: int) -> int | None:
    """When it began, which tells it from the next process of its number. None for one that is gone."""
    fields = _fields(str(pid))
    return None if fields is None else int(fields[_BEGUN])


def descendants(pid: int, limit: int) -> list[int]:
    """Children and theirs, nearest first, at most so many. Blocking; reads only what belongs to the tree."""
    below = children if _children_are_told() else _children_of_all().__getitem__
    found: list[int] = []
    place = -1
    while place < len(found) and len(found) < limit:
        found += below(pid if place < 0 else found[place])
        place += 1
    return found[:limit]


def children(pid: int) -> list[int]:
    """Empty for one that is gone."""
    if not _children_are_told():
        return _children_of_all()[pid]
    found = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += [int(word) for word in file.read().split()]
    return found


@cache
def _children_are_told() -> bool:
    """Whether this kernel lists a process's children; some are built without."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def _children_of_all() -> defaultdict[int, list[int]]:
    found: defaultdict[int, list[int]] = defaultdict(list)
    for name in _processes():
        if (fields := _fields(name)) is not None:
            found[int(fields[1])].append(int(name))
    return found


def _processes() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _fields(name: str) -> list[bytes] | None:
    """State, parent, group, session and more of /proc/N/stat; None for one that is gone."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            # The program's name stands in brackets and may hold anything, brackets too: read behind the last one.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields if len(fields) > _BEGUN else None


def _carries(name: str, tag: bytes) -> bool:
    try:
        with open(f"/proc/{name}/environ", "rb") as file:
            return tag in file.read().split(b"\0")
    except OSError:
        return False
