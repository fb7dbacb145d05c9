"""`quintet threads compact`: have a thread's older items summarised now, and say what that brought."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from quintet.app import App
from quintet.cli import exits
from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation
from quintet.cli.notes import compaction_words
from quintet.cli.stopping import Stopping
from quintet.domain.event import CompactionFinished, Event
from quintet.domain.principal import local
from quintet.domain.turn import Mode

ME = local("cli")


def add_action(action: Callable[[str, str], argparse.ArgumentParser]) -> None:
    compacting = action("compact", "have the older part of a thread summarised, so that the model has room again")
    compacting.add_argument("thread")
    compacting.add_argument("--instructions", default="", metavar="TEXT", help="what the summary should mind")
    compacting.add_argument("-m", "--model", default="", help="provider/model (else the thread's own)")


async def compact(invocation: Invocation, app: App) -> int:
    flags = invocation.flags
    starter = app.starter(ME, mode=Mode.READ_ONLY, model=flags.model)
    starter.models.resolve(flags.model)  # a wrong name is told before anything is begun
    thread = (await app.threads.get(await app.threads.find(flags.thread))).thread
    outcomes: dict[str, CompactionFinished] = {}  # by turn

    def see(event: Event) -> None:
        if isinstance(event.payload, CompactionFinished):
            outcomes.setdefault(event.turn, event.payload)

    stop = app.feed.handle(see)
    try:
        started = await app.turns.compact(thread.id, starter, flags.instructions)
        with Stopping(app, started.turn, None):
            ended = await app.turns.wait(started.turn.id)
    finally:
        stop()
    finished = outcomes.get(started.turn.id)
    if invocation.json:
        invocation.screen.raw(encode_line({"thread": thread.id, "turn": ended, "compaction": finished}))
    elif finished is not None and finished.error is None:
        invocation.screen.note(f"{compaction_words(finished).capitalize()}.")
    elif ended.error is not None:
        invocation.screen.note(f"quintet: {ended.error.line()}")
    return exits.of_turn(ended.state, ended.error)
