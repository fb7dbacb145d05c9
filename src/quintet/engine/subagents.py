"""Subagents: a call's own agent, in a thread below the caller's, run by the same process under the root's lease.

It takes what its caller's turn took from its starter, never more. It ends before the call that waits for it does.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from quintet.domain.errors import Denied, Invalid, NotFound, Overloaded
from quintet.domain.ids import new_id
from quintet.domain.item import AssistantMessage, Item, ResultStatus, TextPart, ToolResult
from quintet.domain.subagent import AT_ONCE, DEEPEST, Assignment, Report
from quintet.domain.thread import TITLE_LENGTH, Thread, ThreadSettings
from quintet.domain.turn import Turn, TurnState
from quintet.engine.agents import CODER, Agents, may_use
from quintet.engine.clearance import Refused, TurnEnds
from quintet.engine.feed import Feed
from quintet.engine.interactions import OnAsk
from quintet.engine.running import RunningTurn
from quintet.engine.starter import Starter
from quintet.engine.unbroken import unbroken

PAGE = 500


class Runner(Protocol):
    """Who runs turns in this process."""

    async def start_below(
        self, thread: str, prompt: TextPart, starter: Starter, above: RunningTurn, call_id: str
    ) -> Turn:
        """Accept and run a turn that works for this call of a turn running here."""

    async def end_below(self, turn: str, state: TurnState, reason: str) -> Turn:
        """Stop it; returned once it has ended."""

    async def wait(self, turn: str) -> Turn: ...


class Subagents:
    def __init__(self, feed: Feed, agents: Agents, runner: Runner) -> None:
        self._feed = feed
        self._agents = agents
        self._runner = runner
        self._at_work: Counter[str] = Counter()  # by root

    async def work(
        self, above: RunningTurn, call_id: str, assignment: Assignment, known: Callable[[str], None]
    ) -> Report:
        """Let a subagent do it, and wait for its end. `known` is told its thread as soon as there is one."""
        root = above.thread.root
        if self._at_work[root] >= AT_ONCE:
            raise Overloaded(f"{AT_ONCE} subagents are at work already; call again when one of them is done.")
        self._at_work[root] += 1
        try:
            child = await self._child(above, call_id, assignment)
            known(child.id)
            agent = child.settings.agent or CODER.name
            verdict = await above.moments.subagent_started(agent, assignment.prompt)
            if verdict.blocks:
                raise Refused(f"A hook did not let the subagent start: {verdict.reason}", ResultStatus.DENIED)
            ended = await self._run(above, call_id, child, assignment.prompt)
            report = await self._report(child, ended)
            await above.moments.subagent_rests(agent, report.text)
        finally:
            self._at_work[root] -= 1
            if not self._at_work[root]:
                del self._at_work[root]
        if ended.error is not None and ended.error.code == Denied.code and above.starter.on_ask is OnAsk.FAIL:
            # Nobody can be asked, and whoever started this wants it to end then: also where one below would ask.
            raise TurnEnds(Denied(ended.error.message, next_step=ended.error.next_step))
        return report

    async def _run(self, above: RunningTurn, call_id: str, child: Thread, prompt: str) -> Turn:
        turn = await self._runner.start_below(child.id, TextPart(prompt), self._starter(above, child), above, call_id)
        try:
            return await self._runner.wait(turn.id)
        except asyncio.CancelledError:
            state = above.stopped_as or TurnState.CANCELLED
            reason = above.stop_reason or "what it worked for has ended"
            await unbroken(self._runner.end_below(turn.id, state, reason))
            raise

    async def _child(self, above: RunningTurn, call_id: str, assignment: Assignment) -> Thread:
        if assignment.resume:
            return await self._known_child(above.thread, assignment)
        parent, cwd = above.thread, above.thread.settings.cwd
        if parent.depth >= DEEPEST:
            raise Invalid(f"Subagents go {DEEPEST} deep at most; do this one yourself.")
        try:
            brought = above.starter.subagents.get(assignment.agent or CODER.name)
            agent = brought or await self._agents.named(assignment.agent, cwd)
        except (NotFound, Invalid) as error:
            raise Invalid(error.line()) from None  # the model is told what would work, too
        own = above.starter.model or parent.settings.model or above.agent.model
        now = self._feed.clock.now_ms()
        child = Thread(
            id=new_id("thr"),
            root=parent.root,
            project=parent.project,
            profile=parent.profile,
            settings=ThreadSettings(cwd, agent.name, agent.model or own, directories=parent.settings.directories),
            created_ms=now,
            updated_ms=now,
            title=assignment.description[:TITLE_LENGTH],
            parent=parent.id,
            parent_call=call_id,
            depth=parent.depth + 1,
        )
        return await self._feed.create_thread(child)

    async def _known_child(self, parent: Thread, assignment: Assignment) -> Thread:
        try:
            child = await self._feed.journal.thread(assignment.resume)
        except NotFound:
            child = None
        if child is None or child.parent != parent.id:
            raise Invalid(
                f"{assignment.resume} is no subagent of this thread. Leave out `resume` to begin with a new one."
            )
        if assignment.agent and assignment.agent != (child.settings.agent or CODER.name):
            raise Invalid(f"{child.id} is a {child.settings.agent} and stays one. Leave out `agent`, or `resume`.")
        return child

    def _starter(self, above: RunningTurn, child: Thread) -> Starter:
        """The caller's, in its present mode and with what it may use itself, without the form that only the caller's
        last words must have."""
        given, caller = above.starter, above.agent
        return Starter(
            given.principal,
            given.models,
            [tool for tool in given.tools.values() if may_use(caller, tool.spec.known_as)],
            mode=above.mode,
            model=child.settings.model,
            agent=given.subagents.get(child.settings.agent),
            subagents=tuple(given.subagents.values()),
            external_tools=[spec for spec in given.external_tools.values() if may_use(caller, spec.known_as)],
            on_ask=given.on_ask,
            interaction_timeout_s=given.interaction_timeout_s,
            max_steps=given.max_steps,
            confine=given.confine,
            compact_at=given.compact_at,
            budget=given.budget,
            hooks=given.hooks,
            withheld=given.withheld,
            restarts=given.restarts,
            keeps_steers=given.keeps_steers,
            effort=given.effort,
        )

    async def _report(self, child: Thread, ended: Turn) -> Report:
        items = await self._items(child, ended.id)
        said = [i.body.text for i in items if isinstance(i.body, AssistantMessage)]
        changed = [path for i in items if isinstance(i.body, ToolResult) for path in i.body.changed_files]
        return Report(
            thread=child.id,
            turn=ended.id,
            agent=child.settings.agent or CODER.name,
            state=ended.state,
            text=said[-1] if said else "",
            error=ended.error,
            changed_files=tuple(dict.fromkeys(changed)),
        )

    async def _items(self, child: Thread, turn: str) -> list[Item]:
        """What the turn added to what there was before it."""
        found: list[Item] = []
        after = child.last_ordinal
        while page := await self._feed.journal.items(child.id, after=after, limit=PAGE):
            found += [i for i in page if i.turn == turn]
            after = page[-1].ordinal
        return found
