"""The tool `task`: gives a piece of work to a subagent and waits for its report. Who that is, the engine knows."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from quintet.domain.errors import Invalid
from quintet.domain.ids import has_prefix
from quintet.domain.item import ResultStatus
from quintet.domain.ports import ToolContext
from quintet.domain.subagent import AT_ONCE, TOOL, Assignment, Report
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.domain.turn import TurnState
from quintet.tools.arguments import Arguments, checked, digest, one_line, plain

SPEC = ToolSpec(
    TOOL,
    "Give a piece of work to a subagent and wait for its report. It sees nothing of this thread, so its prompt must "
    "hold everything it needs to know, and what to report. Several calls at once work side by side, "
    f"{AT_ONCE} at most; let none of them change what another one works on. With background: true you go on while it "
    "works and are told of its end; look at it with shell_output, end it with shell_stop; your turn ends after it. Not "
    "for what a call or two of your own would do.",
    {
        "type": "object",
        "properties": {
            "description": {"type": "string", "description": "The work in three to five words."},
            "prompt": {"type": "string", "description": "The whole task."},
            "agent": {"type": "string", "description": "Which agent does it; coder if left out."},
            "resume": {
                "type": "string",
                "description": "The thread id of a subagent that worked for you before: it goes on with what it knows.",
            },
            "background": {"type": "boolean", "description": "Return at once; it works on beside you."},
        },
        "required": ["description", "prompt"],
        "additionalProperties": False,
    },
)
SAYS_NOTHING = "(The subagent ended without a word.)"
STARTED = (
    "Works in the background as {}. You are told of its end. Look at it with shell_output, end it with shell_stop."
)


class TaskArguments(Arguments, frozen=True):
    description: Annotated[str, Meta(min_length=1, max_length=200)]
    prompt: Annotated[str, Meta(min_length=1, max_length=200_000)]
    agent: Annotated[str, Meta(max_length=100)] = ""
    resume: Annotated[str, Meta(max_length=100)] = ""
    background: bool = False


class TaskTool:
    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked(TOOL, arguments, TaskArguments)
        if not given.prompt.strip():
            raise Invalid("task: the prompt is empty.")
        if given.resume and not has_prefix(given.resume, "thr"):
            raise Invalid(
                f"task: {one_line(given.resume, 60)!r} is no thread id. Leave out `resume` for a new subagent."
            )
        normal = plain(given)
        who = given.resume or given.agent or "coder"
        title = one_line(f"task for {who}: {given.description}")
        return Prepared(title, normal, cwd=scope.cwd, digest=digest(TOOL, normal, scope.cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked(TOOL, prepared.arguments, TaskArguments)
        wanted = Assignment(given.description, given.prompt, given.agent, given.resume, given.background)
        return reported(await context.start_child(wanted), given.description, begun=given.background)


def reported(report: Report, description: str = "", *, begun: bool = False) -> ToolOutcome:
    """How a subagent stands. `begun`: it was only just started in the background."""
    status = _STATUS.get(report.state, ResultStatus.ERROR)
    shown = {"type": "task", "thread": report.thread, "agent": report.agent, "state": report.state.value}
    words = f"{report.agent}: {report.state}{f', {report.error.message}' if report.error else ''}"
    return ToolOutcome(
        STARTED.format(report.thread) if begun else _text(report),
        status,
        message=f"works in the background as {report.thread}" if begun else one_line(words),
        display=({**shown, "description": description} if description else shown,),
        changed_files=() if begun else report.changed_files,
    )


_STATUS = {TurnState.CANCELLED: ResultStatus.CANCELLED} | dict.fromkeys(
    (TurnState.DONE, TurnState.RUNNING, TurnState.QUEUED), ResultStatus.OK
)


def _text(report: Report) -> str:
    """Its words, and what is needed to go on with it."""
    if not report.state.ended:
        so_far = f"\n\nIts last words so far:\n{report.text}" if report.text else ""
        return f"The subagent is still at work.{so_far}"
    words = report.text or SAYS_NOTHING
    if report.state is not TurnState.DONE:
        why = report.error.message if report.error else ""
        words = f"The subagent did not finish: {report.state}. {why}".rstrip()
        words += f"\n\nIts last words:\n{report.text}" if report.text else ""
    return f"{words}\n\n[subagent {report.thread}; `resume` goes on with it]"
