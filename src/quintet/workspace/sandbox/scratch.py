"""How much lies in the temporary directories of threads, and what happens when that is too much.

They are on disk, so while a command runs only the disk stops its writes. They are counted before each command: one that
holds too much is emptied, or where all together do, those used longest ago; its thread is told with its next command.
One in which a command still runs is never emptied. Knows directories and numbers, nothing of threads.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter

from quintet.domain.errors import Busy
from quintet.workspace.sandbox.command_trees import beside, entered, remove
from quintet.workspace.sandbox.limits import MIB

MOST = 4 * 1024 * MIB  # in one
ALL = 16 * 1024 * MIB  # in all of this process
FILES = 100_000  # in one; more are too much to count, and so too much
DEPTH = 100  # directories in directories: the same


class Scratches:
    """From any thread."""

    def __init__(self) -> None:
        self._bytes: dict[str, int] = {}  # by directory, the one used latest last
        self._running: Counter[str] = Counter()
        self._emptied: dict[str, int] = {}  # not told yet
        self._lock = threading.Lock()

    def enter(self, place: str) -> int:
        """A command begins there; how much was removed that nobody was told of. Busy where nothing can be removed."""
        with self._lock:
            for one in {place, *self._running}:
                self._bytes[one] = counted(one)
            self._bytes[place] = self._bytes.pop(place)
            self._make_room(place)
            self._running[place] += 1
            return self._emptied.pop(place, 0)

    def leave(self, place: str) -> None:
        with self._lock:
            self._running[place] -= 1
            self._running += Counter()  # drops who has none
            self._bytes[place] = counted(place)

    def _make_room(self, place: str) -> None:
        idle = [one for one in self._bytes if not self._running[one]]
        if place in idle and self._bytes[place] > MOST:
            self._empty(place)
        for one in idle:
            if sum(self._bytes.values()) > ALL:
                self._empty(one)
        if self._bytes[place] > MOST or sum(self._bytes.values()) > ALL:
            raise Busy(
                f"Temporary files take more than {MOST // MIB} MiB in this thread or {ALL // MIB} MiB in all, and "
                "commands that still run may need them.",
                next_step="End a background command with shell_stop, or wait for one to end.",
            )

    def _empty(self, place: str) -> None:
        before = self._bytes[place]
        remove(place)
        with contextlib.suppress(FileExistsError):  # something in it cannot be removed, and stays counted
            os.mkdir(place, 0o700)
        self._bytes[place] = counted(place)
        if before:
            self._emptied[place] = self._emptied.get(place, 0) + before


def counted(place: str) -> int:
    """Bytes on disk under a directory; it stops where they, the files or the depth are too much. Holes are not
    counted. Commands may be at work there meanwhile."""
    count = _Count()
    with contextlib.suppress(OSError), beside(place) as (above, name):
        count.add(above, name, DEPTH)
    return count.bytes


class _Count:
    def __init__(self) -> None:
        self.bytes = 0
        self._files = 0

    def add(self, above: int, name: str, depth: int) -> None:
        if depth == 0:
            self._too_much()
            return
        with contextlib.suppress(OSError), entered(above, name) as directory, os.scandir(directory) as entries:
            for entry in entries:
                self._files += 1
                if self._files > FILES:
                    self._too_much()
                if self.bytes > MOST:
                    return
                with contextlib.suppress(OSError):  # gone meanwhile
                    self.bytes += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        self.add(directory, entry.name, depth - 1)

    def _too_much(self) -> None:
        self.bytes = max(self.bytes, MOST + 1)
