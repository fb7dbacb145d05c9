"""The access log: one line per request, without bodies, queries or secrets. Lines are written together, soon."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

SOON_S = 0.25
LARGEST = 10 * 1024 * 1024
MOST_WAITING = 10_000
_UNSAFE = re.compile(r"[^!-~]")


class AccessLog:
    """`route` is the row's template, never the path that was asked for: that may hold a token or a name."""

    def __init__(self, path: Path | None, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path, self._now = path, now
        self._lines: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._dropped = 0

    def line(self, *, face: str, caller: str, verb: str, route: str, status: int, peer: str, took_ms: float) -> None:
        if self._path is None:
            return
        if len(self._lines) >= MOST_WAITING:
            self._dropped += 1
            return
        stamp = self._now().isoformat(timespec="milliseconds")
        words = (face, caller, verb, route, str(status), peer, f"{took_ms:.1f}ms")
        self._lines.append(" ".join((stamp, *(_UNSAFE.sub("?", word)[:200] or "-" for word in words))))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SOON_S, self.flush)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        if self._dropped:
            lines.append(f"{self._now().isoformat(timespec='milliseconds')} {self._dropped} requests more, not listed")
            self._dropped = 0
        if not lines or self._path is None:
            return
        try:
            if self._path.exists() and self._path.stat().st_size > LARGEST:
                self._path.replace(self._path.with_name(self._path.name + ".1"))
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write("\n".join(lines) + "\n")
        except OSError:
            pass  # a full or read-only disk must not stop requests
