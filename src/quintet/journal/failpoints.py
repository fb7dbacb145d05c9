"""Failpoints: named places where a test can have the process killed. `QUINTET_FAILPOINT=name[:n]` arms one: at its
n-th passing the process gets SIGKILL, as it would from outside. Costs one look at a variable when unset.
"""

from __future__ import annotations

import os
import signal

JOBS = ("push", "append", "create", "enqueue", "claim", "finish", "resolve", "post", "settle", "recover", "prune")
POINTS = (
    *(f"{job}.{when}" for job in JOBS for when in ("before_commit", "after_commit")),
    "ceiling.before_commit",
    "ceiling.after_commit",
    "publish.before",
    "delete.after_commit",
    "erase.after_commit",
)


def _parse(text: str) -> tuple[str, int]:
    name, _, count = text.partition(":")
    return name, int(count) if count.isdigit() else 1


armed, _left = _parse(os.environ.get("QUINTET_FAILPOINT", ""))


def passing(name: str) -> None:
    """Called only where `armed` is not empty."""
    global _left
    if name == armed:
        _left -= 1
        if _left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
