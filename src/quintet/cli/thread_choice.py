"""Which thread a command goes on with, and what its flags change in that thread."""

from __future__ import annotations

import argparse

from quintet.app import App
from quintet.domain.errors import NotFound
from quintet.domain.event import ThreadUpdated
from quintet.domain.thread import Thread, ThreadQuery


async def chosen(app: App, flags: argparse.Namespace, cwd: str) -> Thread | None:
    """The thread that --thread or --continue means; None when neither was given."""
    if flags.thread:
        return (await app.threads.get(await app.threads.find(flags.thread))).thread
    if not flags.go_on:
        return None
    project = await app.projects.of(cwd)
    newest = await app.threads.page(ThreadQuery(project.id, limit=1))
    if not newest:
        raise NotFound(f"There is no thread in {cwd} to go on with.", next_step="Leave out -c to begin one.")
    return (await app.threads.get(newest[0].id)).thread


async def configure(app: App, thread: Thread, flags: argparse.Namespace, cwd: str) -> None:
    """What the flags change in a thread that is there already."""
    settings = thread.settings
    if flags.agent:
        await app.agents.named(flags.agent, cwd if flags.cwd else settings.cwd)
    change = ThreadUpdated(
        cwd=cwd if flags.cwd and settings.cwd != cwd else None,
        agent=flags.agent if flags.agent and settings.agent != flags.agent else None,
        plan_mode=flags.plan if flags.plan is not None and settings.plan_mode != flags.plan else None,
    )
    if change != ThreadUpdated():
        await app.threads.configure(thread.id, change)
