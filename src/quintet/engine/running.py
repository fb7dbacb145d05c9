"""RunningTurn: the live side of one turn in the process that runs it: cancel, steer and mode, within one event loop."""

from __future__ import annotations

import asyncio
from collections import deque

from quintet.domain.command import Command
from quintet.domain.thread import Thread
from quintet.domain.turn import Lease, Mode, Turn, TurnState
from quintet.engine.starter import Starter


class RunningTurn:
    def __init__(self, turn: Turn, thread: Thread, lease: Lease, starter: Starter) -> None:
        self.turn = turn
        self.thread = thread
        self.lease = lease
        self.starter = starter
        self.mode = turn.mode
        self.steers: deque[Command] = deque()  # accepted, not yet given to the model
        self.accepting = 0  # steers whose acceptance is being committed right now
        self.closing = False  # the last commit is under way: commands that come now are too late
        self.stopped_as: TurnState | None = None
        self.stop_reason = ""
        self._work: asyncio.Task[None] | None = None
        self._steer_settled = asyncio.Event()

    async def work(self, work: asyncio.Task[None]) -> None:
        """Run until done, failed or stopped. A stop that came before the work began still stops it."""
        self._work = work
        if self.stopped_as is not None:
            work.cancel()
        await work

    def stop(self, state: TurnState, reason: str) -> None:
        """Cancelled by someone, or interrupted by shutdown. The first word counts."""
        if self.stopped_as is None and not self.closing:
            self.stopped_as = state
            self.stop_reason = reason
            if self._work is not None:
                self._work.cancel()

    def tighten(self, mode: Mode) -> None:
        self.mode = mode

    def begin_accepting(self) -> bool:
        """A steer is about to be accepted; False when the turn is already closing."""
        if self.closing or self.stopped_as is not None:
            return False
        self.accepting += 1
        return True

    def accepted(self, command: Command | None) -> None:
        self.accepting -= 1
        if command is not None:
            self.steers.append(command)
        self._steer_settled.set()

    async def next_steers(self, *, or_end: bool) -> list[Command]:
        """Every accepted steer; waits for those whose acceptance is being committed. With `or_end`, none means that the
        turn ends, and from that moment no further one is accepted."""
        await self.nothing_accepting()
        steers = list(self.steers)
        self.steers.clear()
        self.closing = or_end and not steers
        return steers

    async def nothing_accepting(self) -> None:
        """Wait for the steers whose acceptance is being committed right now."""
        while self.accepting:
            self._steer_settled.clear()
            await self._steer_settled.wait()
