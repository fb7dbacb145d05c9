"""Stopping a run from outside: signals and the time limit. Each leaves a finished turn."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

from quintet.app import App
from quintet.cli import exits
from quintet.cli.signals import end_children, heard
from quintet.domain.errors import QuintetError
from quintet.domain.principal import local
from quintet.domain.turn import Turn

ME = local("cli")


class Stopping:
    """Ctrl-C and the time limit cancel the turn; SIGTERM and SIGHUP end it as interrupted. Each leaves a finished turn.

    A second Ctrl-C ends the process at once, and so does any of them where nobody reads what is written; the turn is
    then ended by whoever opens the thread next.
    """

    def __init__(self, app: App, turn: Turn, timeout_s: float | None) -> None:
        self._app = app
        self._turn = turn
        self._timeout_s = timeout_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._told = False
        self._heard = contextlib.ExitStack()
        self.timed_out = False

    def __enter__(self) -> Stopping:
        ends = self._shut_down
        handled = {signal.SIGINT: self._interrupt, signal.SIGTERM: ends, signal.SIGHUP: ends}
        self._heard.enter_context(heard(handled, tuple(handled), limit_s=self._timeout_s))
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._timeout_s, self._time_out) if self._timeout_s else None
        return self

    def __exit__(self, *_: object) -> None:
        self._heard.close()
        if self._timer is not None:
            self._timer.cancel()

    def _interrupt(self) -> None:
        if self._told:
            try:
                end_children()
            finally:
                os._exit(exits.INTERRUPTED)
        self._told = True
        self._spawn("interrupted by the user")

    def _time_out(self) -> None:
        self.timed_out = True
        self._spawn("the time limit was reached")

    def _spawn(self, reason: str) -> None:
        self._keep(asyncio.ensure_future(self._cancel(reason)))

    def _shut_down(self) -> None:
        self._keep(asyncio.ensure_future(self._app.turns.shutdown()))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _cancel(self, reason: str) -> None:
        with contextlib.suppress(QuintetError):
            await self._app.turns.cancel(self._turn.id, ME, reason)
