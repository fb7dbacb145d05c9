"""Progress of what takes longer than a second: a line a second on stderr, where somebody watches."""

from __future__ import annotations

import sys
import time

from quintet.cli.terminal import Screen


class Progress:
    """Called from any thread, as often as there is news."""

    def __init__(self, screen: Screen) -> None:
        self._note = screen.note
        self._watched = sys.stderr.isatty()
        self._next = time.monotonic() + 1

    def __call__(self, doing: str, done: int, total: int) -> None:
        now = time.monotonic()
        if self._watched and now >= self._next:
            self._next = now + 1
            far = f": {done:,} of {total:,}" if total > 1 else ""
            self._note(f"quintet: {doing}{far} …")
