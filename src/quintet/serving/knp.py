"""KNP's part of the server: the engine as its routes see it."""

from __future__ import annotations

import os
from typing import Any

from quintet import __version__
from quintet.app import App
from quintet.domain.agent import Agent
from quintet.domain.principal import Principal
from quintet.domain.shapes import mask_shapes
from quintet.domain.turn import Mode
from quintet.engine.interactions import OnAsk
from quintet.engine.starter import Starter
from quintet.protocols.knp.house import House, ProviderSeen
from quintet.rpc.http.health import LoopLag
from quintet.workspace.browsing import Browsing
from quintet.workspace.paths import PathGuard
from quintet.workspace.sandbox.hidden import credential_places


def knp_house(app: App, roots: tuple[str, ...], lag: LoopLag) -> House:
    """`roots`: the projects given on the command line; the first of them also answers to `default`."""
    secrets = credential_places(os.environ)
    home = str(app.home)

    def starter(by: Principal, *, model: str, agent: Agent | None, on_ask: OnAsk) -> Starter:
        return app.starter(by, mode=Mode.ASK, model=model, agent=agent, on_ask=on_ask)

    def providers() -> list[ProviderSeen]:
        models = app.models
        return [
            ProviderSeen(name, not models.lacks(name), tuple(models.info(m) for m in models.models_of(name)))
            for name in models.providers()
        ]

    return House(
        app.feed,
        app.threads,
        app.turns,
        app.interactions,
        app.agents,
        app.projects,
        roots=(*(roots or (os.getcwd(),)), *map(os.path.expanduser, app.config.projects.roots)),
        files=Browsing(PathGuard(home, secrets), os.environ, (home, *secrets)),
        attachments=lambda: app.hands.attachments,
        starter=starter,
        providers=providers,
        default_model=lambda: app.models.default,
        settings=lambda: _permissions(app),
        models=lambda: app.models,
        version=__version__,
        lag=lag,
        on_defect=app.log.error,
    )


def _permissions(app: App) -> dict[str, Any]:
    """What a person configured, without what looks like a secret."""
    rules = {mask_shapes(app.feed.mask(text)): word for text, word in app.config.policy.rules.items()}
    return {"mode": (app.config.policy.mode or Mode.ASK).value, "rules": rules}
