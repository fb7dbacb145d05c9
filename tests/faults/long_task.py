"""The model of the long task: numbered lines into one file, by different tools, one a step; some by subagents.

It knows nothing but what it is told, and never trusts a call whose outcome it was not told: then it looks first.
"""

from __future__ import annotations

import json
import re

from quintet.domain.item import Item, ResultStatus, ToolCall, ToolResult, UserMessage, text_of
from quintet.engine.retelling import INSTRUCTIONS
from tests.fakes.model_server.told import Told

LEDGER = "ledger.txt"
TOP = "TOP\n"  # its first line, so that each line has one before it
LAST = 185  # which takes more than 200 steps, with looks and subagents
SHARES = ((61, 63), (131, 133))  # what is left to subagents
BY_SHELL = 20  # each so-manieth line is written by a command
GOAL = re.compile(r"Append the lines (\d+) to (\d+) to ledger\.txt\.")
SHARE = re.compile(r"Leave (\d+) to (\d+) to a subagent\.")
CHARACTERS_A_TOKEN = 4
TOOLS = 3_000  # tokens of what tools are offered
THOUGHTS = "I look at what is there, and then the next line follows the last one. " * 8


def goal(first: int, last: int, shares: tuple[tuple[int, int], ...] = ()) -> str:
    words = [f"Append the lines {first} to {last} to ledger.txt."]
    return " ".join([*words, *(f"Leave {a} to {b} to a subagent." for a, b in shares)])


def answer(told: Told) -> str:
    """The next step of the task, in the language of scripts; with what it used, counted as tokens usually are."""
    given = (len(told.instructions) + sum(len(text_of(item.body)) for item in told.items)) // CHARACTERS_A_TOKEN
    return f"{_step(told)}\nusage: in={TOOLS + given} out=100"


def _step(told: Told) -> str:
    if told.instructions.startswith(INSTRUCTIONS[:40]):
        return f"text: {_summary(told.items)}"
    wanted = "\n".join(text_of(i.body) for i in told.items if isinstance(i.body, UserMessage))
    found = GOAL.search(wanted)
    if found is None:
        return "text: What shall I do?"
    first, last = int(found[1]), int(found[2])
    done = _done(told.items)
    if done is None:
        return _call("read", {"path": LEDGER})
    following = max(done + 1, first)
    if following > last:
        return f"text: The lines {first} to {last} are there."
    for begin, end in [(int(a), int(b)) for a, b in SHARE.findall(wanted)]:
        if begin <= following <= end:
            return _call("task", {"description": f"lines {following} to {end}", "prompt": goal(following, end)})
    if following % BY_SHELL == 0:
        return _call("shell", {"command": f"echo {following} >> {LEDGER}"})
    before = f"\n{following - 1}\n" if following > 1 else TOP
    return _call("edit", {"path": LEDGER, "edits": [{"old": before, "new": f"{before}{following}\n"}]})


def _done(items: list[Item]) -> int | None:
    """The last line that is there for certain; None when only a look at the file can tell."""
    last = items[-1].body
    if not isinstance(last, ToolResult) or last.status is not ResultStatus.OK:
        return None
    call = next(i.body for i in reversed(items) if isinstance(i.body, ToolCall) and i.body.call_id == last.call_id)
    if call.name == "read":
        return max((int(line) for line in last.text.splitlines() if line.isdecimal()), default=0)
    if call.name == "edit":
        return int(json.loads(call.input)["edits"][0]["new"].splitlines()[-1])
    return None  # what others have written must be read before it can be edited


def _summary(items: list[Item]) -> str:
    """Of a summary and of everything in it the goal has to be left."""
    retold = "\n".join(text_of(i.body) for i in items if isinstance(i.body, UserMessage))
    words = dict.fromkeys(found[0] for pattern in (GOAL, SHARE) for found in pattern.finditer(retold))
    return f"{' '.join(words)} It is under way; the file tells how far."


def _call(name: str, arguments: dict[str, object]) -> str:
    return f"text: {THOUGHTS}\ntool_call: {name} {json.dumps(arguments)}"
