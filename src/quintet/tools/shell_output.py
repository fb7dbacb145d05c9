"""The tool `shell_output`: what a background command of this thread has written since it was last asked."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from quintet.domain.ids import has_prefix
from quintet.domain.item import ResultStatus
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, digest, one_line, plain
from quintet.tools.shell_words import OUTPUT_SHOWN, block, outcome
from quintet.tools.task import reported
from quintet.workspace.background import Background, Look

WAIT_MOST_S = 60.0
SPEC = ToolSpec(
    "shell_output",
    "What a command started by shell with background: true has written since you last asked, and whether it still "
    "runs; or how a subagent started by task with background: true stands, and what it says. Only of this thread.",
    {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "As shell or task gave it."},
            "wait_s": {
                "type": "number",
                "minimum": 0,
                "maximum": WAIT_MOST_S,
                "description": "Seconds to wait for its end before looking, 0 unless said.",
            },
        },
        "required": ["id"],
        "additionalProperties": False,
    },
)


class OutputArguments(Arguments, frozen=True):
    id: Annotated[str, Meta(min_length=1, max_length=100)]
    wait_s: Annotated[float, Meta(ge=0, le=WAIT_MOST_S)] = 0.0


class ShellOutputTool:
    def __init__(self, background: Background) -> None:
        self._background = background

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked(SPEC.name, arguments, OutputArguments)
        normal = plain(given)
        return Prepared(
            one_line(f"look at {given.id}"), normal, cwd=scope.cwd, digest=digest(SPEC.name, normal, scope.cwd)
        )

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked(SPEC.name, prepared.arguments, OutputArguments)
        if has_prefix(given.id, "thr"):
            return reported(await context.look_at_child(given.id, given.wait_s))
        return told(await self._background.look(context.thread, given.id, given.wait_s))


def told(look: Look) -> ToolOutcome:
    """A look at a background command, running or over."""
    if look.ended is not None:
        return outcome(look.command, look.child, look.ended, look.text or "(nothing new)", say_end=True)
    if look.stopped:
        words = f"stopped after {look.seconds:.0f} s"
    elif look.failure:
        words = f"ended by a failure: {look.failure}"
    else:
        words = f"still running after {look.seconds:.0f} s"
    text = (look.text or "(nothing new)").removesuffix("\n")
    status = ResultStatus.ERROR if look.failure else ResultStatus.OK
    return ToolOutcome(f"{text}\n[{words}]", status, words, display=(block(look.command, None),), limit=OUTPUT_SHOWN)
