"""Stopping a run from outside: signals and the time limit. Each leaves a finished turn."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

from quintet.app import App
from quintet.cli import exits
from quintet.domain.errors import QuintetError
from quintet.domain.principal import local
from quintet.domain.turn import Turn

ME = local("cli")


class Stopping:
    """Ctrl-C and the time limit cancel the turn; SIGTERM and SIGHUP end it as interrupted. Each leaves a finished turn.

    A second Ctrl-C ends the process at once; the turn is then ended by whoever opens the thread next.
    """

    def __init__(self, app: App, turn: Turn, timeout_s: float | None) -> None:
        self._app = app
        self._turn = turn
        self._timeout_s = timeout_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._told = False
        # Whoever started us with nohup has said that a hang-up does not matter.
        hangs_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
        self._ending = (signal.SIGTERM, signal.SIGHUP) if hangs_up else (signal.SIGTERM,)
        self.timed_out = False

    def __enter__(self) -> Stopping:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in self._ending:
            loop.add_signal_handler(number, self._shut_down)
        self._timer = loop.call_later(self._timeout_s, self._time_out) if self._timeout_s else None
        return self

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, *self._ending):
            loop.remove_signal_handler(number)
        if self._timer is not None:
            self._timer.cancel()

    def _interrupt(self) -> None:
        if self._told:
            try:
                _end_children()
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


def _end_children() -> None:
    """Commands must not outlive the process that a person ends twice."""
    from quintet.workspace.process_tree import tree_of

    for children in Path("/proc/self/task").glob("*/children"):
        for child in children.read_text().split():
            for pid in tree_of(int(child), "\0"):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
