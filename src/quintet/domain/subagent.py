"""Subagent: an agent that works for a call of another one, in a thread of its own below that one's. Pure."""

from __future__ import annotations

import msgspec

from quintet.domain.errors import ErrorInfo
from quintet.domain.turn import TurnState

TOOL = "task"
DEEPEST = 3  # how far below its root a thread may lie
AT_ONCE = 8  # subagents at work in one tree
# Only the agent a person speaks with asks them and plans with them; one below says what is open in its report.
NOT_BELOW = frozenset({"ask_user", "enter_plan_mode", "exit_plan_mode"})


class Assignment(msgspec.Struct, frozen=True):
    """What a call wants done."""

    description: str  # a few words, for people
    prompt: str
    agent: str = ""  # by name; empty: the usual one, or the one it was
    resume: str = ""  # the thread of one that worked for this thread before; empty: a new one


class Report(msgspec.Struct, frozen=True):
    """How it ended, and its last words."""

    thread: str
    turn: str
    agent: str
    state: TurnState
    text: str = ""
    error: ErrorInfo | None = None
    changed_files: tuple[str, ...] = ()
