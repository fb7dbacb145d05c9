"""What comes of Kimi's tools, in the words its clients compare. Pure; the output itself stays as our tool gave it."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from quintet.domain.item import ResultStatus
from quintet.domain.tool import Prepared, ToolOutcome

DISMISSED = "User dismissed the question without answering."
_TIMED_OUT = "ended after its limit"


def shell(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    block = next((shown for shown in outcome.display if shown.get("type") == "shell"), {})
    if "task" in block:
        return _started(outcome, "Background task started")
    if outcome.status is ResultStatus.OK:
        return replace(outcome, message="Command executed successfully.")
    if outcome.message.startswith(_TIMED_OUT):
        limit = prepared.arguments.get("timeout_s", 120)
        return replace(outcome, message=f"Command killed by timeout ({limit:g}s)")
    if outcome.message.startswith("exit") and "exit_code" in block:
        return replace(outcome, message=f"Command failed with exit code: {block['exit_code']}.")
    return outcome


def agent(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    return _started(outcome, "Background task started.") if prepared.arguments.get("background") else outcome


def _started(outcome: ToolOutcome, message: str) -> ToolOutcome:
    if outcome.status is not ResultStatus.OK:
        return outcome
    words = outcome.text.replace("shell_output", "TaskOutput").replace("shell_stop", "TaskStop")
    return replace(outcome, text=words, message=message)


def read(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    """The note behind the lines says how to read on."""
    text, mark, note = outcome.text.rpartition("; read on with from_line=")
    return replace(outcome, text=f"{text}; read on with line_offset={note}") if mark else outcome


def write(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    size = next((shown["bytes"] for shown in outcome.display if "bytes" in shown), None)
    if size is None:
        return outcome
    done = "appended to" if prepared.arguments.get("append") else "overwritten"
    return _said(outcome, f"File successfully {done}. Current size: {size} bytes.")


def edit(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    if outcome.status is not ResultStatus.OK:
        return outcome
    replaced = next((shown["replaced"] for shown in outcome.display if "replaced" in shown), 0)
    applied = f"Applied {len(prepared.arguments['edits'])} edit(s) with {replaced} total replacement(s)."
    return _said(outcome, f"File successfully edited. {applied}")


def todo(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    return _said(outcome, "Todo list updated") if outcome.status is ResultStatus.OK else outcome


def answers(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    """As JSON, also where nobody answered: that is no error, the model decides by itself."""
    if outcome.status is ResultStatus.DENIED:
        note = {"answers": {}, "note": DISMISSED}
        display = ({"type": "brief", "text": "User dismissed"},)
        return ToolOutcome(_json(note), message=DISMISSED, display=display)
    items = next((shown["items"] for shown in outcome.display if shown.get("type") == "answers"), None)
    if items is None:
        return outcome
    given = {item["question"]: ", ".join(item["chosen"]) for item in items if item["chosen"]}
    return replace(outcome, text=_json({"answers": given}), message="User has answered your questions.")


def plan(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    return replace(outcome, text=outcome.text.replace("exit_plan_mode", "ExitPlanMode"))


def _said(outcome: ToolOutcome, words: str) -> ToolOutcome:
    return replace(outcome, text=words, message=words)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
