"""Names: Kimi's words for Quintet's tools, their calls, results and approvals, put to work. The words themselves are
rows of kimi_tools.py.

Everything that depends on which tool it is stands here, so that events.py and requests.py need not know any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from quintet.domain.interaction import Approval
from quintet.domain.item import ResultStatus, ToolResult
from quintet.domain.ports import Tool
from quintet.domain.tool import Effect
from quintet.engine.spelling import Respelled, Spellings
from quintet.protocols.wire import display
from quintet.protocols.wire.kimi_tools import RETIRED, ROWS
from quintet.protocols.wire.models import ContentPart, TextPart, ToolReturnValue
from quintet.protocols.wire.parts import wire_part

REJECTED = "Rejected by user"
# A client's `approve_for_session` holds for its action, so an action is what a grant can be about: an effect.
ACTIONS = {Effect.EXECUTE: "run command", Effect.WRITE: "edit file", Effect.NETWORK: "access network"}
STOP = (
    "The tool call is rejected by the user. Stop what you are doing and wait for the user to tell you how to proceed."
)
GO_ON = "The tool call is rejected by the user. User feedback: "
DENIED = "The person denied this call: "  # how the engine begins what it tells of words that came with a no
GOES_ON = "goes on in the background"  # how the tool begins its note of a command that is not waited for
VERBS = {"WriteFile": "Write file", "StrReplaceFile": "Edit file"}
_SILENT = frozenset({"WriteFile", "StrReplaceFile"})  # say everything in their message
_OURS = frozenset({"diff", "shell", "answers", "task"})  # blocks that Kimi's clients do not draw in a result
_NOTHING = {"Shell": "(no output)", "Glob": "No file fits.", "Grep": "No match."}
# What they found is in their output and how much in their message; a block in place of both would hide them.
_BLOCKLESS = frozenset({"ReadFile", "Glob", "Grep", "FetchURL", "SearchWeb"})


class Shown(Struct, frozen=True):
    """What a person is asked to agree to."""

    sender: str
    action: str
    description: str
    display: list[dict[str, Any]]


class Names:
    def __init__(self) -> None:
        self._spellings = Spellings([], ROWS)

    def tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Ours under Kimi's names; one of ours may have several."""
        made: list[Tool] = []
        for tool in tools:
            rows = [row for row in ROWS if row.own == tool.spec.name]
            made += [Respelled(tool, row) for row in rows] or [tool]
        return made

    def reserved(self, tools: Sequence[Tool]) -> frozenset[str]:
        """Names a client's own tool may not have."""
        return RETIRED | {tool.spec.name for tool in (*tools, *self.tools(tools))}

    def shown(self, name: str) -> str:
        """A tool's name as the client knows it."""
        return self._spellings.name_of(name)

    def call(self, name: str, arguments: str) -> tuple[str, str]:
        """A call that was made elsewhere under our own name is shown under Kimi's."""
        return self._spellings.outward(name, arguments)

    def approval(self, asked: Approval) -> Shown:
        sender = self._spellings.name_of(asked.tool)
        blocks = display.diffs(asked.diff, asked.paths)
        description = asked.title[:1].upper() + asked.title[1:]
        if asked.command:
            blocks = [display.shell(asked.command), *blocks]
            goes_on = any(note.startswith(GOES_ON) for note in asked.notes)
            description = f"Run {'background ' if goes_on else ''}command `{asked.command}`"
        elif sender in VERBS and asked.paths:
            description = f"{VERBS[sender]} `{asked.paths[0]}`"
        if not blocks:
            blocks = [display.brief(asked.plan or asked.title)]
        if notes := [note for note in asked.notes if note not in display.USUAL]:
            blocks.append(display.brief("; ".join(notes)))
        return Shown(sender, ACTIONS.get(asked.effect, sender), description, blocks)

    def result(self, body: ToolResult, *, rejected: bool) -> ToolReturnValue:
        """`rejected`: somebody was asked and said no."""
        name = self._spellings.name_of(body.name)
        if rejected:
            return _rejected(body)
        if body.text.startswith(missing := f"Tool `{body.name}` not found"):
            return ToolReturnValue(True, "", missing, [display.brief(missing)])
        unshown = _OURS | {"brief"} if name in _BLOCKLESS and body.status is ResultStatus.OK else _OURS
        blocks = [display.known(block) for block in body.display if block.get("type") not in unshown]
        blocks += _tasks(body) + display.diffs(body.diff, body.changed_files)
        if body.status is not ResultStatus.OK:
            said = body.message.rstrip("…")
            only_words = not body.images and body.text.startswith(said)  # no output, just why there is none
            message = body.text if only_words else body.message
            if not blocks and body.message:
                blocks = [display.brief(body.message)]
            return ToolReturnValue(True, "" if only_words else output(body), message, blocks)
        silent = name in _SILENT or body.text == _NOTHING.get(name)
        return ToolReturnValue(False, "" if silent else output(body), body.message, blocks)


def _rejected(body: ToolResult) -> ToolReturnValue:
    feedback = body.text.removeprefix(DENIED).removesuffix(".") if body.text.startswith(DENIED) else ""
    brief = f"Rejected: {feedback}" if feedback else REJECTED
    return ToolReturnValue(True, "", GO_ON + feedback if feedback else STOP, [display.brief(brief)])


def _tasks(body: ToolResult) -> list[display.Block]:
    """A command that goes on in the background."""
    return [
        display.task(str(block["task"]), str(block.get("description") or block.get("command", "")))
        for block in body.display
        if block.get("type") == "shell" and block.get("task")
    ]


def output(body: ToolResult) -> str | list[ContentPart]:
    if not body.images:
        return body.text
    return [TextPart(body.text), *map(wire_part, body.images)]
