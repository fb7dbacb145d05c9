"""What a Wire client's commands do on the disk: exports, texts that are taken in, other sessions. Part of the
composition root.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quintet.app import App
from quintet.domain.errors import NotFound
from quintet.domain.ids import has_prefix
from quintet.domain.item import Part
from quintet.domain.model import ModelInfo
from quintet.domain.thread import Thread, ThreadSettings

if TYPE_CHECKING:
    from quintet.protocols.wire.place import Place


class WireDisk:
    """Plays engine.deeds.Disk."""

    def __init__(self, app: App, place: Place) -> None:
        self._app = app
        self._place = place

    async def write(self, path: str, name: str, pieces: Iterable[bytes], thread: Thread) -> str:
        """Only where the thread works: it is a client's word, not the person's at their own shell."""
        from quintet.workspace.exports import write_export
        from quintet.workspace.files import on_disk

        guard, cwd = self._app.hands.guard, thread.settings.cwd

        def written() -> str:
            there = os.path.join(cwd, path or os.curdir)
            into = not path or path.endswith(os.sep) or os.path.isdir(there)
            file = os.path.join(there, name) if into else there
            return write_export(
                guard, file, pieces, cwd=cwd, root=self._beside(file, thread) or guard.workspace(cwd)
            ).shown

        return await on_disk(written)

    async def read(self, path: str, thread: Thread, model: ModelInfo) -> tuple[Part, ...]:
        root = await asyncio.to_thread(self._beside, path, thread)
        return await self._app.hands.attachments.parts([path], cwd=thread.settings.cwd, model=model, root=root)

    def _beside(self, path: str, thread: Thread) -> str:
        """The directory beside the workspace that a path lies in; empty for none, and the guard judges all the same."""
        from quintet.workspace.paths import contains

        above, name = os.path.split(os.path.join(thread.settings.cwd, path))
        there = os.path.join(os.path.realpath(above), name)
        standing = self._app.hands.guard.standing(thread.settings.directories, thread.settings.cwd)
        return next((place for place in standing if contains(place, there)), "")

    async def adding(self, path: str, thread: Thread) -> tuple[str, ...]:
        settings = thread.settings
        return await asyncio.to_thread(self._app.hands.guard.adding, path, settings.cwd, settings.directories)

    async def thread_named(self, name: str) -> Thread | None:
        """By its session id in this directory, also one that only its files tell of; or by its own id."""
        from quintet.protocols.wire.place import place_of

        other = replace(self._place, session=name)
        if place_of(other.handle()) is None:
            return None
        handle = other.handle()
        known = await self._app.journal.find_handle(handle.protocol, handle.scope, handle.external_id)
        if known is not None and not known.deleted_ms:
            return (await self._app.threads.get(known.thread)).thread
        if has_prefix(name, "thr"):
            try:
                return (await self._app.threads.get(name)).thread
            except NotFound:
                return None
        if await asyncio.to_thread(os.path.isfile, other.path("context.jsonl")):
            cwd = self._place.real_dir or self._place.work_dir
            return await self._app.wire_files.open(other, ThreadSettings(cwd))
        return None
