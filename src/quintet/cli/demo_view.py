"""What the demo shows of its turns, and who answers its one request: the person at the terminal, or the demo itself,
which is then said.
"""

from __future__ import annotations

import asyncio

from quintet.app import App
from quintet.cli.invoke import Invocation
from quintet.cli.turn_view import JsonView, TextView, TurnView
from quintet.domain.event import Event, InteractionRequested, ItemAdded
from quintet.domain.interaction import Approval, Verdict
from quintet.domain.item import ResultStatus, ToolResult
from quintet.domain.principal import local
from quintet.domain.thread import Thread
from quintet.domain.turn import Turn
from quintet.engine.interactions import Answer

ME = local("cli")


class DemoView:
    def __init__(self, invocation: Invocation, app: App, *, by_itself: bool) -> None:
        self._interactions = app.interactions
        self._screen = invocation.screen
        self._json = invocation.json
        self._by_itself = by_itself
        self._why = "--yes" if invocation.flags.yes else "nobody can be asked here"
        self._inner: TurnView = (
            JsonView(invocation.screen)
            if invocation.json
            else TextView(
                invocation.screen, app.interactions, ME, app.models, prompts=not by_itself, waits=not by_itself
            )
        )
        self._answers: set[asyncio.Task[None]] = set()
        self._begun = False
        self.passed = False  # the command ran, and ended well

    @property
    def denied(self) -> bool:
        return self._inner.denied

    def begin(self, thread: Thread, turn: Turn) -> None:
        if not self._begun:
            self._begun = True
            self._inner.begin(thread, turn)

    def show(self, event: Event) -> None:
        self._inner.show(event)
        match event.payload:
            case InteractionRequested(interaction=asked) if self._by_itself and isinstance(asked.request, Approval):
                self._answer(asked.id)
            case ItemAdded(item=item) if isinstance(item.body, ToolResult):
                self.passed = item.body.status is ResultStatus.OK

    def end(self, turn: Turn) -> None:
        self._inner.end(turn)

    def _answer(self, interaction: str) -> None:
        if not self._json:
            self._screen.note(f"  the demo answers this itself, with yes ({self._why})")
        task = asyncio.ensure_future(self._say_yes(interaction))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _say_yes(self, interaction: str) -> None:
        reason = f"answered by the demo itself: {self._why}"
        await self._interactions.answer(interaction, Answer(Verdict.ALLOW, reason=reason), ME)
