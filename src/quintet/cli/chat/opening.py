"""Opening a conversation: the home, the thread that is meant, the right face; at the end the terminal as it was."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import termios
from collections.abc import Iterator

from quintet.app import App
from quintet.cli import exits
from quintet.cli.chat.commands import SUMMARIES
from quintet.cli.chat.conversation import ME, Conversation
from quintet.cli.chat.face import Face
from quintet.cli.chat.history import History
from quintet.cli.chat.lines import Lines
from quintet.cli.invoke import Invocation, directory
from quintet.cli.signals import heard
from quintet.cli.thread_choice import chosen, configure
from quintet.domain.thread import ThreadSettings
from quintet.domain.tool import Confine
from quintet.domain.turn import Mode
from quintet.engine.housekeeping import ON_THE_WAY_OUT_S
from quintet.engine.starter import Starter


async def hold(invocation: Invocation) -> int:
    flags = invocation.flags
    cwd = directory(flags.cwd)
    async with invocation.open(starts_turns=True) as app:
        app.models.resolve(flags.model)  # a wrong name is told before anything is begun
        if flags.agent and not flags.thread:
            await app.agents.named(flags.agent, cwd)
        thread = await chosen(app, flags, cwd)
        if thread is not None:
            await configure(app, thread, flags, cwd)
        history = History(app.home / "chat-history", app.feed.mask)
        face = _face(invocation, history)
        settings = ThreadSettings(cwd=cwd, agent=flags.agent, plan_mode=bool(flags.plan))
        talk = Conversation(app, invocation, face, lambda model: _starter(app, flags, model), settings)
        with _terminal_kept(talk):
            await talk.hold(thread)
        for line in talk.farewell(history.problem):
            invocation.screen.note(line)
        await app.housekeeping.tidy(ON_THE_WAY_OUT_S)
    return exits.INTERRUPTED if talk.ended_by_signal else exits.DONE


def _face(invocation: Invocation, history: History) -> Face:
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        return Lines(history.add)
    from quintet.cli.chat.panel import Panel

    color = not invocation.flags.no_color and "NO_COLOR" not in os.environ
    return Panel(color=color, history=history.entries(), remember=history.add, summaries=SUMMARIES)


def _starter(app: App, flags: argparse.Namespace, model: str) -> Starter:
    return app.starter(
        ME,
        mode=Mode(flags.mode) if flags.mode else Mode.ASK,
        model=model,
        budget=flags.budget,
        confine={"ro": Confine.READ_ONLY, "off": Confine.OFF}.get(flags.sandbox, Confine.AUTO),
    )


@contextlib.contextmanager
def _terminal_kept(talk: Conversation) -> Iterator[None]:
    """Whatever happens inside, also a signal, the terminal's settings are what they were."""
    try:
        before = termios.tcgetattr(sys.stdin.fileno())
    except termios.error:
        before = None

    def restore(when: int = termios.TCSADRAIN) -> None:
        if before is not None:
            with contextlib.suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(sys.stdin.fileno(), when, before)

    handled = {signal.SIGINT: talk.interrupt, signal.SIGTERM: talk.end, signal.SIGHUP: talk.end}
    ending = (signal.SIGTERM, signal.SIGHUP)
    try:
        with heard(handled, ending, at_last=lambda: restore(termios.TCSANOW)):
            yield
    finally:
        restore()
