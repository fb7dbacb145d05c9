"""undo: bring back the files a turn changed and hide it from the model; `--redo` takes that back."""

from __future__ import annotations

import argparse

from quintet.app import App
from quintet.cli.invoke import Invocation, directory
from quintet.cli.reverting import tell, turn_of
from quintet.domain.errors import NotFound
from quintet.domain.thread import Thread, ThreadQuery


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("thread", nargs="?", default="", help="the thread (else the newest one of this directory)")
    parser.add_argument("--turn", default="", help="go back to before this turn (else the last that changed files)")
    parser.add_argument("--force", action="store_true", help="also what has changed since; it is kept for --redo")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, change nothing")
    parser.add_argument("--redo", action="store_true", help="undo the last undo; possible until the next turn")


async def run(invocation: Invocation) -> int:
    flags = invocation.flags
    async with invocation.open() as app:
        thread = await _thread(app, flags.thread)
        if flags.redo:
            done = await app.threads.unrevert(thread.id, files=True, force=flags.force, dry_run=flags.dry_run)
        else:
            turn = await turn_of(app, thread.id, flags.turn) if flags.turn else ""
            point = await app.undo.point(thread, turn, force=flags.force)
            done = await app.threads.revert(thread.id, point, files=True, force=flags.force, dry_run=flags.dry_run)
        return tell(invocation, done, redo=flags.redo)


async def _thread(app: App, given: str) -> Thread:
    if given:
        return (await app.threads.get(await app.threads.find(given))).thread
    cwd = directory("")
    project = await app.projects.of(cwd)
    newest = await app.threads.page(ThreadQuery(project.id, limit=1))
    if not newest:
        raise NotFound(f"There is no thread in {cwd}.", next_step="Name one: `quintet undo THREAD`.")
    return (await app.threads.get(newest[0].id)).thread
