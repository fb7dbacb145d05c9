"""Kward's house: the engine as a Kward client sees it, put together for one process. Part of the composition root."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from quintet.app import App
from quintet.config.kward import kward_files
from quintet.domain.ports import Tool
from quintet.domain.turn import Mode, strictest
from quintet.engine.starter import Starter
from quintet.protocols.kward.house import ME, CallPlugin, Export, House, PluginSaid
from quintet.protocols.kward.keeping import Keeping
from quintet.workspace.exports import write_export
from quintet.workspace.files import on_disk
from quintet.workspace.local_disk import LocalDisk
from quintet.workspace.paths import PathGuard
from quintet.workspace.project_root import project_root
from quintet.workspace.skills import Skill, find_skills, given_skills

KEEP_RECENT = 20_000  # tokens of a conversation that a compaction leaves as they are, unless Kward's configuration says


def config_dir() -> str:
    """Where Kward keeps everything: around its configuration."""
    return kward_files(os.environ).directory


def kward_house(app: App, cwd: str, keeping: Keeping) -> House:
    def starter(tools: Sequence[Tool], *, model: str) -> Starter:
        effort = keeping.models.effort()
        return app.starter(ME, mode=Mode.ALLOW, model=model, tools=tools, keep_recent=KEEP_RECENT, effort=effort)

    return House(
        app.feed,
        app.turns,
        app.threads,
        app.interactions,
        app.projects,
        files=app.kward_files,
        disk=LocalDisk(),
        choice=keeping.models,
        keeping=keeping,
        seen=app.hands.seen,
        export=exporting(str(app.home)),
        skills=lambda cwd: skills(app, cwd),
        call_plugin=calling(app),
        plugins_dir=os.path.expanduser("~/.kward/plugins"),
        starter=starter,
        tools=lambda: app.tools,
        cwd=cwd,
        config_dir=config_dir(),
        mode=strictest(Mode.ALLOW, app.config.policy.mode),
        info=keeping.models.info,
        environment=os.environ,
        log=app.log.line,
    )


def exporting(home: str) -> Export:
    guard = PathGuard(home)

    async def export(path: str, pieces: Iterable[bytes], *, cwd: str, root: str) -> str:
        place = await on_disk(partial(write_export, guard, path, pieces, cwd=cwd, root=root, force=True))
        return place.path

    return export


def skills(app: App, cwd: str) -> list[Skill]:
    """Kward's own go before those of the same name; a project's come last."""
    found = {skill.name: skill for skill in find_skills(str(app.home), project_root(cwd))}
    found |= {skill.name: skill for skill in given_skills([os.path.join(config_dir(), "skills")])}
    return [skill for _, skill in sorted(found.items())]


def calling(app: App) -> CallPlugin:
    async def call(path: str, source: str, function: str, arguments: list[Any], *, cwd: str, whose: str) -> PluginSaid:
        commands = app.hands.plugin_commands(strictest(Mode.ALLOW, app.config.policy.mode))
        return await commands.call(path, source, function, arguments, cwd=cwd, whose=whose)

    return call
