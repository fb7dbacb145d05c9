"""Surroundings as they stand on disk: where we are, what people wrote for agents, which skills there are.

Nothing in them has a time: the same place gives the same bytes, today and tomorrow, in every process.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence

from quintet.domain.shown import shown_line
from quintet.domain.surroundings import SkillLine, Surroundings
from quintet.workspace.environment import find_program
from quintet.workspace.files import on_disk
from quintet.workspace.instruction_files import InstructionFiles
from quintet.workspace.paths import PathGuard
from quintet.workspace.skills import find_skills

SKILLS_NAMED = 100


class WorkspaceSurroundings:
    """Plays domain.ports.SurroundingsReader."""

    def __init__(
        self,
        home: str,
        *,
        environment: Mapping[str, str] | None = None,
        skills_dirs: Sequence[str] = (),
        own_dirs: Sequence[str] = (),
    ) -> None:
        """`skills_dirs` were named for this run; `own_dirs` may hold instructions of the person's, beside the home."""
        self._skills_dirs = skills_dirs
        self._home = home
        self._environment = os.environ if environment is None else environment
        self._guard = PathGuard(home)
        self._files = InstructionFiles(self._guard, home, own_dirs)

    async def look(self, cwd: str) -> Surroundings:
        return await on_disk(self._look, cwd)

    def _look(self, cwd: str) -> Surroundings:
        root = self._guard.workspace(cwd)
        left_out = []
        skills = [
            SkillLine(skill.name, shown_line(skill.description), skill.of_project)
            for skill in find_skills(self._home, root, self._skills_dirs)
        ]
        if len(skills) > SKILLS_NAMED:
            left_out.append(f"{len(skills) - SKILLS_NAMED} more skills; read_skill with an empty name lists all")
        return Surroundings(
            self._facts(root, cwd),
            self._files.of(root, cwd),
            tuple(skills[:SKILLS_NAMED]),
            tuple(left_out),
        )

    def _facts(self, root: str, cwd: str) -> tuple[tuple[str, str], ...]:
        facts = [("working directory", shown_line(cwd))]
        if root != os.path.realpath(cwd):
            facts.append(("project root", shown_line(root)))
        facts += [
            ("platform", platform.system()),
            ("git repository", "yes" if os.path.lexists(os.path.join(root, ".git")) else "no"),
            ("shell", "bash" if find_program("bash", self._environment) else "sh"),
        ]
        return tuple(facts)
