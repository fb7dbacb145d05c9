"""KNP's part of the server: the engine as its routes see it."""

from __future__ import annotations

from quintet import __version__
from quintet.app import App
from quintet.protocols.knp.house import House


def knp_house(app: App) -> House:
    return House(app.feed, app.threads, version=__version__, on_defect=app.log.error)
