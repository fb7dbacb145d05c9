"""Agent: instructions, a model, a set of tools and a mode under one name."""

from __future__ import annotations

import msgspec

from quintet.domain.turn import Mode


class Agent(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    description: str = ""
    instructions: str = ""
    model: str = ""  # "provider/model", empty = whatever the thread or its starter says
    tools: tuple[str, ...] | None = None  # None = every tool the starter brings
    mode: Mode | None = None  # an upper bound, like all others
    source: str = ""  # where it is written, as people would name it; empty = built in
    of_project: bool = False  # its instructions are the project's words, not the person's
    without: tuple[str, ...] = ()  # tools that neither it nor its subagents have


class AgentsFound(msgspec.Struct, frozen=True):
    """What somebody who looked for agents came back with."""

    agents: tuple[Agent, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()  # (name, what is wrong): written, but not to be used
    notes: tuple[str, ...] = ()  # worth knowing
