"""Agents: who may work in a thread, by name. Built in, the person's own, and those a project brings along.

A name means the same everywhere: the person's own stands before a built-in one, and a project can add names but never
take one over. Knows no files; those who read them hand in what they found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from quintet.domain.agent import Agent, AgentsFound
from quintet.domain.errors import Invalid, NotFound
from quintet.domain.tool import ToolSpec
from quintet.domain.turn import Mode

INSTRUCTIONS = (
    "You are a coding agent working in the user's project through tools. "
    "Look before you change, change only what was asked, and say plainly what you did and what you could not do."
)
PLAN_INSTRUCTIONS = (
    "You are a planning agent in the user's project. You read, search and ask; you change nothing. "
    "Find out what the task really touches, name the files and functions with their paths, say what is uncertain, and "
    "end with numbered steps small enough to be done and checked one by one."
)
EXPLORE_INSTRUCTIONS = (
    "You find things out in the user's project and report; you change nothing. Search broadly first, by names and by "
    "words, then read what matters; make several calls at once where they do not need one another. Look as thoroughly "
    "as you were asked to. Report what you found with paths and lines, and what you looked for and did not find."
)
CODER = Agent("coder", "Works in the project through tools.", INSTRUCTIONS)
PLANNER = Agent("planner", "Reads, asks and writes a plan; changes nothing.", PLAN_INSTRUCTIONS, mode=Mode.READ_ONLY)
EXPLORER = Agent(
    "explorer",
    "Searches and reads the project fast and reports; changes nothing.",
    EXPLORE_INSTRUCTIONS,
    mode=Mode.READ_ONLY,
)
BUILT_IN = {agent.name: agent for agent in (CODER, EXPLORER, PLANNER)}

# Without these a turn could neither read the rest of what it was given nor leave plan mode.
ALWAYS_OFFERED = frozenset({"read_result", "exit_plan_mode"})


def may_use(agent: Agent, tool: str) -> bool:
    if tool in agent.without:
        return False
    return agent.tools is None or tool in agent.tools or tool in ALWAYS_OFFERED


def offering(spec: ToolSpec, agents: Sequence[Agent]) -> ToolSpec:
    """The tool, saying whom work can be given to. What a project says of its agents is not for this place."""
    lines = [f"- {a.name}: {'one of the project' if a.of_project else a.description}" for a in agents]
    return (
        msgspec.structs.replace(spec, description="\n".join([spec.description, "Agents:", *lines])) if lines else spec
    )


class Agents:
    """`own` gives the person's, `of_project` what the project around a directory brings. Both are asked anew each time,
    in a thread of their own: they may look at files."""

    def __init__(
        self,
        own: Callable[[], AgentsFound] = AgentsFound,
        of_project: Callable[[str], AgentsFound] = lambda directory: AgentsFound(),
    ) -> None:
        self._own = own
        self._of_project = of_project

    async def named(self, name: str, cwd: str) -> Agent:
        """The agent of this name for a thread working there; the usual one when none is named."""
        wanted = name or CODER.name
        found = await self.all(cwd)
        problem = dict(found.problems).get(wanted)
        if problem:
            raise Invalid(f"The agent {wanted} cannot be used. {problem}", next_step="Correct that file.")
        for agent in found.agents:
            if agent.name == wanted:
                return agent
        known = ", ".join(agent.name for agent in found.agents)
        raise NotFound(f"There is no agent {wanted[:60]!r}.", next_step=f"Agents here: {known}.")

    async def all(self, cwd: str) -> AgentsFound:
        """Every agent there is for a thread working there, by name."""
        own = await asyncio.to_thread(self._own)
        brought = await asyncio.to_thread(self._of_project, cwd)
        usable = {**BUILT_IN, **{agent.name: agent for agent in own.agents}}
        problems = dict(own.problems)
        taken = {*usable, *problems}
        problems |= {name: words for name, words in brought.problems if name not in taken}
        hidden = [a for a in brought.agents if a.name in taken]
        usable |= {agent.name: agent for agent in brought.agents if agent not in hidden}
        notes = [f"{a.source}: not used, the name {a.name} is taken by one of yours or a built-in one." for a in hidden]
        agents = sorted((a for a in usable.values() if a.name not in problems), key=lambda agent: agent.name)
        return AgentsFound(tuple(agents), tuple(sorted(problems.items())), (*own.notes, *brought.notes, *notes))
