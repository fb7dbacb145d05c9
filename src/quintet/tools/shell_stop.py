"""The tool `shell_stop`: ends a background command of this thread, with everything it started."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from quintet.domain.ids import has_prefix
from quintet.domain.item import ResultStatus
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, digest, one_line, plain
from quintet.tools.shell_output import told
from quintet.tools.task import reported
from quintet.workspace.background import Background

SPEC = ToolSpec(
    "shell_stop",
    "End a command started by shell with background: true, and everything it started; or a subagent started by task "
    "with background: true. Gives its last output or words. Only those of this thread.",
    {
        "type": "object",
        "properties": {"id": {"type": "string", "description": "As shell or task gave it."}},
        "required": ["id"],
        "additionalProperties": False,
    },
)


class StopArguments(Arguments, frozen=True):
    id: Annotated[str, Meta(min_length=1, max_length=100)]


class ShellStopTool:
    """Has no effect that anybody must allow: what it ends was allowed to begin."""

    def __init__(self, background: Background) -> None:
        self._background = background

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked(SPEC.name, arguments, StopArguments)
        normal = plain(given)
        return Prepared(
            one_line(f"stop {given.id}"), normal, cwd=scope.cwd, digest=digest(SPEC.name, normal, scope.cwd)
        )

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked(SPEC.name, prepared.arguments, StopArguments)
        if has_prefix(given.id, "thr"):
            # That it did not finish is what was wanted.
            return replace(reported(await context.stop_child(given.id)), status=ResultStatus.OK)
        return told(await self._background.stop(context.thread, given.id))
