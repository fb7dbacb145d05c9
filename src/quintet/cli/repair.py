"""repair: salvage a damaged journal. The old files are kept; nothing is done while anybody uses the home."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation
from quintet.cli.progress import Progress
from quintet.config import home_directory, refuse_strangers
from quintet.domain.errors import StorageDamaged
from quintet.journal.repair import Report, repair
from quintet.workspace.server_lock import ServerLock

_HEADS = {
    "healthy": "The journal is healthy: nothing was changed.",
    "unchanged": "The journal is sound but for damaged rows, and nothing more can be salvaged: nothing was changed.",
    "repaired": "The journal was repaired and opens again.",
    "started-anew": "Nothing could be salvaged: an empty journal takes its place.",
}
_WOULD = {
    "repaired": "The journal is damaged. `quintet repair` would keep a copy and salvage this; nothing was changed.",
    "started-anew": "Nothing can be salvaged: an empty journal would take its place. Nothing was changed.",
}


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what would be found, change nothing")
    parser.add_argument(
        "--start-anew", action="store_true", help="if nothing can be salvaged, begin with an empty journal"
    )


async def run(invocation: Invocation) -> int:
    flags = invocation.flags
    home = Path(home_directory(invocation.home, os.environ))
    _check_home(home)
    with ServerLock(home):
        shown = Progress(invocation.screen)
        report = await repair(home, dry_run=flags.dry_run, start_anew=flags.start_anew, progress=shown)
    if invocation.json:
        invocation.screen.raw(encode_line(report))
    else:
        for line in _lines(report):
            invocation.screen.row(line)
    return 0


def _check_home(home: Path) -> None:
    """Nothing is made where nothing was, not even a directory for locks."""
    if not home.is_dir():
        raise StorageDamaged(f"There is no journal in {home}.", next_step="Name its home with `--home`.")
    refuse_strangers(str(home))


def _lines(report: Report) -> list[str]:
    heads = _HEADS | _WOULD if report.dry_run else _HEADS
    out = [heads[report.outcome]]
    if report.why:
        out.append(f"What was wrong: {report.why}")
    if report.outcome in ("repaired", "unchanged"):
        out += [f"  {'table':<16}{'kept':>10}{'lost':>10}"]
        for table in sorted({*report.kept, *report.lost}):
            out.append(f"  {table:<16}{report.kept.get(table, 0):>10}{report.lost.get(table, 0):>10}")
    out += [f"{count} {words}" for count, words in _counts(report) if count]
    if report.copied_to:
        out.append(f"The old files are in {report.copied_to}.")
    return out


def _counts(report: Report) -> list[tuple[int, str]]:
    return [
        (report.damaged_events, "events do not match their checksums; they are kept and shown as damaged."),
        (report.damaged_items, "items do not match their checksums; they are kept and shown as damaged."),
        (report.recovered_threads, 'threads had lost their row; their titles begin with "(recovered)".'),
        (report.unnamed_threads, "threads cannot be named any more; what is left of them is kept, but not listed."),
        (report.unreadable_pages, "pages cannot be read; how many rows they held is not known."),
        (report.lost_frames, "frames of the log stood behind a bad one; the copy of the log still has them."),
    ]
