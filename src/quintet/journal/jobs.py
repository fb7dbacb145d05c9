"""What waits for the writer thread: pushes of deltas, jobs (one rule, one future), and errands between transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from quintet.domain.errors import QuintetError
from quintet.domain.event import Event
from quintet.domain.turn import Lease
from quintet.journal.appending import Push
from quintet.journal.transaction import Transaction


class Job:
    """One rule to run in a durable transaction. `settling` ones are accepted while the disk is full."""

    __slots__ = ("error", "future", "name", "result", "settling", "work")

    def __init__(
        self, name: str, work: Callable[[Transaction], Any], future: asyncio.Future[Any], *, settling: bool
    ) -> None:
        self.name = name
        self.work = work
        self.future = future
        self.settling = settling
        self.result: Any = None
        self.error: BaseException | None = None


class Errand:
    """Something for the writer's connection outside any transaction: tailing, tidying."""

    __slots__ = ("error", "future", "result", "work")

    def __init__(self, work: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        self.work = work
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None


Work = Push | Job
Waiting = Push | Job | Errand | None  # None ends the thread


class Outcome:
    """What one commit hands to the event loop."""

    __slots__ = ("events", "failed_pushes", "jobs", "missed", "pushed")

    def __init__(self) -> None:
        self.jobs: list[Job | Errand] = []
        self.events: list[Event] = []
        self.failed_pushes: list[tuple[Lease, QuintetError]] = []
        self.pushed = 0
        self.missed = False  # events before these could not be read


def size_of(work: Waiting) -> int:
    """About how many rows it writes; most jobs write one event."""
    return len(work[0]) if isinstance(work, tuple) else 1
