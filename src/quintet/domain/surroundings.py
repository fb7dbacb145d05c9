"""Surroundings: what a turn finds around itself and tells the model once, at the beginning of the prompt.

The same surroundings must give the same bytes: a model's cache hits only while the beginning of the prompt is equal.
"""

from __future__ import annotations

import msgspec

from quintet.domain.shown import shown_line


class Instructions(msgspec.Struct, frozen=True):
    """A file somebody wrote for agents, such as AGENTS.md."""

    source: str  # as people would name it: "AGENTS.md", "docs/AGENTS.md"
    text: str
    of_person: bool = False  # the person's own, not the project's


class SkillLine(msgspec.Struct, frozen=True):
    name: str
    description: str
    of_project: bool = False


class Surroundings(msgspec.Struct, frozen=True):
    facts: tuple[tuple[str, str], ...] = ()  # ("working directory", "/x"), ("platform", "Linux"), no clock times
    instructions: tuple[Instructions, ...] = ()
    skills: tuple[SkillLine, ...] = ()
    left_out: tuple[str, ...] = ()  # what there was no room for, in words


def with_directories(around: Surroundings, directories: tuple[str, ...]) -> Surroundings:
    """A person has added these to what is worked on."""
    if not directories:
        return around
    told = ("part of the workspace, too", ", ".join(map(shown_line, directories)))
    return msgspec.structs.replace(around, facts=(*around.facts, told))
