"""Turns: start, queue, steer, cancel, wait. A turn runs in the process that accepted it; others send it commands."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from quintet.domain.command import Command, CommandKind
from quintet.domain.errors import Busy, Invalid, NotFound, TimedOut, TurnOver
from quintet.domain.ids import new_id
from quintet.domain.item import Part, TextPart
from quintet.domain.ports import Results, SurroundingsReader
from quintet.domain.principal import Principal
from quintet.domain.turn import ClientKey, Mode, Turn, TurnState, WhenBusy
from quintet.engine.agents import Agents
from quintet.engine.checkpoints import Checkpoints
from quintet.engine.feed import Feed
from quintet.engine.hooks import AllHooks
from quintet.engine.inbox import OWNER_ANSWERS_WITHIN_S, ask_owner, drop_queued, end_if_dead
from quintet.engine.interactions import Interactions
from quintet.engine.policy import Policy
from quintet.engine.project_policy import ProjectPolicy
from quintet.engine.recalling import Recalling
from quintet.engine.running import RunningTurn
from quintet.engine.runs import PROBE_EVERY_S, Runs, is_end
from quintet.engine.starter import Starter
from quintet.engine.subagents import Subagents


class Started(msgspec.Struct, frozen=True):
    turn: Turn
    folded: bool = False  # the same client key had started it before
    steered: bool = False  # the input went into the running turn instead


class Turns:
    def __init__(
        self,
        feed: Feed,
        interactions: Interactions,
        policy: Policy,
        checkpoints: Checkpoints,
        surroundings: SurroundingsReader,
        *,
        project_policy: Callable[[str], ProjectPolicy] = lambda directory: ProjectPolicy(),
        agents: Agents | None = None,
        results: Results | None = None,
        hooks: AllHooks | None = None,
        recalling: Recalling | None = None,
    ) -> None:
        found = agents or Agents()
        self._feed = feed
        self.on_defect: Callable[[BaseException], None] = lambda error: None
        self.subagents = Subagents(feed, found, self)
        self._runs = Runs(
            feed,
            interactions,
            policy,
            checkpoints,
            surroundings,
            self.subagents,
            lambda error: self.on_defect(error),
            project_policy=project_policy,
            agents=found,
            results=results,
            hooks=hooks,
            recalling=recalling,
        )

    async def start(
        self,
        thread: str,
        parts: tuple[Part, ...],
        starter: Starter,
        *,
        when_busy: WhenBusy = WhenBusy.QUEUE,
        key: ClientKey | None = None,
    ) -> Started:
        """Accept an input. When this returns, the input is on disk and will be run, or has been given to a turn."""
        if self._runs.closing:
            raise Busy("Quintet is shutting down.", next_step="Start again in a moment.")
        if not parts:
            raise Invalid("There is nothing to do: the input is empty.")
        # A key promises that the same request counts once; steers are not folded, so with a key the input is queued.
        if when_busy is WhenBusy.STEER and key is None and await self._live_turn(thread) is not None:
            with contextlib.suppress(TurnOver):
                given = await self.steer(thread, parts, starter.principal, mode=starter.mode)
                return Started(await self._feed.journal.turn(given.turn), steered=True)
        turn = self._new_turn(thread, parts, starter)
        accepted = await self._accept(turn, only_idle=when_busy is WhenBusy.REJECT, key=key)
        if not accepted.folded:
            await self._runs.begin(turn, starter)
        return accepted

    async def compact(
        self, thread: str, starter: Starter, instructions: str = "", *, when_busy: WhenBusy = WhenBusy.QUEUE
    ) -> Started:
        """Have the thread's older items summarised, in a turn of its own without an input: it waits for its place,
        can be watched and cancelled, and is ended for a dead process like any other."""
        if self._runs.closing:
            raise Busy("Quintet is shutting down.", next_step="Start again in a moment.")
        turn = self._new_turn(thread, (), starter)
        accepted = await self._accept(turn, only_idle=when_busy is WhenBusy.REJECT, key=None)
        await self._runs.begin(turn, starter, compact=self._feed.mask(instructions))
        return accepted

    async def aside(
        self, thread: str, starter: Starter, question: str, *, when_busy: WhenBusy = WhenBusy.QUEUE
    ) -> Started:
        """Have a question answered beside the thread, in a turn of its own without an input."""
        if self._runs.closing:
            raise Busy("Quintet is shutting down.", next_step="Start again in a moment.")
        turn = replace(self._new_turn(thread, (), starter), aside=question)
        accepted = await self._accept(turn, only_idle=when_busy is WhenBusy.REJECT, key=None)
        await self._runs.begin(accepted.turn, starter)
        return accepted

    async def ask_beside(self, thread: str, question: str) -> None:
        """The same beside the turn that runs here, which is neither stopped nor steered. TurnOver where none does."""
        turn = await self._running_turn(thread)
        running = self._runs.running.get(turn.id)
        if running is not None:
            await running.prepared.wait()
        if running is None or running.ask_beside is None:
            raise TurnOver("No turn of this process runs in this thread.")
        running.ask_beside(self._feed.mask(question))

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
        """A subagent's turn: it works for a call of a turn that runs here."""
        made = self._new_turn(thread, (prompt,), starter, for_turn=above.turn.id, for_call=call_id)
        turn = replace(made, background=background)
        await self._accept(turn, only_idle=True, key=None)
        await self._runs.begin(turn, starter, above=above)
        return turn

    async def end_below(self, turn: str, state: TurnState, reason: str) -> Turn:
        """Stop a subagent's turn, running or about to; returned once it has ended."""
        while True:
            if turn in self._runs.running:
                self._runs.running[turn].stop(state, reason)
            elif turn in self._runs.queued:
                await drop_queued(self._feed, turn)
            with contextlib.suppress(TimedOut):  # else it was being claimed just now
                return await self.wait(turn, PROBE_EVERY_S)

    async def wait(self, turn: str, timeout_s: float | None = None) -> Turn:
        """The turn once it has ended, wherever it runs; a dead runner's turn is ended here."""

        async def ended() -> Turn | None:
            now = await self._feed.journal.turn(turn)
            if not now.state.ended and turn in self._runs.failures:
                raise self._runs.failures[turn]
            return now if now.state.ended and not self._feed.holds(turn) else None

        deadline = None if timeout_s is None else self._feed.clock.monotonic_s() + timeout_s
        while True:
            left = PROBE_EVERY_S if deadline is None else min(PROBE_EVERY_S, deadline - self._feed.clock.monotonic_s())
            try:
                return await self._feed.until(lambda e: e.turn == turn and is_end(e), ended, max(left, 0.0))
            except TimedOut:
                if deadline is not None and self._feed.clock.monotonic_s() >= deadline:
                    raise TimedOut("The turn is still running.", turn=turn) from None
                await end_if_dead(self._feed, turn)

    async def steer(
        self, thread: str, parts: tuple[Part, ...], principal: Principal, *, mode: Mode | None = None
    ) -> Command:
        """Give a running turn more input. Returned once its owner has accepted it; TurnOver if it came too late."""
        turn = await self._running_turn(thread)
        return await ask_owner(
            self._feed,
            Command(
                id=new_id("cmd"),
                thread=thread,
                turn=turn.id,
                kind=CommandKind.STEER,
                principal=principal,
                posted_ms=self._feed.clock.now_ms(),
                parts=parts,
                mode=mode,
            ),
        )

    async def set_mode(self, thread: str, mode: Mode, principal: Principal) -> Command:
        turn = await self._running_turn(thread)
        command = Command(
            id=new_id("cmd"),
            thread=thread,
            turn=turn.id,
            kind=CommandKind.SET_MODE,
            principal=principal,
            posted_ms=self._feed.clock.now_ms(),
            mode=mode,
        )
        return await ask_owner(self._feed, command)

    async def cancel(self, turn: str, principal: Principal, reason: str = "") -> Turn:
        """Stop a running or queued turn, wherever it is; returned once it has ended."""
        now = await self._feed.journal.turn(turn)
        if now.state.ended:
            raise TurnOver(f"The turn has already ended as {now.state}.", next_step="Nothing to cancel.")
        command = Command(
            id=new_id("cmd"),
            thread=now.thread,
            turn=turn,
            kind=CommandKind.CANCEL,
            principal=principal,
            posted_ms=self._feed.clock.now_ms(),
            reason=reason,
        )
        with contextlib.suppress(TurnOver):
            await ask_owner(self._feed, command)
        return await self.wait(turn, OWNER_ANSWERS_WITHIN_S)

    async def active(self, thread: str) -> Turn:
        """The turn that runs in the thread now, or is next; NotFound when it rests."""
        turn = await self._live_turn(thread)
        if turn is None:
            raise NotFound("No turn is running in this thread.", next_step="Start one with `quintet run --thread`.")
        return turn

    async def shutdown(self) -> None:
        """End everything that runs or waits here, as interrupted, within a bound."""
        await self._runs.shutdown()

    def _new_turn(
        self, thread: str, parts: tuple[Part, ...], starter: Starter, *, for_turn: str = "", for_call: str = ""
    ) -> Turn:
        return Turn(
            id=new_id("trn"),
            thread=thread,
            state=TurnState.QUEUED,
            runner=self._feed.journal.owner,
            mode=starter.mode,
            principal=starter.principal,
            parts=parts,
            queued_ms=self._feed.clock.now_ms(),
            for_turn=for_turn,
            for_call=for_call,
            agent=starter.agent.name if starter.agent else "",
        )

    # --- accepting ---------------------------------------------------------------------------------------------
    async def _accept(self, turn: Turn, *, only_idle: bool, key: ClientKey | None) -> Started:
        deadline = self._feed.clock.monotonic_s() + OWNER_ANSWERS_WITHIN_S
        while True:
            try:
                done = await self._feed.enqueue(turn, only_idle=only_idle, key=key)
                return Started(done.turn, folded=done.folded)
            except Busy:
                # A turn that is just being cancelled, or whose process is going down, is worth a short wait: clients
                # restart exactly this way.
                live = await self._live_turn(turn.thread)
                left = deadline - self._feed.clock.monotonic_s()
                if left <= 0 or (live is not None and not live.cancelling):
                    raise
                if live is not None:
                    with contextlib.suppress(TimedOut):
                        await self.wait(live.id, left)

    # --- small things ------------------------------------------------------------------------------------------
    async def _live_turn(self, thread: str) -> Turn | None:
        turns = await self._feed.journal.turns(thread, live=True)
        return turns[0] if turns else None

    async def _running_turn(self, thread: str) -> Turn:
        turn = await self._live_turn(thread)
        if turn is None or turn.state is not TurnState.RUNNING:
            raise TurnOver("No turn is running in this thread.")
        return turn
