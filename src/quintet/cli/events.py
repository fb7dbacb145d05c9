"""Events: everything that happens, in order, from any point; with --follow also what happens next."""

from __future__ import annotations

import argparse
import sys

from quintet.cli.event_json import event_line, gap_cursors, iso
from quintet.cli.invoke import Invocation
from quintet.cli.terminal import safe_line
from quintet.domain.cursor import first_seq_to_read, parse, public_number
from quintet.domain.event import (
    CommandPosted,
    Event,
    Gap,
    InteractionRequested,
    InteractionResolved,
    ItemAdded,
    NoticeGiven,
    NoticePosted,
    TurnQueued,
)
from quintet.domain.item import UserMessage, speaker, text_of
from quintet.engine.subscription import replay

WIDTH = 120


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--follow", "-f", action="store_true", help="stay and show what happens next")
    parser.add_argument("--thread", default="", help="only this thread and its subagents")
    parser.add_argument("--after", default="", metavar="CURSOR", help="only what came after this cursor")
    parser.add_argument("--url", default="", help="follow a server somewhere, instead of this home's journal")


async def run(invocation: Invocation) -> int:
    flags = invocation.flags
    if flags.url:
        from quintet.cli.remote_events import follow

        return await follow(invocation)
    async with invocation.open() as app:
        root = (await app.threads.get(await app.threads.find(flags.thread))).thread.root if flags.thread else ""
        cursor = parse(flags.after) if flags.after else None
        if flags.follow:
            # Without a cursor a follower begins with what happens next.
            if not invocation.json and sys.stderr.isatty():
                invocation.screen.note("What happens next is shown here; Ctrl-C leaves.")
            entries = aiter(app.feed.follow(None if cursor is None else first_seq_to_read(cursor), root=root))
        else:
            entries = replay(app.journal, first_seq_to_read(cursor or 0), root)
        async for entry in entries:
            if isinstance(entry, Gap) or cursor is None or public_number(entry.seq) > cursor:
                _show(invocation, entry)
    return 0


def _show(invocation: Invocation, entry: Event | Gap) -> None:
    if invocation.json:
        invocation.screen.raw(event_line(entry))
    elif isinstance(entry, Gap):
        first, last = gap_cursors(entry)
        invocation.screen.line(f"--- deltas from {first} to {last} are no longer kept ---")
    else:
        words = safe_line(gist(entry))
        invocation.screen.row(
            f"{public_number(entry.seq)}  {iso(entry.at_ms)[11:23]}  {entry.thread}  {entry.kind}  {words}"
        )


def gist(event: Event) -> str:
    """The gist of an event, in a few words; `--json` has all of it."""
    match event.payload:
        case None:
            return "DAMAGED"
        case ItemAdded(item=item):
            return f"{speaker(item.body)}: {text_of(item.body)}"[:WIDTH]
        case TurnQueued(turn=turn):
            return text_of(UserMessage(turn.parts))[:WIDTH]
        case InteractionRequested(interaction=interaction):
            return str(getattr(interaction.request, "title", "") or type(interaction.request).__name__)[:WIDTH]
        case InteractionResolved(decision=decision):
            return f"{decision.verdict} by {decision.by.name} through {decision.by.protocol} {decision.reason}".rstrip()
        case CommandPosted(command=command):
            return f"{command.kind} by {command.principal.name} through {command.principal.protocol}"
        case NoticePosted(notice=notice) | NoticeGiven(notice=notice):
            return notice.title[:WIDTH]
        case payload:
            fields = ("text", "title", "state", "tool", "name", "outcome", "reason", "model", "question", "answer")
            return next((str(v)[:WIDTH] for f in fields if (v := getattr(payload, f, None))), "")
