"""Inbox: how a process asks the owner of a turn for something, and how the owner obeys.

The same road serves the owner's own clients, so there is one behaviour. The asker is answered on the outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from quintet.domain.command import Command, CommandKind, Outcome
from quintet.domain.errors import AlreadyResolved, Denied, LeaseLost, QuintetError, TimedOut, TurnOver
from quintet.domain.event import CommandPosted, CommandSettled, Event, TurnCancelRequested, TurnFinished
from quintet.domain.turn import TurnState
from quintet.engine.feed import Feed
from quintet.engine.running import RunningTurn

OWNER_ANSWERS_WITHIN_S = 5.0


async def ask_owner(feed: Feed, command: Command) -> Command:
    """Post and wait for the outcome: at most five seconds, then the owner is probed."""

    async def settled() -> Command | None:
        now = await feed.journal.command(command.id)
        return now if now.outcome is not None else None

    def about(event: Event) -> bool:
        return isinstance(event.payload, CommandSettled) and event.payload.command == command.id

    await feed.post(command)
    try:
        done = await feed.until(about, settled, OWNER_ANSWERS_WITHIN_S)
    except TimedOut:
        await end_if_dead(feed, command.turn)
        done = await feed.journal.command(command.id)
    if done.outcome is None:
        raise TimedOut(
            "The process that runs this turn does not answer.", next_step="It may be stopped; end it by its pid."
        )
    if done.outcome in (Outcome.TURN_OVER, Outcome.OWNER_GONE):
        raise TurnOver("The turn had ended before this arrived.")
    if done.outcome is Outcome.REFUSED:
        raise Denied(f"The command was refused: {done.detail}.")
    return done


async def end_if_dead(feed: Feed, turn: str) -> None:
    """End the turn as interrupted if the process that was to run it is gone."""
    now = await feed.journal.turn(turn)
    if not now.state.ended and not await feed.journal.alive(now.runner):
        await feed.journal.recover(now.thread)


async def drop_queued(feed: Feed, turn: str) -> None:
    """Cancel a queued turn of this process; its pending commands are settled by that."""
    with contextlib.suppress(QuintetError):
        await feed.journal.drop_queued(turn, TurnFinished(TurnState.CANCELLED))


class Inbox:
    """The owner's side: sees commands for turns that run or wait here, as soon as they are committed anywhere."""

    def __init__(
        self,
        feed: Feed,
        running: Mapping[str, RunningTurn],
        queued: Mapping[str, object],
        on_defect: Callable[[BaseException], None],
    ) -> None:
        self._feed = feed
        self._running = running
        self._queued = queued
        self._on_defect = on_defect
        self._tasks: set[asyncio.Task[None]] = set()
        self._seen: dict[str, set[str]] = {}  # by turn: commands that are being obeyed or were
        self._stop = feed.handle(self._see, self._look)

    def _see(self, event: Event) -> None:
        if isinstance(event.payload, CommandPosted):
            self.receive(event.payload.command)

    def _look(self) -> None:
        """Some events were missed: read what waits for the turns that run here."""
        self._keep(self._read_waiting([running.thread.id for running in self._running.values()]))

    async def _read_waiting(self, threads: Sequence[str]) -> None:
        for thread in threads:
            with contextlib.suppress(QuintetError):
                for command in await self._feed.journal.commands(thread):
                    self.receive(command)

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def receive(self, command: Command) -> None:
        seen = self._seen.get(command.turn, set())
        if command.id not in seen and (command.turn in self._running or command.turn in self._queued):
            self._seen.setdefault(command.turn, seen).add(command.id)
            self._keep(self._obey(command))

    def forget(self, turn: str) -> None:
        """It has ended here."""
        self._seen.pop(turn, None)

    async def close(self) -> None:
        self._stop()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=OWNER_ANSWERS_WITHIN_S)

    async def _obey(self, command: Command) -> None:
        try:
            running = self._running.get(command.turn)
            if running is None:
                self._seen.pop(command.turn, None)  # once the turn runs, what could not be done now is looked at again
                if command.kind is CommandKind.CANCEL:
                    await drop_queued(self._feed, command.turn)
            elif command.kind is CommandKind.CANCEL:
                if not running.closing:
                    asked = TurnCancelRequested(command.id, command.reason)
                    await self._feed.settle(command.id, Outcome.ACCEPTED, running.lease, asked)
                    running.stop(TurnState.CANCELLED, command.reason)
            elif command.kind is CommandKind.STEER:
                await self._accept_steer(running, command)
            elif command.mode is not None:
                running.set_mode(command.mode)
                await self._feed.settle(command.id, Outcome.ACCEPTED, running.lease)
        except (AlreadyResolved, LeaseLost):
            pass  # the turn ended in the same moment, and its last commit has settled the command
        except QuintetError as error:
            self._on_defect(error)  # the commit that ends the turn settles what was not accepted

    async def _accept_steer(self, running: RunningTurn, command: Command) -> None:
        if not running.begin_accepting():
            return  # too late: the turn's last commit refuses it
        kept: Command | None = None
        try:
            running.tighten(command.mode)  # before it is accepted: who is told so may rely on it
            await self._feed.settle(command.id, Outcome.ACCEPTED, running.lease)
            kept = command
        finally:
            running.accepted(kept)
