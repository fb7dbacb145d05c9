"""Calls: from a model's wish to its result. Check, judge, ask, commit the intent, run, commit the result."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from quintet.domain.errors import STORAGE_ERRORS, Drifted, Invalid, as_quintet_error
from quintet.domain.event import AnyPayload, CheckpointSettled, ItemAdded, ToolFinished, ToolStarted
from quintet.domain.ids import new_id
from quintet.domain.item import Item, ResultStatus, ToolCall, ToolResult, tool_of
from quintet.domain.ports import Results, Tool
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.engine.agreement import refusal
from quintet.engine.call_context import CallContext
from quintet.engine.capping import Capping, cut
from quintet.engine.checkpoints import HASTE_S, Checkpoints, Guarded
from quintet.engine.clearance import Clearance, Refused, TurnEnds
from quintet.engine.feed import Feed
from quintet.engine.interactions import Interactions
from quintet.engine.policy import Policy
from quintet.engine.running import RunningTurn
from quintet.engine.storable import storable_outcome
from quintet.engine.subagents import Subagents

ROUNDS = 5  # how often a call that keeps changing is put forward
_BINDING = ("digest", "command", "cwd", "paths", "diff", "confined", "network", "content")


class Calls:
    def __init__(
        self,
        feed: Feed,
        interactions: Interactions,
        policy: Policy,
        checkpoints: Checkpoints,
        running: RunningTurn,
        subagents: Subagents,
        *,
        results: Results | None = None,
    ) -> None:
        self._feed = feed
        self._capping = Capping(feed, results)
        self._checkpoints = checkpoints
        self._running = running
        self._clearance = Clearance(feed, interactions, policy, running)
        self._subagents = subagents
        self._children: dict[str, str] = {}  # by call: the thread of the subagent that works for it
        self.open: dict[str, ToolCall] = {}  # asked for by the model, no result in the journal yet
        self._started: set[str] = set()  # whose intent is in the journal
        self._ran: set[str] = set()  # by a tool, here or at the client
        self._outcomes: dict[str, tuple[ToolOutcome, int]] = {}  # what came of a call, and how long it took
        self._guarded: dict[str, Guarded] = {}  # whose files were put aside
        self._settled: dict[str, CheckpointSettled] = {}  # what they have changed, not in the journal yet

    async def agree(self) -> None:
        """To words that are not the person's own, where the turn brings some: judged and asked like the call that would
        read them. Raises Denied."""
        needed = self._running.starter.agreement
        if needed is None:
            return
        name = self._running.starter.spellings.name_of(needed.tool)
        call = ToolCall("", name, msgspec.json.encode(needed.arguments).decode())
        try:
            prepared, spec, _ = await self._prepare(call)
            if needed.digest not in prepared.content:
                raise Refused("It has changed since it was called.")
            await self._clearance.of(call, spec, msgspec.structs.replace(prepared, title=needed.title))
        except (Refused, Invalid) as error:
            raise refusal(needed, str(error)) from None
        except TurnEnds as ends:
            raise ends.error from None

    def expect(self, calls: Sequence[ToolCall]) -> None:
        """The model has asked for these: from now on each gets a result, whatever happens."""
        self.open = {c.call_id: c for c in calls}

    async def run_all(self, calls: Sequence[ToolCall]) -> list[Item]:
        """All at once. If one must end the turn, or the turn is stopped, the others are cancelled with it."""
        tasks = [asyncio.ensure_future(self._run(call)) for call in calls]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, call: ToolCall) -> Item:
        begun_s = self._feed.clock.monotonic_s()
        try:
            outcome = storable_outcome(await self._outcome(call))
            # Kept until it is in the journal: what has happened must not be forgotten because a commit failed.
            self._keep(call, cut(outcome), begun_s)
            outcome = await self._capping.of(self._running.thread.id, outcome)
            if call.call_id in self._ran:
                # Before comparing: what a hook changes here, a formatter say, is part of what the call did.
                outcome = await self._running.moments.after_call(call, outcome)
            outcome = await self._compared(call, outcome)
        except asyncio.CancelledError:
            await self._compare_in_haste(call)
            raise
        finally:
            if call.call_id in self._guarded:
                self._checkpoints.over(self._guarded[call.call_id])
        self._keep(call, outcome, begun_s)
        return await self._finish(call)

    async def _outcome(self, call: ToolCall) -> ToolOutcome:
        """Whatever came of it, in words. Raises only what ends the turn."""
        try:
            return await self._cleared(call)
        except STORAGE_ERRORS:
            raise  # not the tool's failure: the turn itself cannot go on
        except TurnEnds as ends:
            raise ends.error from None
        except asyncio.CancelledError as error:
            if _being_cancelled():
                raise
            return _failure(error)  # the tool gave up by itself
        except Exception as error:
            return _failure(error)

    async def _guard(self, call: ToolCall, spec: ToolSpec, prepared: Prepared) -> None:
        guarded = await self._checkpoints.begin(call, spec.effect, prepared, self._running)
        if guarded is not None:
            self._guarded[call.call_id] = guarded

    def _unguard(self, call: ToolCall) -> Guarded | None:
        guarded = self._guarded.pop(call.call_id, None)
        if guarded is not None:
            self._checkpoints.over(guarded)
        return guarded

    async def _intend(self, call: ToolCall, intent: ToolStarted) -> None:
        """The intent and what was put aside before it, in one commit."""
        guarded = self._guarded.get(call.call_id)
        if guarded is None:
            await self._feed.say(self._running.lease, intent)
        else:
            events = await self._feed.say(self._running.lease, guarded.made, intent)
            guarded.seq = events[0].seq
        self._started.add(call.call_id)

    async def _compared(self, call: ToolCall, outcome: ToolOutcome) -> ToolOutcome:
        """The outcome with what the call has changed, where it could change files at all."""
        guarded = self._guarded.get(call.call_id)
        if guarded is None or not guarded.seq:
            return outcome
        settled = await self._checkpoints.settle(guarded)
        assert settled is not None  # without a limit it waits for the answer
        self._settled[call.call_id] = settled
        return await self._checkpoints.diffs.beside(outcome, settled)

    async def _compare_in_haste(self, call: ToolCall) -> None:
        """The turn is being stopped: a moment for what the call did until then. Else whoever looks later compares."""
        guarded = self._guarded.get(call.call_id)
        if guarded is None or not guarded.seq or call.call_id in self._settled:
            return
        with contextlib.suppress(Exception):
            settled = await self._checkpoints.settle(guarded, HASTE_S)
            if settled is not None:
                self._settled[call.call_id] = settled

    async def _cleared(self, call: ToolCall) -> ToolOutcome:
        """Run exactly what was agreed to: what has changed by then is put forward again, a few times."""
        prepared, spec, tool = await self._hooked(call)
        drifted = False
        for _ in range(ROUNDS):
            cleared = await self._clearance.of(call, spec, prepared, drifted=drifted)
            if tool is None:
                self._ran.add(call.call_id)
                return await self._clearance.external(call)
            await self._guard(call, spec, prepared)
            now = (await self._prepare(call))[0] if cleared.asked else prepared
            drifted = not _same(prepared, now)
            if not drifted:
                intent = ToolStarted(
                    call.call_id, spec.known_as, spec.effect, prepared.title, prepared.digest, cleared.words
                )
                await self._intend(call, intent)
                await asyncio.sleep(0)  # a cancel that came meanwhile is heard before anything happens
                try:
                    return await self._use(tool, call, prepared)
                except Drifted:
                    await self._withdraw(call)
                    drifted, now = True, (await self._prepare(call))[0]
            else:
                self._unguard(call)
            prepared = now
        raise Refused(
            "What this call would do changed each time before it could run, so it was not run.", ResultStatus.DENIED
        )

    async def _hooked(self, call: ToolCall) -> tuple[Prepared, ToolSpec, Tool | None]:
        """The call, unless a hook blocks it. What hooks did meanwhile may have changed what it would do."""
        found, moments = await self._prepare(call), self._running.moments
        if not moments.hears_calls(call):
            return found
        verdict = await moments.before_call(call)
        if verdict.blocks:
            raise Refused(f"A hook blocked this call: {verdict.reason}", ResultStatus.DENIED)
        return await self._prepare(call)

    async def _withdraw(self, call: ToolCall) -> None:
        """The tool saw at the last moment that it is no longer what was agreed to: the intent ends, nothing was run."""
        guarded = self._unguard(call)
        ended: list[AnyPayload] = []
        if guarded is not None:
            ended.append(CheckpointSettled(call.call_id, tool_of(call), guarded.secured.directory, exact=guarded.exact))
        await self._feed.say(
            self._running.lease, *ended, ToolFinished(call.call_id, tool_of(call), ResultStatus.DENIED)
        )
        self._started.discard(call.call_id)
        self._ran.discard(call.call_id)

    async def _use(self, tool: Tool, call: ToolCall, prepared: Prepared) -> ToolOutcome:
        self._ran.add(call.call_id)
        context = CallContext(self._feed, self._running, self._clearance, self._subagents, call, prepared)
        try:
            return await tool.run(prepared, context)
        finally:
            context.release()
            if context.child:
                self._children[call.call_id] = context.child

    async def _prepare(self, call: ToolCall) -> tuple[Prepared, ToolSpec, Tool | None]:
        running, starter = self._running, self._running.starter
        spec = running.offered(call.name)
        if spec is None:
            offered = ", ".join(s.name for s in running.specs())
            raise Refused(starter.withheld.get(call.name) or f"Tool `{call.name}` not found. Offered: {offered}.")
        tool = None if spec.external else starter.tools.get(call.name) or starter.spellings.own_tool(call.name)
        arguments = _arguments(call)
        cwd = running.thread.settings.cwd
        if tool is None:
            return Prepared(call.name, arguments, cwd=cwd), spec, None
        added = running.thread.settings.directories
        scope = CallScope(cwd, running.thread.id, running.mode, starter.confine, running.planning, added)
        return await tool.prepare(arguments, scope), spec, tool

    def _keep(self, call: ToolCall, outcome: ToolOutcome, begun_s: float) -> None:
        elapsed_ms = int((self._feed.clock.monotonic_s() - begun_s) * 1000)
        self._outcomes[call.call_id] = (outcome, elapsed_ms)

    async def _finish(self, call: ToolCall) -> Item:
        events = await self._feed.say(self._running.lease, *self._result(call, *self._outcomes[call.call_id]))
        del self.open[call.call_id]
        added = events[-1].payload
        assert isinstance(added, ItemAdded)
        return added.item

    def leftovers(self) -> list[AnyPayload]:
        """For the turn's last commit: a result for every call that has none in the journal."""
        payloads: list[AnyPayload] = []
        for call in self.open.values():
            child = self._children.get(call.call_id)
            words = f" What the subagent did until then is in {child}; `resume` goes on with it." if child else ""
            unfinished = ToolOutcome(f"The turn ended before this call had a result.{words}", ResultStatus.CANCELLED)
            payloads += self._result(call, *self._outcomes.get(call.call_id, (unfinished, 0)))
        return payloads

    def _result(self, call: ToolCall, outcome: ToolOutcome, elapsed_ms: int) -> list[AnyPayload]:
        lease = self._running.lease
        body = ToolResult(
            call.call_id,
            call.name,
            outcome.status,
            outcome.text,
            outcome.message,
            outcome.display,
            outcome.changed_files,
            outcome.diff,
            outcome.images,
        )
        added = ItemAdded(Item(new_id("itm"), lease.thread, lease.turn, 0, self._feed.clock.now_ms(), body))
        if call.call_id not in self._started:
            return [added]
        settled = [self._settled[call.call_id]] if call.call_id in self._settled else []
        return [*settled, ToolFinished(call.call_id, tool_of(call), outcome.status, elapsed_ms), added]


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = msgspec.json.decode(call.input or "{}")
    except msgspec.DecodeError as error:
        raise Refused(
            f"The input of {call.name} is not valid JSON: {error}. Send it again as one JSON object."
        ) from None
    if not isinstance(arguments, dict):
        raise Refused(f"The input of {call.name} must be a JSON object.")
    return arguments


def _same(agreed: Prepared, now: Prepared) -> bool:
    """Whether it is still the call that was agreed to, in everything that a person was shown or policy judged."""
    return all(getattr(agreed, name) == getattr(now, name) for name in _BINDING)


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failure(error: BaseException) -> ToolOutcome:
    if isinstance(error, Refused):
        return ToolOutcome(str(error), error.status, message=str(error))
    ours = as_quintet_error(error)
    return ToolOutcome(ours.message, ResultStatus.ERROR, message=ours.message)
