"""The tool `read_skill`: the instructions of a skill, or another of its files. Reads; runs nothing of a skill."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from quintet.domain.errors import Invalid
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, digest, failed, one_line, os_words, plain
from quintet.workspace.files import as_text, on_disk, read_bytes
from quintet.workspace.paths import PathGuard, Place
from quintet.workspace.skills import FILE, Skill, digest_of, files_of, find_skills, split_front

CHARACTERS = 60_000
FILES_NAMED = 50

SPEC = ToolSpec(
    "read_skill",
    "Read a skill: written instructions for a kind of task. Without `file` you get its instructions and the names of "
    "its other files. With an empty name you get the list of skills there are.",
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The skill's name; empty for the list."},
            "file": {"type": "string", "description": "One of its other files, relative to the skill."},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
)


class ReadSkillArguments(Arguments, frozen=True):
    name: Annotated[str, Meta(max_length=200)]
    file: Annotated[str, Meta(max_length=1_000)] = FILE


class ReadSkillTool:
    def __init__(self, guard: PathGuard, home: str = "", given: Sequence[str] = ()) -> None:
        """`given` are directories with skills that the person named for this run."""
        self._guard = guard
        self._home = home
        self._given = given

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("read_skill", arguments, ReadSkillArguments)
        normal = plain(given)
        if not given.name:
            return Prepared("list skills", normal, cwd=scope.cwd, digest=digest("read_skill", normal, scope.cwd))
        skill = await on_disk(self._skill, given.name, scope.cwd)
        seen = await on_disk(digest_of, skill)
        return Prepared(
            title=one_line(f"read the skill {skill.name}"),
            arguments=normal,
            cwd=scope.cwd,
            digest=digest("read_skill", normal, scope.cwd, seen),
            # What a project brings along becomes instructions to the model, so a person agrees first, to exactly this.
            always_ask="The skill comes with the project, not from you." if skill.of_project else "",
            content=("skill", skill.name, seen) if skill.of_project else (),
        )

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("read_skill", prepared.arguments, ReadSkillArguments)
        try:
            if not given.name:
                return _listed(await on_disk(self._skills, prepared.cwd))
            return await on_disk(self._read, given, prepared)
        except Invalid as error:
            return failed(error.line(), error.message)
        except OSError as error:
            return failed(os_words(error, given.file))

    def _skills(self, cwd: str) -> list[Skill]:
        return find_skills(self._home, self._guard.workspace(cwd), self._given)

    def _skill(self, name: str, cwd: str) -> Skill:
        skills = self._skills(cwd)
        for skill in skills:
            if skill.name == name:
                return skill
        known = ", ".join(skill.name for skill in skills) or "none"
        raise Invalid(f"There is no skill {one_line(name, 60)!r}.", next_step=f"Skills here: {known}.")

    def _read(self, given: ReadSkillArguments, prepared: Prepared) -> ToolOutcome:
        skill = self._skill(given.name, prepared.cwd)
        if prepared.content and digest_of(skill) != prepared.content[-1]:
            return failed(f"The skill {skill.name} has changed since it was agreed to; ask for it again.")
        files = files_of(skill)
        wanted = os.path.normpath(given.file)
        if wanted not in files:
            raise Invalid(f"The skill {skill.name} has no file {one_line(given.file, 80)!r}.")
        place = Place(os.path.join(skill.directory, wanted), f"{skill.name}/{wanted}", skill.directory)
        text = as_text(place, read_bytes(place) or b"")
        if wanted == FILE:
            text = split_front(text)[1].strip()
        notes = []
        if len(text) > CHARACTERS:
            notes.append(f"cut: {CHARACTERS} of {len(text)} characters")
        others = [name for name in files if name != FILE]
        if wanted == FILE and others:
            more = f" and {len(others) - FILES_NAMED} more" if len(others) > FILES_NAMED else ""
            notes.append(f"other files of this skill: {', '.join(others[:FILES_NAMED])}{more}")
        told = "".join(f"\n[{note}]" for note in notes)
        brief = {"type": "brief", "text": f"skill {place.shown}"}
        return ToolOutcome(text[:CHARACTERS] + told, message=f"read {place.shown}", display=(brief,))


def _listed(skills: list[Skill]) -> ToolOutcome:
    # What a project's skill says of itself is part of what has to be agreed to first.
    lines = [f"{s.name} (of the project)" if s.of_project else f"{s.name}: {s.description}" for s in skills]
    count = f"{len(skills)} skill{'' if len(skills) == 1 else 's'}"
    return ToolOutcome("\n".join(lines) or "There are no skills here.", message=count)
