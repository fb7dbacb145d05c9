"""Caps: how much of the machine one command may take. Some the kernel holds (rlimits), some Quintet watches.

Knows numbers and how to say them to a program; who is over them is found in watch.py.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import msgspec

MIB = 1024 * 1024
PROCESSES = 1_024
MEMORY_MOST = 8 * 1024 * MIB
FILE = 4 * 1024 * MIB
TASKS = 4  # the kernel counts threads too, so it lets through so many times the processes
Over = Literal["processes", "tasks", "memory"]
Limit = tuple[str, int]  # a name of the resource module without RLIMIT_, and its value

# For a command without a wall. `ulimit` counts files in blocks of 512 bytes, and processes by -u or by -p. A limit that
# cannot be set is left.
_LIMITED = """\
exec 3>&2 2>/dev/null
command ulimit -c 0
command ulimit -f "$1"
command ulimit -u "$2" || command ulimit -p "$2"
command ulimit -t "$3"
shift 3
exec "$@" 2>&3 3>&-
"""


class Caps(msgspec.Struct, frozen=True):
    """Per command, together with everything it starts; sizes in bytes."""

    processes: int
    memory: int
    file: int  # one file, not all of them


def usual_caps(
    *, max_processes: int | None = None, max_memory_mib: int | None = None, max_file_mib: int | None = None
) -> Caps:
    """The defaults where nothing is said: 1,024 processes, half of the memory but at most 8 GiB, files of 4 GiB."""
    return Caps(
        max_processes or PROCESSES,
        max_memory_mib * MIB if max_memory_mib else min(memory_here() // 2, MEMORY_MOST),
        max_file_mib * MIB if max_file_mib else FILE,
    )


def rlimits(caps: Caps, timeout_s: float) -> tuple[Limit, ...]:
    """What the kernel holds a walled command to.

    NPROC counts threads too, and only those inside the wall; it is the second line, for a tree that grows faster than
    it is watched: were it the cap itself, a fork bomb would stay just below it for as long as it likes. It does not
    hold root; a control group does (groups.py). DATA is not set: programs built with sanitizers reserve terabytes that
    they never touch, and the watch sees what is touched.
    """
    cpu = ("CPU", cpu_seconds(timeout_s))
    return (("NPROC", TASKS * caps.processes), ("FSIZE", caps.file), cpu, ("CORE", 0))


def cpu_seconds(timeout_s: float) -> int:
    """Of one process: what it could use on every core until its time is over. Holds also when nobody watches."""
    return int(timeout_s * (os.cpu_count() or 1)) + 1


def limited(argv: Sequence[str], caps: Caps, timeout_s: float) -> tuple[str, ...]:
    """The command with what can be set for one without a wall. There NPROC counts all that the user runs, so what runs
    already comes on top; root is held by a control group only."""
    processes = processes_here() + TASKS * caps.processes
    numbers = (caps.file // 512, processes, cpu_seconds(timeout_s))
    return ("/bin/sh", "-c", _LIMITED, "sh", *map(str, numbers), *argv)


def processes_here() -> int:
    """Of the whole machine, threads included. 0 where that is not told."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[3].partition(b"/")[2])
    except (OSError, IndexError, ValueError):
        return 0


def memory_here() -> int:
    """Bytes this process could use: the machine's, or less where its container has less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            return min(machine, int(file.read()))
    except (OSError, ValueError):  # no such file, or the word "max"
        return machine
