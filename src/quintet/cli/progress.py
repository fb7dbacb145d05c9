"""Progress on the way: a line a second on stderr, once something has taken longer than one."""

from __future__ import annotations

import time

from quintet.cli.terminal import Screen


class Progress:
    def __init__(self, screen: Screen) -> None:
        self._note = screen.note
        self._next = time.monotonic() + 1

    def __call__(self, doing: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 1
            self._note(f"quintet: {doing}: {done} of {total}")
