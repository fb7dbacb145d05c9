"""Prompt: what the model is told before the thread's own items. Pure; the same input gives the same bytes."""

from __future__ import annotations

from quintet.domain.agent import Agent
from quintet.domain.surroundings import Surroundings

INSTRUCTIONS = (
    "You are a coding agent working in the user's project through tools. "
    "Look before you change, change only what was asked, and say plainly what you did and what you could not do."
)
PLANNING = (
    "You are in plan mode: look at whatever you need, change nothing, and end with a plan the person can agree to."
)
CODER = Agent("coder", "Works in the project through tools.", INSTRUCTIONS)


def system_text(agent: Agent, around: Surroundings, *, project: str = "", plan_mode: bool = False) -> str:
    """Stable parts first: what changes rarely stands before what changes more often."""
    parts = [agent.instructions or INSTRUCTIONS]
    if around.facts:
        parts.append("# Where you are\n" + "\n".join(f"- {name}: {value}" for name, value in around.facts))
    for given in around.instructions:
        whose = "the person's own" if given.of_person else "the project's"
        parts.append(f"# Instructions from {given.source} ({whose})\n{given.text.strip()}")
    if project:
        parts.append(f"# Instructions from the project's configuration\n{project.strip()}")
    if around.skills:
        listed = "\n".join(f"- {skill.name}: {skill.description}" for skill in around.skills)
        parts.append(f"# Skills (read one with the tool `read_skill` before you use it)\n{listed}")
    if around.memory:
        parts.append(f"# What you remember\n{around.memory.strip()}")
    if plan_mode:
        parts.append(PLANNING)
    return "\n\n".join(parts)
