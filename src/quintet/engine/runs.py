"""Runs: the turns that wait or run in this process. Each waits for its place, claims it, works, and is ended here.

Knows nothing of who wants what of a turn: that is asked for elsewhere, and comes in through the inbox.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from quintet.domain.errors import STORAGE_ERRORS, Busy, LeaseLost, NotFound, QuintetError, TurnOver, as_quintet_error
from quintet.domain.event import Event, TurnCancelRequested, TurnFinished
from quintet.domain.ports import Results, SurroundingsReader
from quintet.domain.turn import Lease, Turn, TurnState
from quintet.engine.agents import Agents
from quintet.engine.checkpoints import Checkpoints
from quintet.engine.feed import Feed
from quintet.engine.hooks import AllHooks
from quintet.engine.inbox import OWNER_ANSWERS_WITHIN_S, Inbox, drop_queued
from quintet.engine.interactions import Interactions
from quintet.engine.policy import Policy
from quintet.engine.project_policy import ProjectPolicy
from quintet.engine.recalling import Recalling
from quintet.engine.running import RunningTurn
from quintet.engine.starter import Starter
from quintet.engine.subagents import Subagents

if TYPE_CHECKING:
    from quintet.engine.loop import Loop

PROBE_EVERY_S = 0.5
TRY_AGAIN_S = 1.0


class Runs:
    def __init__(
        self,
        feed: Feed,
        interactions: Interactions,
        policy: Policy,
        checkpoints: Checkpoints,
        surroundings: SurroundingsReader,
        subagents: Subagents,
        on_defect: Callable[[BaseException], None],
        *,
        project_policy: Callable[[str], ProjectPolicy],
        agents: Agents,
        results: Results | None,
        hooks: AllHooks | None,
        recalling: Recalling | None = None,
    ) -> None:
        self._agents = agents
        self._results = results
        self._hooks = hooks
        self._recalling = recalling
        self._feed = feed
        self._interactions = interactions
        self._policy = policy
        self._checkpoints = checkpoints
        self._surroundings = surroundings
        self._subagents = subagents
        self._project_policy = project_policy
        self._on_defect = on_defect
        self.queued: dict[str, asyncio.Task[None]] = {}  # by turn: waiting here for their place
        self.running: dict[str, RunningTurn] = {}  # by turn: running here
        self.failures: dict[str, QuintetError] = {}  # turns that ended without being able to say so
        self.closing = False
        self.tasks: set[asyncio.Task[None]] = set()
        self.inbox = Inbox(feed, self.running, self.queued, on_defect)

    async def begin(
        self, turn: Turn, starter: Starter, *, compact: str | None = None, above: RunningTurn | None = None
    ) -> None:
        """A turn that was accepted."""
        self.queued[turn.id] = self._keep(self._run(turn, starter, compact, above))
        if self.closing:
            await drop_queued(self._feed, turn.id)  # accepted in the moment shutdown began, which has not seen it

    async def shutdown(self) -> None:
        """End everything that runs or waits here, as interrupted, within a bound."""
        self.closing = True
        for turn in list(self.queued):
            await drop_queued(self._feed, turn)  # its task sees that; one that was just claimed is stopped like others
        for running in list(self.running.values()):
            if running.stopped_as is None:
                await self._tell_stopping(running)
                running.stop(TurnState.INTERRUPTED, "Quintet was shut down")
        if self.tasks:
            _, left = await asyncio.wait(set(self.tasks), timeout=OWNER_ANSWERS_WITHIN_S)
            for task in left:
                task.cancel()
        await self.inbox.close()

    async def _tell_stopping(self, running: RunningTurn) -> None:
        """So that a client which starts anew at this moment waits a little instead of being refused."""
        with contextlib.suppress(QuintetError):
            await self._feed.say(running.lease, TurnCancelRequested("", "Quintet is shutting down"))

    async def _run(self, turn: Turn, starter: Starter, compact: str | None, above: RunningTurn | None) -> None:
        from quintet.engine.loop import Loop  # with all it needs: the first reply to a client should not wait for that

        self._feed.tailing.hurry()
        lease: Lease | None = None
        loop: Loop | None = None
        try:
            lease = await self._claim(turn, starter.model)
            if lease is not None:
                running = await self._begin(turn, lease, starter, compact, above)
                loop = Loop(
                    self._feed,
                    self._interactions,
                    self._policy,
                    self._checkpoints,
                    self._surroundings,
                    running,
                    self._subagents,
                    agents=self._agents,
                    results=self._results,
                    recalling=self._recalling,
                )
                finished = await loop.run()
                if self._recalling is not None:
                    await self._recalling.after(running, finished)
        except Exception as error:
            failure = self.failures[turn.id] = as_quintet_error(error)
            self._on_defect(failure)
            self._keep(self._end_later(turn, lease, loop, failure))
        finally:
            self._feed.tailing.relax()
            self.queued.pop(turn.id, None)
            self.running.pop(turn.id, None)
            self.inbox.forget(turn.id)

    async def _end_later(self, turn: Turn, lease: Lease | None, loop: Loop | None, failure: QuintetError) -> None:
        """The turn could not be begun or its last commit failed. Nobody else may end it while this process lives, so
        it tries on."""
        finished = TurnFinished(TurnState.FAILED, error=failure.info())
        while not self.closing:
            try:
                if loop is not None and loop.ending.begun:
                    await loop.ending.again()
                elif lease is not None:
                    await self._feed.finish(lease, finished, ())
                elif not await self._feed.journal.drop_queued(turn.id, finished):
                    lease = await self._own_lease(turn)  # claimed after all, although the answer did not reach us
                    continue
            except (LeaseLost, NotFound):
                break  # someone else has ended it, or the thread is gone
            except STORAGE_ERRORS:
                await asyncio.sleep(TRY_AGAIN_S)
            except Exception:
                loop = None  # what was left over cannot be stored; the turn's end alone can
                await asyncio.sleep(TRY_AGAIN_S)
            else:
                break
        self.failures.pop(turn.id, None)

    async def _own_lease(self, turn: Turn) -> Lease:
        thread = await self._feed.journal.thread(turn.thread)
        if thread.owner != self._feed.journal.owner or thread.active_turn != turn.id:
            raise LeaseLost("The turn is not run by this process.")
        return Lease(thread.id, turn.id, thread.owner, thread.epoch)

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def _claim(self, turn: Turn, model: str) -> Lease | None:
        """Wait for the turn's place in the thread's queue and claim it; None when it was cancelled meanwhile."""
        while True:
            with self._feed.watching(lambda e: e.thread == turn.thread and is_end(e)) as ended:
                try:
                    return await self._feed.journal.claim(turn.id, mode=turn.mode, model=model)
                except TurnOver:
                    return None
                except Busy:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(ended, PROBE_EVERY_S)

    async def _begin(
        self, turn: Turn, lease: Lease, starter: Starter, compact: str | None, above: RunningTurn | None
    ) -> RunningTurn:
        self.queued.pop(turn.id, None)
        thread = await self._feed.journal.thread(turn.thread)
        project = await asyncio.to_thread(self._project_policy, thread.settings.cwd)
        running = RunningTurn(turn, thread, lease, starter, project, compact, above, self._hooks)
        self.running[turn.id] = running
        if self.closing:
            running.stop(TurnState.INTERRUPTED, "Quintet was shut down")
        for waiting in await self._feed.journal.commands(turn.thread):
            self.inbox.receive(waiting)  # what arrived while the turn was queued
        return running


def is_end(event: Event) -> bool:
    return isinstance(event.payload, TurnFinished)
