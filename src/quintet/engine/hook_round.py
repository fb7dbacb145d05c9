"""A round of hooks: all that are due at one moment, asked at once, and what they said together.

Knows neither how a hook is asked nor what follows. A hook that cannot say anything allows, and that is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from quintet.domain.errors import STORAGE_ERRORS, as_quintet_error
from quintet.domain.event import AnyPayload, HookResolved, HookTriggered
from quintet.domain.hook import (
    ALLOWED,
    BLOCKING,
    Hook,
    HookAction,
    HookEvent,
    HookSubscription,
    HookVerdict,
)

Due = Hook | HookSubscription
Ask = Callable[[Due], Awaitable[HookVerdict]]
Say = Callable[[AnyPayload], Awaitable[object]]
NO_EFFECT = "it blocked, which has no effect here"
STOPPED = "the turn was stopped before they had answered"


class Moment(msgspec.Struct, frozen=True):
    event: HookEvent
    target: str = ""
    call_id: str = ""
    blockable: bool = True  # False: whatever they say, it goes on


class Round:
    """`say` commits an event, `tell` writes a line of the log."""

    def __init__(self, moment: Moment, due: Sequence[Due], say: Say, tell: Callable[[str], None]) -> None:
        self._moment = moment
        self._due = due
        self._say = say
        self._tell = tell
        self._said: list[tuple[Due, HookVerdict]] = []  # in the order in which they said it
        self._problems: list[str] = []

    async def heard(self, ask: Ask, now_s: Callable[[], float]) -> HookVerdict:
        moment, begun_s = self._moment, now_s()
        sources = tuple(hook.source for hook in self._due)
        await self._say(HookTriggered(moment.event, moment.target, len(sources), moment.call_id, sources))
        try:
            await self._ask_all(ask)
        except asyncio.CancelledError:
            self._problem(STOPPED)
            await self._resolved(None, now_s() - begun_s)
            raise
        blocking = next((entry for entry in self._said if entry[1].blocks), None)
        if blocking is not None and not (moment.blockable and moment.event in BLOCKING):
            self._problem(f"{blocking[0].source}: {NO_EFFECT}")
            blocking = None
        await self._resolved(blocking, now_s() - begun_s)
        return blocking[1] if blocking else ALLOWED

    async def _ask_all(self, ask: Ask) -> None:
        tasks = [asyncio.ensure_future(self._ask_one(hook, ask)) for hook in self._due]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask_one(self, hook: Due, ask: Ask) -> None:
        try:
            verdict = await ask(hook)
        except STORAGE_ERRORS:
            raise  # not the hook's failure: the turn itself cannot go on
        except Exception as error:
            verdict = HookVerdict(problem=as_quintet_error(error).message)
        if verdict.problem:
            self._problem(f"{hook.source}: {verdict.problem}")
        self._said.append((hook, verdict))

    def _problem(self, words: str) -> None:
        self._problems.append(words)
        self._tell(f"Hook {self._moment.event}, {words}")

    async def _resolved(self, blocking: tuple[Due, HookVerdict] | None, elapsed_s: float) -> None:
        moment = self._moment
        resolved = HookResolved(
            moment.event,
            HookAction.BLOCK if blocking else HookAction.ALLOW,
            moment.target,
            blocking[1].reason if blocking else "",
            blocking[0].source if blocking else "",
            int(elapsed_s * 1000),
            tuple(self._problems),
            moment.call_id,
        )
        await self._say(resolved)
