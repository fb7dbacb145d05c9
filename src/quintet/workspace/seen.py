"""Seen: which content of which file a thread last read or left behind. Bounded; what falls out counts as never seen.

Kept in memory only: after a restart a file is read again before it is changed, which costs a call and no safety.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum
from hashlib import sha256
from threading import Lock

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

    def sight(self, thread: str, path: str, content: bytes) -> Sight:
        """What the thread knows of a file that now holds this."""
        with self._lock:
            known = self._threads.get(thread)
            noted = known.get(path) if known else None
        if noted is None:
            return Sight.NEVER
        return Sight.CURRENT if noted == sha256(content).digest() else Sight.CHANGED
