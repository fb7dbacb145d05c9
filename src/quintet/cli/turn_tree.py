"""TurnTree: which events belong to a turn and its subagents, and under which name each of those is shown."""

from __future__ import annotations

from quintet.domain.errors import NotFound
from quintet.domain.event import Event, TurnQueued
from quintet.domain.ports import Journal


class TurnTree:
    """Learns from the events of the turn's root thread, in their order."""

    def __init__(self, journal: Journal, turn: str) -> None:
        self._journal = journal
        self._names: dict[str, tuple[str, int]] = {turn: ("", 0)}  # by turn: whose it is, and how deep

    async def holds(self, event: Event) -> bool:
        """Whether the event is the turn's or one of its subagents'."""
        said = event.payload
        if isinstance(said, TurnQueued) and said.turn.for_turn in self._names:
            depth = self._names[said.turn.for_turn][1] + 1
            self._names[event.turn] = (await self._name(event.thread), depth)
        return event.turn in self._names

    def prefix(self, event: Event) -> str:
        """What a line about the event begins with; nothing for the turn itself."""
        name, depth = self._names.get(event.turn, ("", 0))
        return f"{'  ' * depth}[{name}] " if depth else ""

    async def _name(self, thread: str) -> str:
        """The agent's, numbered from the second on."""
        try:
            agent = (await self._journal.thread(thread)).settings.agent or "subagent"
        except NotFound:
            agent = "subagent"  # deleted meanwhile
        taken = {name for name, _ in self._names.values()}
        number = 1
        while (name := agent if number == 1 else f"{agent} {number}") in taken:
            number += 1
        return name
