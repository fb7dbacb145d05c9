"""Subagent: an agent that works for a call of another one, in a thread of its own below that one's. Pure."""

from __future__ import annotations

import msgspec

from quintet.domain.errors import ErrorInfo
from quintet.domain.ids import new_id
from quintet.domain.notice import End, Notice, of_background
from quintet.domain.thread import Thread
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
    background: bool = False  # the call does not wait for its end


class Report(msgspec.Struct, frozen=True):
    """How it ended, and its last words."""

    thread: str
    turn: str
    agent: str
    state: TurnState
    text: str = ""
    error: ErrorInfo | None = None
    changed_files: tuple[str, ...] = ()


_ENDS = {TurnState.DONE: End.COMPLETED, TurnState.FAILED: End.FAILED}
_WORDS = {End.COMPLETED: "is done", End.FAILED: "failed", End.KILLED: "was stopped"}


def ended_notice(child: Thread, state: TurnState, why: str, at_ms: int) -> Notice:
    """That one in the background has ended. What it says in the end is looked at, like what a command has written."""
    end = _ENDS.get(state, End.KILLED)
    body = f"Id: {child.id}\nWork: {child.title}\nEnd: {state.value}{f', {why}' if why else ''}"
    payload = {
        "task_kind": "subagent",
        "description": child.title,
        "agent_id": child.id,
        "failure_reason": why or None,
        "timed_out": False,
    }
    title = f"Background subagent {_WORDS[end]}: {child.title}"
    return of_background(new_id("ntc"), child.id, end, title, body, at_ms, payload)
