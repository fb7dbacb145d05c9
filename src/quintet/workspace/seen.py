"""Seen: which content of which file a thread last read or left behind. Bounded; what falls out counts as never seen.

Kept in memory only: after a restart a file is read again before it is changed, which costs a call and no safety; or
somebody who knows what was read says so.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Sequence
from enum import Enum
from hashlib import sha256
from threading import Lock

from quintet.workspace.handles import open_plain

TEXT_LIMIT = 16 * 1024 * 1024
THREADS = 256
PATHS = 1_000  # of one thread


class Sight(Enum):
    NEVER = "never"
    CHANGED = "changed"
    CURRENT = "current"


class Seen:
    def __init__(self, *, threads: int = THREADS, paths: int = PATHS) -> None:
        self._limits = (threads, paths)
        self._threads: OrderedDict[str, OrderedDict[str, bytes]] = OrderedDict()
        self._lock = Lock()  # calls of one turn run at the same time, each in its own thread of the process
        self.changing = Lock()  # held from the look at a file until it is replaced, so that no change is lost

    def note(self, thread: str, path: str, content: bytes) -> None:
        """The thread now knows the file at this path by this content, or by a part of it."""
        threads, paths = self._limits
        with self._lock:
            known = self._threads.setdefault(thread, OrderedDict())
            self._threads.move_to_end(thread)
            known[path] = sha256(content).digest()
            known.move_to_end(path)
            if len(known) > paths:
                known.popitem(last=False)
            if len(self._threads) > threads:
                self._threads.popitem(last=False)

    def copy(self, source: str, target: str) -> None:
        """Who goes on where another left off knows what that one knew."""
        with self._lock:
            if source in self._threads:
                self._threads[target] = OrderedDict(self._threads[source])

    def forget(self, thread: str) -> None:
        with self._lock:
            self._threads.pop(thread, None)

    async def recall(self, thread: str, used: Sequence[tuple[str, int]]) -> None:
        """(path, when) of what the thread last read or wrote, perhaps in another process: what has not been touched
        since counts as seen."""
        for path, at_ms in used[-self._limits[1] :]:
            content = await asyncio.to_thread(_untouched, path, at_ms)
            if content is not None:
                self.note(thread, path, content)

    def sight(self, thread: str, path: str, content: bytes) -> Sight:
        """What the thread knows of a file that now holds this."""
        with self._lock:
            known = self._threads.get(thread)
            noted = known.get(path) if known else None
        if noted is None:
            return Sight.NEVER
        return Sight.CURRENT if noted == sha256(content).digest() else Sight.CHANGED


def _untouched(path: str, since_ms: int) -> bytes | None:
    """The content of a regular file that has not been written to since; else nothing. Told by when its inode changed:
    the time of writing is whatever the writer says, and a file that was moved here brings its own."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            now = os.fstat(file.fileno())
            same = now.st_ctime_ns // 1_000_000 <= since_ms and now.st_size <= TEXT_LIMIT
            return file.read() if same else None
    except (OSError, ValueError):
        return None
