"""Notice: something that happened beside a thread's turns and that its model and its people should know. Pure.

Told to the model once. It says that something has ended and where to look, never what that has written.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class Severity(StrEnum):
    INFO = "info"
    SUCCESS = "success"
    WARNING = "warning"
    ERROR = "error"


class End(StrEnum):
    """How what went on in the background has ended, in the words that published clients know."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    KILLED = "killed"


SEVERITY = {
    End.COMPLETED: Severity.SUCCESS,
    End.FAILED: Severity.ERROR,
    End.TIMED_OUT: Severity.ERROR,
    End.KILLED: Severity.WARNING,
}


class Notice(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    category: str  # what kind of thing it is about: task
    type: str  # what happened to it: task.completed
    source_kind: str  # who tells it: background_task
    source: str  # and which one: the id it is looked at with
    title: str  # one line
    body: str
    at_ms: int
    severity: Severity = Severity.INFO
    payload: dict[str, Any] = {}


def of_background(id: str, source: str, end: End, title: str, body: str, at_ms: int, payload: dict[str, Any]) -> Notice:
    """That something in the background has ended."""
    return Notice(
        id,
        "task",
        f"task.{end.value}",
        "background_task",
        source,
        title,
        body,
        at_ms,
        SEVERITY[end],
        {"task_id": source, "terminal_reason": end.value, **payload},
    )
