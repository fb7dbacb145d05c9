"""Kward's house: the engine as a Kward client sees it, put together for one process. Part of the composition root."""

from __future__ import annotations

import os
from collections.abc import Sequence

from quintet.app import App
from quintet.domain.errors import QuintetError
from quintet.domain.model import ModelInfo
from quintet.domain.ports import Tool
from quintet.domain.turn import Mode, strictest
from quintet.engine.starter import Starter
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.house import ME, House, model_of
from quintet.workspace.local_disk import LocalDisk


def config_dir() -> str:
    """Where Kward keeps everything: around its configuration."""
    named = os.environ.get("KWARD_CONFIG_PATH", "")
    return os.path.dirname(os.path.abspath(os.path.expanduser(named))) if named else os.path.expanduser("~/.kward")


def kward_house(app: App, cwd: str) -> House:
    def info(reference: str) -> ModelInfo | None:
        try:
            return app.models.info(reference)
        except QuintetError:
            return None

    def starter(tools: Sequence[Tool], *, model: str) -> Starter:
        return app.starter(ME, mode=Mode.ALLOW, model=model, tools=tools)

    return House(
        app.feed,
        app.turns,
        app.threads,
        app.interactions,
        app.projects,
        files=app.kward_files,
        disk=LocalDisk(),
        choice=Chosen(app),
        starter=starter,
        tools=lambda: app.tools,
        cwd=cwd,
        config_dir=config_dir(),
        mode=strictest(Mode.ALLOW, app.config.policy.mode),
        info=info,
        environment=os.environ,
        log=app.log.line,
    )


class Chosen:
    """Plays protocols.kward.house.Choice: what config.toml says."""

    def __init__(self, app: App) -> None:
        self._app = app

    def reference(self) -> str:
        return ""

    def current(self) -> wire.Model:
        models = self._app.models
        return model_of(models.default, models.info(models.default), current=True)

    def effort(self) -> str:
        return ""

    def set_model(self, provider: str, model: str) -> None:
        raise NotImplementedError

    def set_effort(self, effort: str) -> None:
        raise NotImplementedError

    def reload(self) -> None:
        pass
