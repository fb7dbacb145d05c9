"""Tools for tests: one that counts its effects, one that waits for the test, one that fails, one that asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from quintet.domain.interaction import Option, QuestionItem
from quintet.domain.item import ResultStatus
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Effect, Prepared, ToolOutcome, ToolSpec
from tests.fakes.waiting import soon

Run = Callable[[Prepared, ToolContext], Awaitable[ToolOutcome]]


class FakeTool:
    """Does what it was made with. `command` in the arguments makes it look like a shell to policy."""

    def __init__(self, name: str, run: Run | None = None, effect: Effect = Effect.NONE) -> None:
        self.spec = ToolSpec(name, f"the fake tool {name}", {"type": "object"}, effect)
        self._run = run
        self.ran: list[dict[str, Any]] = []

    @property
    def count(self) -> int:
        """How often its effect took place."""
        return len(self.ran)

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        paths = tuple(arguments.get("paths", ()))
        title = f"{self.spec.name} {arguments}"
        return Prepared(title, arguments, command=arguments.get("command", ""), cwd=scope.cwd, paths=paths, digest="d1")

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        self.ran.append(prepared.arguments)
        if self._run is not None:
            return await self._run(prepared, context)
        return ToolOutcome(f"{self.spec.name} done")


class SlowTool(FakeTool):
    """Runs until the test lets it go, or until it is cancelled."""

    def __init__(self, name: str = "slow", effect: Effect = Effect.NONE) -> None:
        super().__init__(name, self._wait, effect)
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.running = 0
        self.most_at_once = 0
        self.cancelled = 0

    async def _wait(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return ToolOutcome("slow but done")

    async def started(self) -> None:
        await soon(self.begun.wait())


def failing(error: Exception, name: str = "fail") -> FakeTool:
    async def run(prepared: Prepared, context: ToolContext) -> ToolOutcome:
        raise error

    return FakeTool(name, run)


def asking(name: str = "ask") -> FakeTool:
    async def run(prepared: Prepared, context: ToolContext) -> ToolOutcome:
        answers = await context.ask([QuestionItem("Which?", (Option("red"), Option("blue")))])
        if answers is None:
            return ToolOutcome("nobody answered", ResultStatus.ERROR)
        return ToolOutcome(f"chosen: {answers[0][0]}")

    return FakeTool(name, run)


def printing(*pieces: str, name: str = "print") -> FakeTool:
    async def run(prepared: Prepared, context: ToolContext) -> ToolOutcome:
        for piece in pieces:
            context.emit_output("stdout", piece)
        return ToolOutcome("".join(pieces))

    return FakeTool(name, run)
