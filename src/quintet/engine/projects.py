"""Projects and handles: who is meant by a directory, and which thread is meant by an outside client's own id."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from quintet.domain.errors import NotFound
from quintet.domain.ids import has_prefix
from quintet.domain.ports import Journal
from quintet.domain.project import Project, slug
from quintet.domain.thread import Handle

FindRoot = Callable[[str], str]


class Projects:
    def __init__(self, journal: Journal, find_root: FindRoot) -> None:
        self._journal = journal
        self._find_root = find_root

    async def of(self, cwd: str) -> Project:
        """The project a directory belongs to, registered on first sight."""
        root = self._find_root(cwd)
        return await self._journal.project(root, slug(Path(root).name))

    async def known(self, cwd: str) -> Project | None:
        """The same, where somebody has worked there before; looking registers nothing."""
        root = self._find_root(cwd)
        return next((project for project in await self._journal.projects() if project.root == root), None)

    async def all(self) -> list[Project]:
        return await self._journal.projects()


class Handles:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def find(self, protocol: str, scope: str, external_id: str) -> str | None:
        """The live thread of that name. A core id is accepted as a name too."""
        handle = await self._journal.find_handle(protocol, scope, external_id)
        if handle is not None and not handle.deleted_ms:
            return handle.thread
        if has_prefix(external_id, "thr"):
            try:
                return (await self._journal.thread(external_id)).id
            except NotFound:
                return None
        return None

    async def was_deleted(self, protocol: str, scope: str, external_id: str) -> bool:
        handle = await self._journal.find_handle(protocol, scope, external_id)
        return handle is not None and bool(handle.deleted_ms)

    @staticmethod
    def new(protocol: str, scope: str, external_id: str) -> Handle:
        return Handle(protocol, scope, external_id)
