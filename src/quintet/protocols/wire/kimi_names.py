"""Kimi's names, put to work: what the model is offered; calls, approvals and results as Kimi's clients know them."""

from __future__ import annotations

from collections.abc import Sequence

from quintet.domain.interaction import Approval
from quintet.domain.item import ResultStatus, ToolResult
from quintet.domain.ports import Tool
from quintet.engine.spelling import Respelled, Spellings
from quintet.protocols.wire import display
from quintet.protocols.wire.kimi_tools import RETIRED, ROWS
from quintet.protocols.wire.models import ToolReturnValue
from quintet.protocols.wire.names import ACTIONS, REJECTED, Names, Shown, output

STOP = (
    "The tool call is rejected by the user. Stop what you are doing and wait for the user to tell you how to proceed."
)
GO_ON = "The tool call is rejected by the user. User feedback: "
DENIED = "The person denied this call: "  # how the engine begins what it tells of words that came with a no
VERBS = {"WriteFile": "Write file", "StrReplaceFile": "Edit file"}
_SILENT = frozenset({"WriteFile", "StrReplaceFile"})  # say everything in their message
_OURS = frozenset({"diff", "shell", "answers", "task"})  # blocks that Kimi's clients do not draw in a result
_NOTHING = "(no output)"


class KimiNames(Names):
    def __init__(self) -> None:
        self._spellings = Spellings([])

    def tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Ours under Kimi's names; one of ours may have several."""
        made: list[Tool] = []
        for tool in tools:
            rows = [row for row in ROWS if row.own == tool.spec.name]
            made += [Respelled(tool, row) for row in rows] or [tool]
        self._spellings = Spellings(made)
        return made

    def reserved(self, tools: Sequence[Tool]) -> frozenset[str]:
        return RETIRED | {tool.spec.name for tool in self.tools(tools)}

    def call(self, name: str, arguments: str) -> tuple[str, str]:
        """A call that was made elsewhere under our own name is shown under Kimi's."""
        return self._spellings.outward(name, arguments)

    def approval(self, asked: Approval) -> Shown:
        sender = self._spellings.name_of(asked.tool)
        blocks = display.diffs(asked.diff, asked.paths)
        description = asked.title[:1].upper() + asked.title[1:]
        if asked.command:
            blocks = [display.shell(asked.command), *blocks]
            description = f"Run command `{asked.command}`"
        elif sender in VERBS and asked.paths:
            description = f"{VERBS[sender]} `{asked.paths[0]}`"
        if not blocks:
            blocks = [display.brief(asked.plan or asked.title)]
        if notes := [note for note in asked.notes if note not in display.USUAL]:
            blocks.append(display.brief("; ".join(notes)))
        return Shown(sender, ACTIONS.get(asked.effect, sender), description, blocks)

    def result(self, body: ToolResult, *, rejected: bool) -> ToolReturnValue:
        name = self._spellings.name_of(body.name)
        if rejected:
            return _rejected(body)
        if body.text.startswith(missing := f"Tool `{body.name}` not found"):
            return ToolReturnValue(True, "", missing, [display.brief(missing)])
        blocks = [display.known(block) for block in body.display if block.get("type") not in _OURS]
        blocks += _tasks(body) + display.diffs(body.diff, body.changed_files)
        if body.status is not ResultStatus.OK:
            said = body.message.rstrip("…")
            only_words = not body.images and body.text.startswith(said)  # no output, just why there is none
            message = body.text if only_words else body.message
            return ToolReturnValue(
                True, "" if only_words else output(body), message, blocks or [display.brief(body.message)]
            )
        silent = name in _SILENT or body.text == _NOTHING
        return ToolReturnValue(False, "" if silent else output(body), body.message, blocks)


def _rejected(body: ToolResult) -> ToolReturnValue:
    feedback = body.text.removeprefix(DENIED).removesuffix(".") if body.text.startswith(DENIED) else ""
    brief = f"Rejected: {feedback}" if feedback else REJECTED
    return ToolReturnValue(True, "", GO_ON + feedback if feedback else STOP, [display.brief(brief)])


def _tasks(body: ToolResult) -> list[display.Block]:
    """A command that goes on in the background."""
    return [
        display.task(str(block["task"]), str(block.get("command", "")))
        for block in body.display
        if block.get("type") == "shell" and block.get("task")
    ]
