"""What comes of Kimi's tools, in the words its clients compare. Pure; the output itself stays as our tool gave it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from quintet.domain.item import ResultStatus
from quintet.domain.tool import Prepared, ToolOutcome

DISMISSED = "User dismissed the question without answering."
_TIMED_OUT = "ended after its limit"


def shell(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    block = next((shown for shown in outcome.display if shown.get("type") == "shell"), {})
    if "task" in block:
        brief = {"type": "brief", "text": f"Started {block['task']}"}
        return _started(replace(outcome, display=(brief, *outcome.display)))
    if outcome.status is ResultStatus.OK:
        return replace(outcome, message="Command executed successfully.")
    if outcome.message.startswith(_TIMED_OUT):
        limit = prepared.arguments.get("timeout_s", 120)
        return _failed(outcome, f"Command killed by timeout ({limit:g}s)", f"Killed by timeout ({limit:g}s)")
    if outcome.message.startswith("exit") and "exit_code" in block:
        code = block["exit_code"]
        shown = "\n".join([f"Failed with exit code: {code}", *_last_lines(outcome.text)])
        return _failed(outcome, f"Command failed with exit code: {code}.", shown)
    return outcome


def agent(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    return _started(outcome) if prepared.arguments.get("background") else outcome


def _started(outcome: ToolOutcome) -> ToolOutcome:
    if outcome.status is not ResultStatus.OK:
        return outcome
    words = outcome.text.replace("shell_output", "TaskOutput").replace("shell_stop", "TaskStop")
    return replace(outcome, text=words, message="Background task started.")


def _failed(outcome: ToolOutcome, message: str, brief: str) -> ToolOutcome:
    return replace(outcome, message=message, display=({"type": "brief", "text": brief}, *outcome.display))


def _last_lines(text: str) -> list[str]:
    """Of what a command wrote, for people; the line behind it in which we say how it ended is none of them."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and line != "(no output)"]
    told = lines[:-1] if lines and lines[-1].startswith("[") else lines
    return [line if len(line) <= 200 else f"{line[:200]}..." for line in told[-5:]]


def read(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    """The note behind the lines says how to read on, the message how many there are."""
    facts = outcome.facts
    if "lines" not in facts:
        return outcome
    text, mark, note = outcome.text.rpartition("; read on with from_line=")
    words = f"{text}; read on with line_offset={note}" if mark else outcome.text
    # A place behind the end is no error there.
    return replace(outcome, text=words, message=_lines_read(facts, prepared), status=ResultStatus.OK)


def _lines_read(facts: dict[str, Any], prepared: Prepared) -> str:
    count, first, total = facts["lines"], facts["first"], facts["total"]
    said = [f"{count} lines read from file starting from line {first}." if count else "No lines read from file."]
    if total is not None:
        said.append(f"Total lines in file: {total}.")
    if facts["full"]:
        said.append("Max characters reached.")
    elif count < prepared.arguments.get("lines", 0):
        said.append("End of file reached.")
    if facts["cut"]:
        said.append(f"Lines {facts['cut']} were truncated.")
    return " ".join(said)


def media(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    if "lines" not in outcome.facts:
        return outcome
    words = f"`{prepared.arguments['path']}` is a text file. Use ReadFile to read text files."
    return ToolOutcome(words, ResultStatus.ERROR, words, display=({"type": "brief", "text": "Unsupported file type"},))


def found(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    if outcome.status is not ResultStatus.OK or "found" not in outcome.facts:
        return outcome
    pattern, count, shown = (
        prepared.arguments["pattern"].removeprefix("./"),
        outcome.facts["found"],
        outcome.facts["shown"],
    )
    message = (
        f"Found {count} matches for pattern `{pattern}`." if count else f"No matches found for pattern `{pattern}`."
    )
    if shown < count:
        message += f" Only the first {shown} matches are returned. You may want to use a more specific pattern."
    return replace(outcome, message=message)


def grep(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    facts, given = outcome.facts, prepared.arguments
    if outcome.status is not ResultStatus.OK or "total" not in facts:
        return outcome
    skipped = given.get("skip", 0)
    on = f"offset={skipped + facts['told']}"
    said: list[str] = []
    if given.get("output") == "occurrences" and facts["files"]:
        said.append(f"Found {facts['matches']} total occurrences across {facts['files']} files.")
    if facts["told"] and skipped + facts["told"] < facts["total"]:
        said.append(f"Results truncated to {facts['told']} lines (total: {facts['total']}). Use {on} to see more.")
    elif not facts["told"]:
        said.append("No matches found.")
    text, mark, note = outcome.text.rpartition("; go on with skip=")
    words = f"{text}; go on with offset={note}" if mark else outcome.text
    return replace(outcome, text=words, message=" ".join(said) or outcome.message)


def write(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    size = next((shown["bytes"] for shown in outcome.display if "bytes" in shown), None)
    if size is None and outcome.message == "no change" and not prepared.arguments.get("append"):
        size = len(prepared.arguments["content"].encode())
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
    if outcome.status is not ResultStatus.OK:
        return outcome
    if prepared.arguments.get("todos") is not None:
        return _said(outcome, "Todo list updated")
    lines = [f"- [{item['status']}] {item['text']}" for item in outcome.facts.get("items", ())]
    return replace(outcome, text="\n".join(["Current todo list:", *lines]) if lines else "Todo list is empty.")


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
    brief = {"type": "brief", "text": "User answered"}
    return replace(outcome, text=_json({"answers": given}), message="User has answered.", display=(brief,))


def plan(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    if outcome.status is not ResultStatus.OK:
        return outcome
    words = outcome.text.replace("exit_plan_mode", "ExitPlanMode")
    return replace(outcome, text=words, message="Plan mode on", display=({"type": "brief", "text": "Plan mode on"},))


def planned(outcome: ToolOutcome, prepared: Prepared) -> ToolOutcome:
    if outcome.status is not ResultStatus.OK:
        return outcome
    return replace(outcome, message="Plan approved", display=({"type": "brief", "text": "Plan approved"},))


def _said(outcome: ToolOutcome, words: str) -> ToolOutcome:
    return replace(outcome, text=words, message=words)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
