"""That a background command has ended, as a notice: what it was and how it ended, in words. Not what it has written."""

from __future__ import annotations

from quintet.domain.ids import new_id
from quintet.domain.notice import End, Notice, of_background
from quintet.tools.arguments import one_line
from quintet.tools.shell_words import end_in_words
from quintet.workspace.background import Look
from quintet.workspace.child import Cause

COMMAND_SHOWN = 200  # characters; the model has written it, and its call has all of it
_WORDS = {End.COMPLETED: "is done", End.FAILED: "failed", End.TIMED_OUT: "timed out", End.KILLED: "was stopped"}
LEFT = "It ended with the process that ran it"


def ended_notice(look: Look, at_ms: int) -> Notice:
    end, words = _end(look)
    command = one_line(look.command.strip(), COMMAND_SHOWN)
    body = f"Id: {look.id}\nCommand: {command}\nEnd: {words}, after {look.seconds:.0f} s"
    payload = {
        "task_kind": "command",
        "description": look.description or command,
        "exit_code": look.ended.code if look.ended else None,
        "timed_out": end is End.TIMED_OUT,
        "failure_reason": None if end is End.COMPLETED else words,
        "duration_s": round(look.seconds, 3),
    }
    title = f"Background command {_WORDS[end]}: {one_line(look.description or command, 100)}"
    return of_background(new_id("ntc"), look.id, end, title, body, at_ms, payload)


def _end(look: Look) -> tuple[End, str]:
    if look.ended is not None:
        words = end_in_words(look.child, look.ended)
        if look.ended.cause is Cause.TIMEOUT:
            return End.TIMED_OUT, words
        good = look.ended.cause is Cause.EXITED and not look.ended.code
        return (End.COMPLETED if good else End.FAILED), words
    if look.failure:
        return End.FAILED, look.failure
    return End.KILLED, LEFT if look.left else "stopped"
