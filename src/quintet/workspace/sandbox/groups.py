"""Control groups: one for each command, in which the kernel itself holds the caps, for root as well.

They are named after the process that made them, so that those of one that died are found and removed. Where no group
can be made (see group_places.py) rlimits and the watch hold alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence

from quintet.workspace.process_tree import begun
from quintet.workspace.sandbox.group_places import Place, places
from quintet.workspace.sandbox.limits import TASKS, Caps, Over

TRY_WITHIN_S = 5.0
LOOK_S, ROUNDS = 0.01, 50  # of looking whether the last one in a group is dead
_ENTER = """\
while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done
shift
exec "$@"
"""
_NAME = re.compile(r"quintet-(\d+)-(\d+)-(\d+)-\d+")  # namespace, process, when that began, number
_numbers = itertools.count(1)


class Group:
    """Of one command: its directories by controller, `pids` among them."""

    def __init__(self, name: str, where: Mapping[str, Place]) -> None:
        self._where = where
        self._at = {place.directory: os.path.join(place.directory, name) for place in where.values()}
        self._pids = self._at[where["pids"].directory]

    def make(self, caps: Caps) -> None:
        for directory in self._at.values():
            os.mkdir(directory)
        _write(f"{self._pids}/pids.max", TASKS * caps.processes)
        if (memory := self._where.get("memory")) is not None:
            directory = self._at[memory.directory]
            _write(f"{directory}/{'memory.max' if memory.unified else 'memory.limit_in_bytes'}", caps.memory)
            with contextlib.suppress(OSError):  # a machine that does not count swap
                if memory.unified:
                    _write(f"{directory}/memory.swap.max", 0)
                else:
                    _write(f"{directory}/memory.memsw.limit_in_bytes", caps.memory)

    def entering(self, argv: Sequence[str]) -> tuple[str, ...]:
        """The command, which enters the group before anything else. If it cannot it does not run."""
        doors = {os.path.join(self._at[place.directory], _door(place)) for place in self._where.values()}
        return ("/bin/sh", "-c", _ENTER, "sh", *doors, "--", *argv)

    def members(self, limit: int = 0) -> list[int]:
        """Its processes, at most so many of them."""
        words = _read(f"{self._pids}/cgroup.procs").split()
        return [int(word) for word in (words[:limit] if limit else words)]

    def tasks(self) -> int:
        """Processes and threads."""
        return int(_read(f"{self._pids}/pids.current") or 0)

    def hit(self) -> Over | None:
        """The cap at which the kernel has stopped it."""
        if _counted(f"{self._pids}/pids.events", "max"):
            return "tasks"
        memory = self._where.get("memory")
        if memory is not None:
            name = "memory.events" if memory.unified else "memory.oom_control"
            if _counted(f"{self._at[memory.directory]}/{name}", "oom_kill"):
                return "memory"
        return None

    def strike(self) -> None:
        """SIGKILL for everyone in it. None is missed, since from here on nobody in it can start another."""
        with contextlib.suppress(OSError):
            _write(f"{self._pids}/pids.max", 0)
        for pid in self.members():
            if pid:  # 0: one that cannot be seen from here
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def remove(self) -> bool:
        """False: somebody is still dying in it."""
        for directory in self._at.values():
            try:
                os.rmdir(directory)
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True


class Groups:
    """Those of this process."""

    def __init__(self, where: Mapping[str, Place]) -> None:
        self._where = where if "pids" in where else {}
        self._dying: list[Group] = []

    @property
    def controllers(self) -> tuple[str, ...]:
        """What the kernel holds by them; none where no group can be made."""
        return tuple(self._where)

    def made(self, caps: Caps) -> Group | None:
        """None where there are none, and where one more could not be made."""
        if not self._where:
            return None
        self.tidy()
        group = Group(f"quintet-{_namespace()}-{os.getpid()}-{begun(os.getpid())}-{next(_numbers)}", self._where)
        try:
            group.make(caps)
        except OSError:
            group.remove()
            return None
        return group

    def discard(self, group: Group) -> None:
        """With whatever is left in it. Never waits: one that is not empty yet is removed when tidying up."""
        if not group.remove():
            group.strike()
            self._dying.append(group)

    async def discarded(self, group: Group) -> None:
        """Returns when it is gone, or will not be for a while."""
        self.discard(group)
        for _ in range(ROUNDS):
            if group not in self._dying:
                break
            await asyncio.sleep(LOOK_S)
            self.tidy()

    def tidy(self) -> None:
        self._dying = [group for group in self._dying if not group.remove()]

    def sweep(self) -> None:
        """Remove those of processes that died, with what still runs in them: it should have ended with them."""
        for directory in {place.directory for place in self._where.values()}:
            for name in os.listdir(directory):
                match = _NAME.fullmatch(name)
                # A number of another namespace says nothing about who is alive here.
                if match and match[1] == _namespace() and str(begun(int(match[2]))) != match[3]:
                    self.discard(Group(name, self._where))


def groups_here() -> Groups:
    """Tried by running a program in one. Blocking, a few milliseconds."""
    groups = Groups(places())
    group = groups.made(Caps(processes=16, memory=64 * 1024 * 1024, file=0))
    if group is None:
        return Groups({})
    try:
        # Not by a name from PATH, which may lead into a workspace: this one runs outside of any wall.
        subprocess.run(group.entering(["/bin/sh", "-c", ":"]), capture_output=True, timeout=TRY_WITHIN_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return Groups({})
    finally:
        groups.discard(group)
    groups.sweep()
    return groups


def _door(place: Place) -> str:
    """For one that enters by itself and has no threads yet, both do the same in version 1; but to move a whole process
    the kernel waits ten milliseconds for all others."""
    return "cgroup.procs" if place.unified else "tasks"


def _namespace() -> str:
    return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))


def _counted(path: str, name: str) -> int:
    for line in _read(path).splitlines():
        word, _, number = line.partition(" ")
        if word == name:
            return int(number)
    return 0


def _read(path: str) -> str:
    """Empty when the group is gone."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, number: int) -> None:
    with open(path, "w") as file:
        file.write(str(number))
