"""What comes of Kward's tools, in the words its models know. Pure; the output itself stays as our tool gave it."""

from __future__ import annotations

from msgspec.structs import replace

from quintet.domain.item import ResultStatus
from quintet.domain.tool import Prepared, ToolOutcome

CANCELLED = "Cancelled."


def read(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    """The note behind the lines says how to read on."""
    text, mark, note = outcome.text.rpartition("; read on with from_line=")
    return replace(outcome, text=f"{text}; read on with offset={note}") if mark else outcome


def answers(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    """One `question: answer` line each."""
    if outcome.status is ResultStatus.DENIED:
        return ToolOutcome(CANCELLED, ResultStatus.DENIED, CANCELLED)
    items = next((shown["items"] for shown in outcome.display if shown.get("type") == "answers"), None)
    if items is None:
        return outcome
    return replace(outcome, text="\n".join(f"{i['question']}: {', '.join(i['chosen'])}" for i in items))
