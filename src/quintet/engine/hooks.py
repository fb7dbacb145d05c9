"""Hooks: whom to ask at each moment of a turn: commands of the person's, of the project, and the client that began it.

One turn's hooks ask with its lease, in its thread and mode. Where no hook is due, a moment costs a look into a table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quintet.domain.errors import QuintetError
from quintet.domain.event import AnyPayload, Draft
from quintet.domain.hook import ALLOWED, Hook, HookEvent, HookScope, HookSubscription, HookVerdict, blocked, bounded
from quintet.domain.interaction import HookRequest, Verdict
from quintet.domain.ports import Hooks
from quintet.domain.principal import ENGINE
from quintet.engine.feed import Feed
from quintet.engine.hook_round import Due, Moment, Round
from quintet.engine.hook_trust import HookTrust
from quintet.engine.interactions import Interactions, OnAsk

if TYPE_CHECKING:
    from quintet.engine.running import RunningTurn

LEAVING_S = 5.0  # for the hooks of all threads that are left: a process that ends does not wait long
LEAVING_AT_ONCE = 8  # threads whose hooks run then side by side; a server may have had thousands
NOT_LEFT = "the process ended before its hooks of SessionEnd could be run"
LEFT = "exit"
# A subagent's input and rest are its caller's doing and have moments of their own. Not so where a person speaks in its
# thread: that turn works for nobody else.
_NOT_BELOW = frozenset(
    {HookEvent.INPUT_GIVEN, HookEvent.TURN_RESTS, HookEvent.TURN_FAILED, HookEvent.THREAD_BEGUN, HookEvent.THREAD_LEFT}
)


class AllHooks:
    """Of one process. `configured` are the person's own; `commands` runs them, `tell` writes a line of the log."""

    def __init__(
        self,
        feed: Feed,
        interactions: Interactions,
        commands: Hooks,
        configured: Sequence[Hook] = (),
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.feed = feed
        self.interactions = interactions
        self.commands = commands
        self.configured = tuple(configured)
        self.tell = tell
        self._begun: dict[str, HookScope] = {}  # threads that had a turn here

    def begins(self, running: RunningTurn) -> bool:
        """Whether this is the thread's first turn in this process; true once."""
        thread = running.thread.id
        if thread in self._begun or running.above is not None:
            return False
        self._begun[thread] = scope_of(running)
        return True

    async def close(self) -> None:
        """The process ends, and with it the work on its threads. No client can be asked any more."""
        due = [h for h in self.configured if h.event is HookEvent.THREAD_LEFT and h.matcher.fits(LEFT)]
        places, end_s = asyncio.Semaphore(LEAVING_AT_ONCE), self.feed.clock.monotonic_s() + LEAVING_S

        async def leave(scope: HookScope) -> None:
            async with places:
                left_s = end_s - self.feed.clock.monotonic_s()
                if left_s <= 0:
                    self.tell(f"{scope.thread}: {NOT_LEFT}")
                else:
                    await self._leave(scope, [replace(h, timeout_s=min(h.timeout_s, left_s)) for h in due])

        if due:
            await asyncio.gather(*(leave(scope) for scope in self._begun.values()))

    async def _leave(self, scope: HookScope, due: Sequence[Due]) -> None:
        async def say(payload: AnyPayload) -> None:
            with suppress(QuintetError):  # the thread may be gone, the store full: the commands are run all the same
                await self.feed.append([Draft(payload, scope.thread)])

        async def ask(hook: Due) -> HookVerdict:
            assert isinstance(hook, Hook)
            return await self.commands.run(hook, given(HookEvent.THREAD_LEFT, scope, {"reason": LEFT}), scope)

        await Round(Moment(HookEvent.THREAD_LEFT, LEFT), due, say, self.tell).heard(ask, self.feed.clock.monotonic_s)


class TurnHooks:
    """Of one turn. None of it is stored with the thread."""

    def __init__(self, whole: AllHooks | None, running: RunningTurn) -> None:
        self._whole = whole
        self._running = running
        self._due: dict[HookEvent, list[Due]] = {}
        if whole is not None:
            hooks: list[Due] = [*whole.configured, *running.project.hooks, *running.starter.hooks]
            for hook in hooks:
                self._due.setdefault(hook.event, []).append(hook)
            self._trust = HookTrust(whole.feed, whole.interactions, whole.commands, running)

    def due(self, event: HookEvent, target: str = "", own: str = "") -> list[Due]:
        """A client's hooks know its names, those that a person wrote for us know the tools' own."""
        hooks = self._due.get(event)
        if not hooks or (event in _NOT_BELOW and self._running.above is not None):
            return []
        return [h for h in hooks if h.matcher.fits(own if own and _knows_own(h) else target)]

    async def fire(
        self,
        event: HookEvent,
        target: str,
        fields: dict[str, Any],
        *,
        call_id: str = "",
        blockable: bool = True,
        own: tuple[str, dict[str, Any]] | None = None,
    ) -> HookVerdict:
        """Ask whoever is to be asked at this moment, and wait for all of them. The fields are what they are told; `own`
        is target and fields for those that know the tools' own names."""
        due = self.due(event, target, own[0] if own else "")
        if not due or self._whole is None:
            return ALLOWED
        feed, running = self._whole.feed, self._running
        request = self._request(event, target, fields)
        ours = self._request(event, *own) if own else request

        async def say(payload: AnyPayload) -> None:
            await feed.say(running.lease, payload)

        async def ask(hook: Due) -> HookVerdict:
            if isinstance(hook, HookSubscription):
                return await self._client(hook, request, call_id)
            return await self._command(hook, (ours if _knows_own(hook) else request).input)

        moment = Moment(event, target, call_id, blockable)
        return await Round(moment, due, say, self._whole.tell).heard(ask, feed.clock.monotonic_s)

    def _request(self, event: HookEvent, target: str, fields: dict[str, Any]) -> HookRequest:
        """Masked before it is cut: half a secret would not be known as one."""
        assert self._whole is not None
        told = given(event, scope_of(self._running), fields)
        request = self._whole.feed.redactor.struct(HookRequest("", event, target, told))
        return replace(request, input=bounded(request.input))

    async def _command(self, hook: Hook, told: dict[str, Any]) -> HookVerdict:
        assert self._whole is not None
        agreed, missing = await self._trust.agreed(hook) if hook.of_project else ("", "")
        if missing:
            return HookVerdict(problem=missing)
        return await self._whole.commands.run(hook, told, scope_of(self._running), agreed=agreed)

    async def _client(self, hook: HookSubscription, request: HookRequest, call_id: str) -> HookVerdict:
        assert self._whole is not None
        running = self._running
        decision = await self._whole.interactions.ask(
            running.lease,
            running.thread.root,
            call_id,
            replace(request, subscription=hook.id),
            on_ask=OnAsk.WAIT,
            timeout_s=hook.timeout_s,
        )
        if decision.by == ENGINE:
            late = decision.reason == "timeout"
            return HookVerdict(problem=f"no answer within {hook.timeout_s:g} s" if late else decision.reason)
        if decision.verdict is Verdict.DENY:
            return blocked(decision.reason, hook.source)
        return HookVerdict(problem=decision.reason)  # allowed; with words where the client itself has failed


def _knows_own(hook: Due) -> bool:
    return isinstance(hook, Hook) and not hook.spelled


def scope_of(running: RunningTurn) -> HookScope:
    """As the turn is now."""
    thread = running.thread
    return HookScope(thread.settings.cwd, thread.id, running.mode, running.starter.confine)


def given(event: HookEvent, scope: HookScope, fields: dict[str, Any]) -> dict[str, Any]:
    """What a hook is told, under the names that published hooks read."""
    return {"hook_event_name": event.value, "session_id": scope.thread, "cwd": scope.cwd, **fields}
