"""Kward's house: the engine as a Kward client sees it, put together for one process. Part of the composition root."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from quintet.app import App
from quintet.config.kward import kward_files
from quintet.domain.errors import QuintetError
from quintet.domain.ports import Tool
from quintet.domain.turn import Mode, strictest
from quintet.protocols.kward.house import ME, CallPlugin, Export, House, PluginSaid, Told
from quintet.protocols.kward.keeping import Keeping
from quintet.workspace.local_disk import LocalDisk
from quintet.workspace.settings_file import SettingsFile

if TYPE_CHECKING:
    from quintet.engine.starter import Starter
    from quintet.workspace.skills import Skill


class Shortening(msgspec.Struct, frozen=True):
    """`compaction` of config.json: whether by itself, and how many tokens of the newest part stay as they are."""

    enabled: bool = True
    keep_recent_tokens: Annotated[int, msgspec.Meta(ge=0)] = 20_000


def compaction(settings: SettingsFile) -> Shortening:
    try:
        return msgspec.convert(settings.now().get("compaction") or {}, Shortening)
    except (msgspec.ValidationError, QuintetError, OSError):
        return Shortening()  # a file that cannot be read is told by whoever reads it, not by every turn


def config_dir() -> str:
    """Where Kward keeps everything: around its configuration."""
    return kward_files(os.environ).directory


def kward_house(app: App, cwd: str, keeping: Keeping) -> House:
    settings = app.minds.settings()

    def starter(tools: Sequence[Tool], *, model: str, told: Told | None = None) -> Starter:
        chosen = compaction(settings)
        return app.starter(
            ME,
            mode=Mode.ALLOW,
            model=model,
            tools=tools,
            effort=keeping.models.effort(),
            keep_recent=chosen.keep_recent_tokens,
            compacts=chosen.enabled,
            told_late=told,
        )

    return House(
        app.feed,
        lambda: app.room,
        files=lambda: app.kward_files,
        disk=LocalDisk(),
        choice=keeping.models,
        keeping=keeping,
        seen=lambda: app.hands.seen,
        export=exporting(str(app.home)),
        skills=lambda cwd: skills(app, cwd),
        call_plugin=calling(app),
        plugins_dir=os.path.expanduser("~/.kward/plugins"),
        starter=starter,
        tools=lambda: app.tools,
        cwd=cwd,
        config_dir=config_dir(),
        mode=strictest(Mode.ALLOW, app.config.policy.mode),
        compacts=lambda: compaction(settings).enabled,
        info=keeping.models.info,
        environment=os.environ,
        log=app.log.line,
    )


def exporting(home: str) -> Export:
    async def export(path: str, pieces: Iterable[bytes], *, cwd: str, root: str) -> str:
        from quintet.workspace.exports import write_export
        from quintet.workspace.files import on_disk
        from quintet.workspace.paths import PathGuard

        guard = PathGuard(home)
        place = await on_disk(partial(write_export, guard, path, pieces, cwd=cwd, root=root, force=True))
        return place.path

    return export


def skills(app: App, cwd: str) -> list[Skill]:
    """Kward's own go before those of the same name; a project's come last."""
    from quintet.workspace.project_root import project_root
    from quintet.workspace.skills import find_skills

    return find_skills(str(app.home), project_root(cwd), app.skills_dirs)


def calling(app: App) -> CallPlugin:
    async def call(path: str, source: str, function: str, arguments: list[Any], *, cwd: str, whose: str) -> PluginSaid:
        commands = app.hands.plugin_commands(strictest(Mode.ALLOW, app.config.policy.mode))
        return await commands.call(path, source, function, arguments, cwd=cwd, whose=whose)

    return call
