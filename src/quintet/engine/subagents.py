"""Subagents: a call's own agent, in a thread below the caller's, run by the same process under the root's lease.

It takes what its caller's turn took from its starter, never more. It ends before the call that waits for it does; one
in the background before the turn of that call.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from msgspec.structs import replace

from quintet.domain.errors import Denied, Invalid, NotFound, Overloaded, QuintetError
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
        self,
        thread: str,
        prompt: TextPart,
        starter: Starter,
        above: RunningTurn,
        call_id: str,
        *,
        background: bool = False,
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
        """Let a subagent do it, and wait for its end, or in the background for its beginning only. `known` is told its
        thread as soon as there is one."""
        root, on_its_own = above.thread.root, False
        if self._at_work[root] >= AT_ONCE:
            raise Overloaded(f"{AT_ONCE} subagents are at work already; call again when one of them is done.")
        self._at_work[root] += 1
        try:
            child = await self._child(above, call_id, assignment)
            known(child.id)
            turn = await self._begin(above, call_id, child, assignment)
            if assignment.background:
                on_its_own = True
                self._let_go(above, child, turn)
                return await self._report(child, turn)
            report = await self._end(above, child, turn)
        finally:
            if not on_its_own:
                self._leave(root)
        if (refused := _refused(above, report)) is not None:
            raise TurnEnds(refused)
        return report

    async def look(self, above: RunningTurn, name: str, wait_s: float) -> Report:
        """How one of this thread's stands, also when it worked for an earlier turn."""
        child = await self._of(above.thread, name, "Its id is what `task` gave you.")
        turns = await self._feed.journal.turns(child.id)
        if not turns:
            raise Invalid(f"{name} has done nothing yet.")
        turn = turns[-1]
        task = above.children.get(turn.id)
        if task is not None and wait_s:
            await asyncio.wait((task,), timeout=wait_s)
            turn = await self._feed.journal.turn(turn.id)
        return await self._report(replace(child, last_ordinal=0), turn)

    async def at_work(self, above: RunningTurn) -> list[Report]:
        """Those in the background of this turn."""
        turns = [await self._feed.journal.turn(turn) for turn in tuple(above.children)]
        return [await self.look(above, thread, 0.0) for thread in dict.fromkeys(turn.thread for turn in turns)]

    async def stop(self, above: RunningTurn, name: str) -> Report:
        """End one that works in the background for this turn."""
        found = await self.look(above, name, 0.0)
        task = above.children.get(found.turn)
        if task is not None:
            await unbroken(self._runner.end_below(found.turn, TurnState.CANCELLED, "stopped by its caller"))
            await asyncio.wait((task,))
        return await self.look(above, name, 0.0)

    async def _begin(self, above: RunningTurn, call_id: str, child: Thread, assignment: Assignment) -> Turn:
        verdict = await above.moments.subagent_started(_agent(child), assignment.prompt)
        if verdict.blocks:
            raise Refused(f"A hook did not let the subagent start: {verdict.reason}", ResultStatus.DENIED)
        prompt, starter = TextPart(assignment.prompt), self._starter(above, child)
        beside = assignment.background
        return await self._runner.start_below(child.id, prompt, starter, above, call_id, background=beside)

    async def _end(self, above: RunningTurn, child: Thread, turn: Turn) -> Report:
        try:
            ended = await self._runner.wait(turn.id)
        except asyncio.CancelledError:
            state = above.stopped_as or TurnState.CANCELLED
            reason = above.stop_reason or "what it worked for has ended"
            await unbroken(self._runner.end_below(turn.id, state, reason))
            raise
        report = await self._report(child, ended)
        await above.moments.subagent_rests(report.agent, report.text)
        return report

    # --- in the background -----------------------------------------------------------------------------------------
    def _let_go(self, above: RunningTurn, child: Thread, turn: Turn) -> None:
        above.had_children = True
        task = above.children[turn.id] = asyncio.get_running_loop().create_task(self._beside(above, child, turn))
        task.add_done_callback(lambda ended: above.children.pop(turn.id, None))

    async def _beside(self, above: RunningTurn, child: Thread, turn: Turn) -> None:
        """Its end is told by the commit that ends its turn; here it is only waited for."""
        try:
            report = await self._end(above, child, turn)
            above.refused = above.refused or _refused(above, report)
        except QuintetError:
            pass  # it was deleted meanwhile, or the store fails, which the turn itself will say
        finally:
            self._leave(above.thread.root)

    def _leave(self, root: str) -> None:
        self._at_work[root] -= 1
        if not self._at_work[root]:
            del self._at_work[root]

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

    async def _of(self, parent: Thread, name: str, otherwise: str) -> Thread:
        try:
            child = await self._feed.journal.thread(name)
        except NotFound:
            child = None
        if child is None or child.parent != parent.id:
            raise Invalid(f"{name} is no subagent of this thread. {otherwise}")
        return child

    async def _known_child(self, parent: Thread, assignment: Assignment) -> Thread:
        child = await self._of(parent, assignment.resume, "Leave out `resume` to begin with a new one.")
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
            agent=_agent(child),
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


def _agent(child: Thread) -> str:
    return child.settings.agent or CODER.name


def _refused(above: RunningTurn, report: Report) -> Denied | None:
    """Nobody can be asked, and whoever started this wants it to end then: also where one below would ask."""
    error = report.error
    if error is None or error.code != Denied.code or above.starter.on_ask is not OnAsk.FAIL:
        return None
    return Denied(error.message, next_step=error.next_step)
