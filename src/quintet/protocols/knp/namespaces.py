"""Namespaces: KNP's word for projects. Which one a request means, what it is called, and where its files lie.

The roots are the server's; a client chooses among names, never among directories.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from quintet.domain.errors import Invalid, NotFound
from quintet.domain.project import DEFAULT, Project, root_of_name
from quintet.domain.thread import Thread
from quintet.engine.projects import Projects

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
NO_ROOT = "The server was not started for this project's directory, so nothing can be read or run there through it."


class Namespace(msgspec.Struct, frozen=True):
    name: str  # as it is written in answers
    project: str  # empty: nobody has used the name yet
    root: str  # empty: its directory is none of the server's

    @property
    def project_to_use(self) -> str:
        """The project of a new thread, which makes it where nobody has used the name yet."""
        return self.project or root_of_name(self.name)

    def rooted(self) -> str:
        if not self.root:
            raise Invalid(NO_ROOT, next_step="Start the server with --project for it, or name it under [projects].")
        return self.root


class Namespaces:
    def __init__(self, projects: Projects, roots: Sequence[str]) -> None:
        self._projects = projects
        self._directories = tuple(roots)  # the first one's project answers to `default`
        self._roots: dict[str, str] = {}  # by project: those whose files may be looked at
        self._default: Project | None = None
        self._names: dict[str, str] = {}  # by project

    async def default(self) -> Project:
        """Looked up once: it is registered by the first request that needs it."""
        if self._default is None:
            found = [await self._projects.of(directory) for directory in self._directories]
            self._roots = {project.id: project.root for project in found}
            self._default = found[0]
            self._names[found[0].id] = DEFAULT
        return self._default

    async def named(self, name: str) -> Namespace:
        """The one of this name; nothing is made by asking for it."""
        if not _NAME.fullmatch(name):
            raise Invalid("A namespace has 1 to 64 letters, digits, dots, dashes and underscores.")
        default = await self.default()
        if name in (DEFAULT, default.name):
            return Namespace(DEFAULT, default.id, default.root)
        for project in await self._projects.all():
            if project.name == name:
                root = default.root if project.is_name else self._roots.get(project.id, "")
                return Namespace(name, project.id, root)
        return Namespace(name, "", default.root)

    async def name_of(self, project: str) -> str:
        """How a project is called in answers; names do not change."""
        if project not in self._names:
            await self.default()
            for known in await self._projects.all():
                self._names.setdefault(known.id, known.name)
        return self._names.get(project, "")


def in_namespace(thread: Thread, namespace: Namespace) -> Thread:
    """The thread, if it is of this namespace; else it is not there for who asks."""
    if not namespace.project or thread.project != namespace.project:
        raise no_thread()
    return thread


def no_thread() -> NotFound:
    return NotFound("Thread not found.", next_step="List what there is with GET /threads.")
