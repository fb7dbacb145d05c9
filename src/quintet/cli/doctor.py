"""doctor: what works here, what does not and why, and the command that mends it. Fit to be pasted into an issue."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable

import msgspec

from quintet import __version__
from quintet.checkup import Checkup
from quintet.cli import exits, last_resort
from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation
from quintet.cli.layout import UNDER
from quintet.cli.progress import Progress
from quintet.config import home_directory
from quintet.domain.checkup import Health, Row
from quintet.domain.errors import QuintetError, StorageReadOnly
from quintet.journal.clock import SystemClock

VERSION = 1  # of the JSON
_STORAGE = ("home", "writing", "file system", "disk", "journal", "audit chain", "kept contents")
_WIDTH = 27
NARROW = 2 * (_WIDTH + 8)  # columns; below that what is said of a row stands under its name


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--fix", action="store_true", help="do what can safely be done, and say what was done")
    parser.add_argument(
        "--deep", action="store_true", help="look at every row of the journal and every content kept for undo"
    )


async def run(invocation: Invocation) -> int:
    home = home_directory(invocation.home, os.environ)
    checkup = _checkup(invocation, home)
    done = await _mend(invocation, home, checkup) if invocation.flags.fix else []
    if done:
        checkup = _checkup(invocation, home)  # everything is looked at anew
    rows = await checkup.rows(deep=invocation.flags.deep)
    pasteable = await asyncio.to_thread(checkup.pasteable)
    rows = [msgspec.structs.replace(r, detail=pasteable(r.detail), fix=pasteable(r.fix)) for r in rows]
    done = [pasteable(words) for words in done]
    if invocation.json:
        healthy = all(row.health is not Health.FAIL for row in rows)
        answer = {"v": VERSION, "quintet": __version__, "ok": healthy, "deep": invocation.flags.deep}
        invocation.screen.raw(encode_line({**answer, "fixed": done, "rows": rows}))
    else:
        _show(invocation, rows, done)
    return exit_code(rows)


def exit_code(rows: list[Row]) -> int:
    """0 unless a row fails; then what fails decides, the gravest first."""
    failing = {row.name for row in rows if row.health is Health.FAIL}
    if failing & set(_STORAGE):
        return exits.STORAGE
    if "config" in failing:
        return exits.USAGE
    return exits.FAILED if failing else exits.DONE


def _checkup(invocation: Invocation, home: str) -> Checkup:
    return Checkup(
        home,
        os.environ,
        SystemClock(),
        Progress(invocation.screen),
        on_defect=lambda error: last_resort.log(error, invocation.home),
    )


async def _mend(invocation: Invocation, home: str, checkup: Checkup) -> list[str]:
    try:
        done = await asyncio.to_thread(checkup.mend)
    except OSError as error:
        raise StorageReadOnly(f"{home} cannot be mended: {error.strerror}.") from error
    return [*done, *await _prune(invocation, home)]


async def _prune(invocation: Invocation, home: str) -> list[str]:
    """What `quintet gc` would prune of the journal. One that does not open is left alone: its row says what to do."""
    from quintet.app import open_app

    if not _has_journal(home):
        return []
    try:
        async with open_app(invocation.home, "cli", starts_turns=False) as app:
            await app.tidy_workspaces()
            report = await app.journal.prune(now_ms=app.clock.now_ms(), grace_s=app.config.retention.delta_grace_s)
    except QuintetError:
        return []
    pruned = report.deltas + report.signals
    return [f"pruned {pruned} pieces that nobody needs any more"] if pruned else []


def _has_journal(home: str) -> bool:
    return os.path.exists(os.path.join(home, "quintet.db"))


def _show(invocation: Invocation, rows: list[Row], done: list[str]) -> None:
    screen = invocation.screen
    for words in done:
        screen.row("fixed  ", words)
    for row in rows:
        screen.row(f"{row.health.value:<6} {row.name:<{_WIDTH}} ", row.detail)
        if row.fix:
            words = f"{'better' if row.health is Health.OK else 'fix'}: {row.fix}"
            narrow = 0 < screen.columns < NARROW
            screen.row(" " * (UNDER if narrow else _WIDTH + 8), words)
    screen.line()
    screen.row(_sum(rows, fixed=bool(done)))


def _sum(rows: list[Row], *, fixed: bool) -> str:
    count: Callable[[Health], int] = lambda health: sum(row.health is health for row in rows)  # noqa: E731
    failing, warned = count(Health.FAIL), count(Health.WARN)
    if failing:
        return f"{failing} of {len(rows)} need mending; each says how."
    if warned:
        return f"Everything works; {warned} of {len(rows)} could be better."
    return "Everything works now." if fixed else "Everything works."
