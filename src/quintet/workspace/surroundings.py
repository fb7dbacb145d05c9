"""Surroundings as they stand on disk: where we are, what people wrote for agents, which skills there are.

Nothing in them has a time: the same place gives the same bytes, today and tomorrow, in every process.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Mapping, Sequence

from quintet.domain.ports import MemoryHook
from quintet.domain.shown import shown_line
from quintet.domain.surroundings import SkillLine, Surroundings
from quintet.workspace.environment import find_program
from quintet.workspace.files import on_disk
from quintet.workspace.instruction_files import InstructionFiles
from quintet.workspace.paths import PathGuard
from quintet.workspace.skills import find_skills

SKILLS_NAMED = 100
MEMORY_LIMIT = 16_000  # characters
RECALL_S = 5.0
NOT_RECALLED = "what you remember: it could not be read this time"


class WorkspaceSurroundings:
    """Plays domain.ports.SurroundingsReader."""

    def __init__(
        self,
        home: str,
        *,
        environment: Mapping[str, str] | None = None,
        memory: MemoryHook | None = None,
        note: Callable[[str], None] | None = None,
        skills_dirs: Sequence[str] = (),
    ) -> None:
        """`note` takes what a person should find in the log; `skills_dirs` were named for this run."""
        self._skills_dirs = skills_dirs
        self._home = home
        self._environment = os.environ if environment is None else environment
        self._memory = memory
        self._note = note
        self._guard = PathGuard(home)
        self._files = InstructionFiles(self._guard, home)

    async def look(self, cwd: str) -> Surroundings:
        memory, problem = await self._recall(cwd)
        return await on_disk(self._look, cwd, memory, problem)

    async def _recall(self, cwd: str) -> tuple[str, tuple[str, ...]]:
        """What is remembered, or that it is not there now: a turn goes on without, and never waits for it for long."""
        if self._memory is None:
            return "", ()
        try:
            async with asyncio.timeout(RECALL_S):
                return await self._memory.recall(cwd), ()
        except Exception as error:
            if self._note is not None:
                self._note(f"The memory could not be read: {str(error) or type(error).__name__}")
            return "", (NOT_RECALLED,)

    def _look(self, cwd: str, memory: str, problem: tuple[str, ...]) -> Surroundings:
        root = self._guard.workspace(cwd)
        left_out = [*problem]
        skills = [
            SkillLine(skill.name, shown_line(skill.description), skill.of_project)
            for skill in find_skills(self._home, root, self._skills_dirs)
        ]
        if len(skills) > SKILLS_NAMED:
            left_out.append(f"{len(skills) - SKILLS_NAMED} more skills; read_skill with an empty name lists all")
        if len(memory) > MEMORY_LIMIT:
            left_out.append(f"{len(memory) - MEMORY_LIMIT} characters of what you remember")
        return Surroundings(
            self._facts(root, cwd),
            self._files.of(root, cwd),
            tuple(skills[:SKILLS_NAMED]),
            memory[:MEMORY_LIMIT],
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
