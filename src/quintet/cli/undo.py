"""undo: bring back the files a turn changed and hide it from the model; `--redo` takes that back, step by step."""

from __future__ import annotations

import argparse
import os

from quintet.app import App
from quintet.cli.invoke import Invocation, directory
from quintet.cli.reverting import tell, turn_of
from quintet.cli.terminal import safe_line
from quintet.domain.errors import Invalid, NotFound
from quintet.domain.item import UserMessage, text_of
from quintet.domain.thread import Thread, ThreadQuery
from quintet.engine.undo import Point

LOOKED_AT = 50  # threads of a directory
NAMED = 3
TITLE_LENGTH = 60


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "thread", nargs="?", default="", help="the thread (else the newest one of this directory with such a turn)"
    )
    parser.add_argument("--turn", default="", help="go back to before this turn (else the last that changed files)")
    parser.add_argument("--force", action="store_true", help="also what has changed since; it is kept for --redo")
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="PATH",
        help="this file, or what lies in this directory, whatever happened to it since; may be given again",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, change nothing")
    parser.add_argument("--redo", action="store_true", help="take back the last undo; possible until the next turn")


async def run(invocation: Invocation) -> int:
    flags = invocation.flags
    if flags.redo and (flags.also or flags.turn):
        raise Invalid(
            "--redo takes back the last undo as it was: --also and --turn mean nothing to it.",
            next_step="Leave them out; with --force it brings back what has changed since as well.",
        )
    async with invocation.open() as app:
        if flags.thread:
            threads = [(await app.threads.get(await app.threads.find(flags.thread))).thread]
        else:
            threads = await _here(app)
        if flags.redo:
            thread = await _redoable(app, threads, force=flags.force)
            done = await app.threads.redo(thread.id, force=flags.force, dry_run=flags.dry_run)
        else:
            thread, point = await _undoable(invocation, app, threads)
            await _say_which(invocation, app, thread, point)
            done = await app.threads.revert(
                thread.id,
                point.keep_through,
                files=True,
                force=flags.force,
                dry_run=flags.dry_run,
                named=_named(flags.also),
            )
        return tell(invocation, done, redo=flags.redo)


def _named(given: list[str]) -> list[str]:
    """Where the names stand, and not where they lead if they are links."""
    split = [os.path.split(os.path.abspath(path)) for path in given]
    return [os.path.join(os.path.realpath(above), name) for above, name in split]


async def _here(app: App) -> list[Thread]:
    """The threads of this directory, newest activity first."""
    cwd = directory("")
    project = await app.projects.of(cwd)
    newest = await app.threads.page(ThreadQuery(project.id, limit=LOOKED_AT))
    if not newest:
        raise NotFound(f"There is no thread in {cwd}.", next_step="Name one: `quintet undo THREAD`.")
    return newest


async def _redoable(app: App, threads: list[Thread], *, force: bool) -> Thread:
    for thread in threads:
        if await app.undo.can_redo(thread, force=force):
            return thread
    return threads[0]  # which says that nothing is reverted


async def _undoable(invocation: Invocation, app: App, threads: list[Thread]) -> tuple[Thread, Point]:
    """The first of the threads that has such a turn, and what is to be known of those that were passed over."""
    flags, remarks = invocation.flags, []
    for one in threads:
        thread = (await app.threads.get(one.id)).thread
        try:
            turn = await turn_of(app, thread.id, flags.turn) if flags.turn else ""
            point = await app.undo.point(thread, turn, force=flags.force, named=_named(flags.also))
        except NotFound:
            if len(threads) == 1:
                raise
            remarks += [f"{thread.id}: {words}" for words in await app.undo.remarks(thread)]
            continue
        for words in remarks[:NAMED]:
            invocation.screen.note(words)
        return thread, point
    looked = f"Looked at the {len(threads)} newest threads here, from {threads[0].id} to {threads[-1].id}."
    raise NotFound(
        " ".join(["Nothing is left to undo in this directory.", looked, *remarks[:NAMED]]),
        next_step="Name a thread: `quintet threads list` shows them; `quintet undo --redo` takes back the last undo.",
    )


async def _say_which(invocation: Invocation, app: App, thread: Thread, point: Point) -> None:
    if invocation.json:
        return
    words = ""
    for item in await app.threads.items(thread.id):
        if item.turn == point.turn and isinstance(item.body, UserMessage):
            words = safe_line(" ".join(text_of(item.body).split()))
            break
    short = words if len(words) <= TITLE_LENGTH else f"{words[:TITLE_LENGTH]}…"
    title = f" ({safe_line(thread.title)})" if thread.title else ""
    invocation.screen.note(f"Thread {thread.id}{title}, back to before the turn {short!r}:")
