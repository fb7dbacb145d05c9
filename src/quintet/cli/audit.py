"""audit: the chain of who asked, decided, ran, granted, restored and deleted; listed, and checked link by link."""

from __future__ import annotations

import argparse

from quintet.app import App
from quintet.cli import exits
from quintet.cli.event_json import encode_line, iso
from quintet.cli.events import gist
from quintet.cli.invoke import Invocation
from quintet.cli.parser import actions
from quintet.cli.progress import Progress
from quintet.cli.terminal import safe_line
from quintet.domain.audit import BEGUN, AuditRow, Verified
from quintet.domain.errors import NotFound
from quintet.domain.event import Event
from quintet.domain.ids import has_prefix

PAGE = 500


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    action = actions(parser, common)
    verifying = action("verify", "look at every link of the chain, and at the events it speaks of")
    verifying.add_argument(
        "--expect", default="", metavar="NUMBER:LINK", help="a head noted earlier, which must still be in the chain"
    )
    listing = action("list", "its rows, oldest first")
    listing.add_argument("--after", type=int, default=0, metavar="NUMBER", help="only rows behind this one")
    listing.add_argument("--thread", default="", help="only rows of this thread")


async def run(invocation: Invocation) -> int:
    async with invocation.open() as app:
        return await (_verify if invocation.flags.action == "verify" else _list)(invocation, app)


async def _verify(invocation: Invocation, app: App) -> int:
    found = await app.journal.verify_audit(invocation.flags.expect, Progress(invocation.screen))
    if invocation.json:
        invocation.screen.raw(encode_line(_verified_json(found)))
    else:
        for line in _words(found):
            invocation.screen.row(line)
    return exits.DONE if found.whole else exits.STORAGE


def _verified_json(found: Verified) -> dict[str, object]:
    flaws = [{"row": flaw.number, "words": flaw.words} for flaw in found.flaws]
    head = found.head.name if found.head else ""
    return {"v": 1, "whole": found.whole, "rows": found.rows, "head": head, "flaws": flaws, "more": found.more_flaws}


def _words(found: Verified) -> list[str]:
    if found.whole and found.rows == 1:
        return ["The audit chain is whole: it has begun, and nothing that belongs into it has happened yet."]
    if found.whole and found.head:
        return [
            f"The audit chain is whole: {found.rows} rows, each bound to the one before it.",
            f"Its head is {found.head.name}",
            "Note it elsewhere: `quintet audit verify --expect HEAD` shows later that nothing up to it was changed.",
        ]
    out = [f"The audit chain is BROKEN ({found.rows} rows were looked at):"]
    out += [f"  {flaw.words}" for flaw in found.flaws]
    if found.more_flaws:
        out.append(f"  and {found.more_flaws} more")
    out.append("Compare with a backup (`quintet backup` makes them). A repair after damage leaves such gaps too.")
    return out


async def _list(invocation: Invocation, app: App) -> int:
    flags = invocation.flags
    thread = await _thread(app, flags.thread) if flags.thread else ""
    after, shown = flags.after, 0
    while page := await app.journal.audit(after=after, limit=PAGE):
        after = page[-1].number
        for row in page:
            if thread in ("", row.thread):
                _show(invocation, row, await _event(app, row))
                shown += 1
    if thread and not shown:
        raise NotFound(f"The chain has no such row of {thread}.", next_step="`quintet audit list` shows all of it.")
    return exits.DONE


async def _thread(app: App, given: str) -> str:
    """One that was deleted has no more than its whole id, and its rows."""
    return given if has_prefix(given, "thr") else await app.threads.find(given)


async def _event(app: App, row: AuditRow) -> Event | None:
    """What the row stands for, where that is still kept."""
    found = await app.journal.events(row.seq - 1, limit=1)
    return found[0] if found and found[0].seq == row.seq and found[0].kind == row.kind else None


def _show(invocation: Invocation, row: AuditRow, event: Event | None) -> None:
    if invocation.json:
        known = {"number": row.number, "kind": row.kind, "at": iso(row.at_ms), "thread": row.thread}
        digests = {"digest": row.digest.hex(), "link": row.link.hex(), "erased": event is None and row.kind != BEGUN}
        invocation.screen.raw(encode_line({"v": 1, **known, **digests}))
    else:
        words = safe_line(gist(event)) if event else ""
        invocation.screen.row(f"{row.number}  {iso(row.at_ms)[:19]}  {row.thread or '-'}  {row.kind}  {words}".rstrip())
