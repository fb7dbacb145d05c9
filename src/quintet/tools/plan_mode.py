"""The tools `enter_plan_mode` and `exit_plan_mode`: stop changing things, and begin again once a person has agreed."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from quintet.domain.errors import Invalid
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, digest, plain

PLAN_LENGTH = 50_000
ASKS = "Leaving plan mode lets the work begin."

ENTER = ToolSpec(
    "enter_plan_mode",
    "Enter plan mode, where nothing is changed: for work that is large, unclear or hard to undo. It ends when the "
    "person agrees to the plan you put forward with exit_plan_mode.",
    {"type": "object", "properties": {}, "additionalProperties": False},
)
EXIT = ToolSpec(
    "exit_plan_mode",
    "In plan mode, show the person your plan and ask them to agree. After a yes you may begin with it; after a no you "
    "go on planning with what they said.",
    {
        "type": "object",
        "properties": {"plan": {"type": "string", "description": "The whole plan, as Markdown."}},
        "required": ["plan"],
        "additionalProperties": False,
    },
)


class EnterArguments(Arguments, frozen=True):
    pass


class ExitArguments(Arguments, frozen=True):
    plan: Annotated[str, Meta(min_length=1, max_length=PLAN_LENGTH)]


class EnterPlanModeTool:
    @property
    def spec(self) -> ToolSpec:
        return ENTER

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        normal = plain(checked(ENTER.name, arguments, EnterArguments))
        return Prepared("enter plan mode", normal, cwd=scope.cwd, digest=digest(ENTER.name, normal, scope.cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        await context.set_plan_mode(on=True)
        words = "Plan mode is on: nothing is changed from here on. Put your plan forward with exit_plan_mode."
        return ToolOutcome(words, message="plan mode is on")


class ExitPlanModeTool:
    @property
    def spec(self) -> ToolSpec:
        return EXIT

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked(EXIT.name, arguments, ExitArguments)
        if not given.plan.strip():
            raise Invalid("exit_plan_mode: the plan is empty.")
        if not scope.planning:
            raise Invalid("exit_plan_mode: this thread is not in plan mode; go on with the work.")
        normal = plain(given)
        return Prepared(
            "leave plan mode and begin with this plan",
            normal,
            cwd=scope.cwd,
            digest=digest(EXIT.name, normal, scope.cwd),
            always_ask=ASKS,
            plan=given.plan,
        )

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        await context.set_plan_mode(on=False)
        return ToolOutcome("The person has agreed to the plan. Plan mode is off; begin.", message="plan mode is off")
