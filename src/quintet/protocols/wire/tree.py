"""A turn and its subagents' turns: whose event it is, and under which call's name the client is told of it.

Requests and their outcomes go to the client as they are; everything else of a subagent is wrapped.
"""

from __future__ import annotations

from typing import NamedTuple

from quintet.domain.errors import NotFound
from quintet.domain.event import Event, ThreadUpdated, TurnQueued
from quintet.domain.ports import Journal
from quintet.domain.turn import Turn
from quintet.protocols.wire.events import Options, Out, Projection
from quintet.protocols.wire.kimi_arguments import agent_type
from quintet.protocols.wire.models import Message, SubagentEvent, UserInput
from quintet.protocols.wire.parts import said_by_user

_UNWRAPPED = frozenset({"ApprovalResponse"})


def innermost(message: Message) -> str:
    """What is told, whoever works for whom."""
    while isinstance(message.payload, SubagentEvent):
        message = message.payload.event
    return message.type


class _Branch(NamedTuple):
    projection: Projection
    above: str = ""  # the turn it works for
    call: str = ""
    agent: str = ""
    thread: str = ""


class Tree:
    def __init__(
        self,
        journal: Journal,
        turn: Turn,
        user_input: UserInput,
        options: Options,
        projection: type[Projection] = Projection,
        *,
        plan_mode: bool | None = None,
    ) -> None:
        """A turn without an input is there to compact, unless something is asked beside the thread. `plan_mode` is as
        it was when the turn began."""
        self._journal = journal
        self._options = options
        self._turn = turn
        self._make = projection
        self.projection = projection(
            user_input, options, plan_mode=plan_mode, compacts=not turn.parts and not turn.aside
        )
        self._branches = {turn.id: _Branch(self.projection)}

    async def take(self, event: Event) -> list[Out]:
        told = self.take_known(event)
        if told is None:
            assert isinstance(event.payload, TurnQueued)
            self._branches[event.turn] = await self._below(event.payload.turn)
        return self.take_known(event) or [] if told is None else told

    def take_known(self, event: Event) -> list[Out] | None:
        """The same, at once; None for the first event of a subagent's turn, of which something has to be looked up."""
        branch = self._branches.get(event.turn)
        if branch is None:
            payload = event.payload
            if isinstance(payload, ThreadUpdated) and event.thread == self._turn.thread:
                return self.projection.project(event)
            known = isinstance(payload, TurnQueued) and payload.turn.for_turn in self._branches
            return None if known else []
        out = branch.projection.project(event)
        return [self._wrapped(entry, branch) for entry in out] if branch.above else out

    async def _below(self, turn: Turn) -> _Branch:
        try:
            agent = (await self._journal.thread(turn.thread)).settings.agent
        except NotFound:
            agent = ""  # deleted meanwhile
        agent = agent_type(agent)
        mode = self.projection.plan_mode  # what is planned above is not done below
        task = turn.thread if turn.background else self._branches[turn.for_turn].projection.task
        given = (said_by_user(turn.parts), self._options, turn.thread, agent)
        projection = self._make(*given, plan_mode=mode, task=task)
        return _Branch(projection, turn.for_turn, turn.for_call, agent, turn.thread)

    def _wrapped(self, entry: Out, branch: _Branch) -> Out:
        if not isinstance(entry, Message) or entry.type in _UNWRAPPED:
            return entry
        while branch.above:
            said = SubagentEvent(branch.call, branch.call, branch.thread or None, branch.agent or None, entry)
            entry, branch = Message("SubagentEvent", said), self._branches[branch.above]
        return entry
