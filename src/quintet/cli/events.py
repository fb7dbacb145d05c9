"""Events: everything that happens, in order, from any point; with --follow also what happens next."""

from __future__ import annotations

import argparse

from quintet.cli.event_json import event_line, gap_cursors, iso
from quintet.cli.invoke import Invocation
from quintet.cli.terminal import safe_line
from quintet.domain.cursor import first_seq_to_read, parse, public_number
from quintet.domain.event import Event, Gap
from quintet.engine.subscription import replay


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--follow", "-f", action="store_true", help="stay and show what happens next")
    parser.add_argument("--thread", default="", help="only this thread and its subagents")
    parser.add_argument("--after", default="", metavar="CURSOR", help="only what came after this cursor")


async def run(invocation: Invocation) -> int:
    flags = invocation.flags
    async with invocation.open() as app:
        root = (await app.threads.get(await app.threads.find(flags.thread))).thread.root if flags.thread else ""
        cursor = parse(flags.after) if flags.after else None
        if flags.follow:
            # Without a cursor a follower begins with what happens next.
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
        words = safe_line(_words(entry))
        invocation.screen.line(
            f"{public_number(entry.seq)}  {iso(entry.at_ms)[11:23]}  {entry.thread}  {entry.kind}  {words}"
        )


def _words(event: Event) -> str:
    if event.damaged:
        return "DAMAGED"
    for field in ("text", "title", "state", "tool", "name", "outcome", "reason"):
        value = getattr(event.payload, field, None)
        if value:
            return str(value)[:120]
    return ""
