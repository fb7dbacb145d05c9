"""Attached: the files that go with what is said next."""

from __future__ import annotations

from collections.abc import Sequence

from quintet.app import App
from quintet.cli.attaching import attached
from quintet.domain.item import Part
from quintet.domain.thread import ThreadSettings


class Attached:
    def __init__(self, app: App) -> None:
        self._app = app
        self.paths: list[str] = []
        self.parts: tuple[Part, ...] = ()

    async def add(self, paths: Sequence[str], settings: ThreadSettings, model: str) -> None:
        """Read now, all of them, so that what is wrong is told now. Paths begin in the thread's working directory."""
        every = [*self.paths, *paths]
        self.parts = await attached(self._app, every, settings, model=model, here=settings.cwd)
        self.paths = every

    def forget(self) -> None:
        self.paths, self.parts = [], ()
