"""Child: what is to be run, and how it ended. Running it is done in processes.py."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

import msgspec

from quintet.workspace.sandbox.groups import Group
from quintet.workspace.sandbox.limits import Caps
from quintet.workspace.sandbox.watched import PutBack

Receiver = Callable[[str, bytes], None]  # stream name, bytes
Scripts = tuple[tuple[str, str], ...]  # paths of files a command runs, each with the SHA-256 of its content
CHANGED = 124  # what the wall ends with when one of them is not what it was; the launcher knows it as well


class Cause(StrEnum):
    EXITED = "exited"
    TIMEOUT = "timeout"
    FLOOD = "flood"  # wrote more than it may
    PROCESSES = "processes"  # more at a time than it may
    TASKS = "tasks"  # processes and threads together
    MEMORY = "memory"
    NO_WALL = "no wall"  # the sandbox fell before the command began


class Ended(msgspec.Struct, frozen=True):
    cause: Cause
    code: int  # as waitpid says: negative = killed by that signal
    left_behind: int = 0  # processes that were still running when the child had ended, and were ended too
    put_back: tuple[PutBack, ...] = ()  # protected names that were changed
    refused: tuple[str, ...] = ()  # what its list of allowed hosts did not let through
    emptied: int = 0  # bytes removed from its temporary directory before it began
    wall_words: str = ""  # what the wall said as it fell, before there was a command


class Child(msgspec.Struct, frozen=True):
    """What to run. The environment is the whole one and must carry the marker."""

    argv: Sequence[str]
    cwd: str
    environment: Mapping[str, str]
    timeout_s: float
    output_limit: int  # bytes of both streams together
    caps: Caps | None = None  # None: a program of ours, which needs no watching
    group: Group | None = None  # it is to run in; removed by whoever made it
    walled: bool = False  # argv is the sandbox's, with a warden inside
    scripts: Scripts = ()  # to be looked at once more before it begins
    alone: bool = False  # a program of ours that starts no others: nobody is looked for when it has ended
    stdin: int = subprocess.DEVNULL  # or a descriptor to read from


def died_of(code: int) -> str:
    """How a program ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}"
    return f"killed by signal {-code}"
