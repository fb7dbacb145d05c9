"""KNP's part of the server: the engine as its routes see it."""

from __future__ import annotations

from quintet import __version__
from quintet.app import App
from quintet.protocols.knp.house import House
from quintet.rpc.http.health import LoopLag


def knp_house(app: App, roots: tuple[str, ...], lag: LoopLag) -> House:
    """`roots`: the projects given on the command line; the first of them also answers to `default`."""
    return House(app.feed, app.threads, version=__version__, lag=lag, on_defect=app.log.error)
