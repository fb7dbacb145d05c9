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
