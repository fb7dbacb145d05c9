"""A thread told again from what is kept, as Wire's messages: its turns, and what happened between them.

For replay and for wire.jsonl alike. Sends and writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from quintet.domain import event as ev
from quintet.domain import item as it
from quintet.domain.interaction import ExternalCall
from quintet.domain.ports import Journal
from quintet.domain.thread import Thread
from quintet.domain.view import ViewReason
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.asked import Asked
from quintet.protocols.wire.events import Options, Out, Projection
from quintet.protocols.wire.models import Message
from quintet.protocols.wire.parts import said_by_user, wire_part
from quintet.protocols.wire.slash import CLEARED
from quintet.protocols.wire.status import filled
from quintet.protocols.wire.tree import Tree


class Retold(Projection):
    """From what is kept: items say whole what deltas said in pieces, and approvals are over."""

    def _item_retold(self, said: ev.ItemAdded) -> list[Out]:
        match said.item.body:
            case it.AssistantMessage(sent=it.MediaPart() as part):
                return [Message("ContentPart", wire_part(part))]
            case it.AssistantMessage(text=text) if text:
                return [Message("ContentPart", wire.TextPart(text))]
            case it.Reasoning(text=text) if text:
                return [Message("ContentPart", wire.ThinkPart(text))]
        return self._item_added(said)

    def _requested_then(self, said: ev.InteractionRequested) -> list[Out]:
        out = self._requested(said)
        return out if isinstance(said.interaction.request, ExternalCall) else []

    def _given_up(self, call_id: str) -> list[Out]:
        return []

    def _resolved_then(self, said: ev.InteractionResolved) -> list[Out]:
        self._resolved(said)
        return []


_IN_PIECES = (ev.TextDelta, ev.ReasoningDelta, ev.MediaDelta, ev.ToolCalled, ev.ToolInputDelta)
Retold.rows = {kind: row for kind, row in Projection.rows.items() if kind not in _IN_PIECES} | {
    ev.ItemAdded: Retold._item_retold,
    ev.InteractionRequested: Retold._requested_then,
    ev.InteractionResolved: Retold._resolved_then,
}


class Brought:
    """Items that came from elsewhere with no turn around them, told as the turns they once were."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._telling: Retold | None = None

    def take(self, event: ev.Event) -> list[Out]:
        said = event.payload
        if not isinstance(said, ev.ItemAdded) or event.turn:
            return self.end() if isinstance(said, ev.TurnStarted) else []
        if not isinstance(said.item.body, it.UserMessage) or said.item.body.notice:
            return self._telling.project(event) if self._telling else []
        ended = self.end()
        self._telling = Retold(said_by_user(said.item.body.parts), self._options)
        return [*ended, *self._telling.begin()]

    def end(self) -> list[Out]:
        telling, self._telling = self._telling, None
        return [Message("TurnEnd", wire.Empty())] if telling else []


class Telling:
    """A thread told again, event by event: its turns, whoever began them, and what happened between them."""

    def __init__(self, journal: Journal, thread: Thread, options: Options, *, plan_mode: bool = False) -> None:
        """`plan_mode` as it was before the first of these events."""
        self._journal = journal
        self._thread = thread
        self._options = options
        self._plan_mode = plan_mode
        self._trees: dict[str, Tree] = {}
        self._brought = Brought(options)

    async def take(self, event: ev.Event) -> list[Message | Asked]:
        said, out = event.payload, list[Out]()
        if event.thread == self._thread.id:
            out += self._brought.take(event)
            if isinstance(said, ev.TurnStarted):
                self._trees[event.turn] = await self._tree(event.turn)
            elif not self._trees:
                out += _between(said)
            if isinstance(said, ev.ThreadUpdated) and said.plan_mode is not None:
                self._plan_mode = said.plan_mode
        for tree in tuple(self._trees.values()):
            out += await tree.take(event)
        if isinstance(said, ev.TurnFinished):
            self._trees.pop(event.turn, None)
        return _told(out)

    def end(self) -> list[Message | Asked]:
        return _told(self._brought.end())

    async def _tree(self, turn_id: str) -> Tree:
        turn = await self._journal.turn(turn_id)
        unsaid = f"/btw {turn.aside}" if turn.aside else "/compact"
        said = said_by_user(turn.parts) if turn.parts else unsaid
        return Tree(self._journal, turn, said, self._options, Retold, plan_mode=self._plan_mode)


def _told(out: Sequence[Out]) -> list[Message | Asked]:
    return [entry for entry in out if isinstance(entry, Message | Asked)]


def _between(said: object) -> list[Out]:
    """What changes a thread while it rests. A command that changes nothing, such as /help, leaves nothing to tell."""
    match said:
        case ev.ThreadUpdated(plan_mode=bool() as enabled):
            return [Message("StatusUpdate", wire.PlanUpdate(plan_mode=enabled))]
        case ev.ViewChanged(reason=ViewReason.CLEAR):
            return [
                Message("TurnBegin", wire.TurnBegin("/clear")),
                Message("ContentPart", wire.TextPart(CLEARED)),
                Message("StatusUpdate", filled(0, None)),
                Message("TurnEnd", wire.Empty()),
            ]
    return []
