"""Surroundings as they stand on disk: where we are, what people wrote for agents, which skills there are."""

from __future__ import annotations

import os
import platform

from quintet.domain.surroundings import SkillLine, Surroundings
from quintet.workspace.files import on_disk
from quintet.workspace.paths import PathGuard
from quintet.workspace.skills import find_skills


class WorkspaceSurroundings:
    """Plays domain.ports.SurroundingsReader."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._guard = PathGuard(home)

    async def look(self, cwd: str) -> Surroundings:
        return await on_disk(self._look, cwd)

    def _look(self, cwd: str) -> Surroundings:
        root = self._guard.workspace(cwd)
        facts = [("working directory", cwd), ("platform", platform.system())]
        if root != os.path.realpath(cwd):
            facts.append(("project", root))
        skills = tuple(SkillLine(skill.name, skill.description) for skill in find_skills(self._home, root))
        return Surroundings(tuple(facts), skills=skills)
