"""The tool `background_list`: which commands and subagents of this thread go on in the background, by their ids."""

from __future__ import annotations

from typing import Any

from quintet.domain.ports import ToolContext
from quintet.domain.subagent import Report
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, digest, one_line, plain
from quintet.tools.shell_words import end_in_words
from quintet.workspace.background import Background, Look

SPEC = ToolSpec(
    "background_list",
    "List the commands and subagents of this thread that go on in the background, by the ids that shell_output and "
    "shell_stop take. For when you no longer know them.",
    {
        "type": "object",
        "properties": {"all": {"type": "boolean", "description": "Also commands that have ended."}},
        "additionalProperties": False,
    },
)
NOTHING = "Nothing goes on in the background."


class ListArguments(Arguments, frozen=True):
    all: bool = False


class BackgroundListTool:
    def __init__(self, background: Background) -> None:
        self._background = background

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        normal = plain(checked(SPEC.name, arguments, ListArguments))
        title = "list what goes on in the background"
        return Prepared(title, normal, cwd=scope.cwd, digest=digest(SPEC.name, normal, scope.cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked(SPEC.name, prepared.arguments, ListArguments)
        commands = [look for look in self._background.known(context.thread) if given.all or look.runs]
        children = await context.children_at_work()
        lines = [*map(_command, commands), *map(_child, children)]
        return ToolOutcome("\n".join(lines) or NOTHING, message=f"{len(lines)} in the background")


def _command(look: Look) -> str:
    if look.runs:
        words = f"runs, {look.seconds:.0f} s"
    elif look.ended is not None:
        words = end_in_words(look.child, look.ended)
    else:
        words = look.failure or "stopped"
    return f"{look.id}  command  {words}: {one_line(look.command.strip())}"


def _child(report: Report) -> str:
    return f"{report.thread}  subagent {report.agent}  at work"
