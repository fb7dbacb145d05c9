"""replay: what the thread has seen so far, told again from the journal. Starts nothing and asks no model."""

from __future__ import annotations

from collections.abc import AsyncIterator

from quintet.domain import event as ev
from quintet.domain import item as it
from quintet.domain.interaction import ExternalCall
from quintet.domain.thread import Thread
from quintet.engine.subscription import facts
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.asked import Asked
from quintet.protocols.wire.client import Client
from quintet.protocols.wire.events import Options, Out, Projection, said_by_user
from quintet.protocols.wire.house import House
from quintet.protocols.wire.models import Message
from quintet.protocols.wire.tree import Tree
from quintet.rpc.call import Call
from quintet.rpc.rows import Family, NoParams

REPLAY = Family("replay")


class Retold(Projection):
    """From what is kept: items say whole what deltas said in pieces, and approvals are over."""

    def _item_retold(self, said: ev.ItemAdded) -> list[Out]:
        match said.item.body:
            case it.AssistantMessage(text=text) if text:
                return [Message("ContentPart", wire.TextPart(text))]
            case it.Reasoning(text=text) if text:
                return [Message("ContentPart", wire.ThinkPart(text))]
        return self._item_added(said)

    def _requested_then(self, said: ev.InteractionRequested) -> list[Out]:
        out = self._requested(said)
        return out if isinstance(said.interaction.request, ExternalCall) else []

    def _resolved_then(self, said: ev.InteractionResolved) -> list[Out]:
        self._resolved(said)
        return []


Retold.rows = Projection.rows | {
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
        if not isinstance(said.item.body, it.UserMessage):
            return self._telling.project(event) if self._telling else []
        ended = self.end()
        self._telling = Retold(said_by_user(said.item.body.parts), self._options)
        return [*ended, *self._telling.begin()]

    def end(self) -> list[Out]:
        telling, self._telling = self._telling, None
        return [Message("TurnEnd", wire.Empty())] if telling else []


async def retell(house: House, thread: Thread) -> AsyncIterator[Message | Asked]:
    """Every message of every turn, in order, whoever began it."""
    trees: dict[str, Tree] = {}
    journal, options = house.feed.journal, Options(house.names, house.window)
    brought = Brought(options)
    async for event in facts(journal, 0, thread.root):
        said = event.payload
        if isinstance(said, ev.TurnQueued) and event.thread == thread.id:
            trees = {event.turn: Tree(journal, said.turn, said_by_user(said.turn.parts), options, Retold)} | trees
        for out in brought.take(event) if event.thread == thread.id else ():
            if isinstance(out, Message):
                yield out
        for tree in tuple(trees.values()):
            for out in await tree.take(event):
                if isinstance(out, Message | Asked):
                    yield out
        if isinstance(said, ev.TurnFinished):
            trees.pop(event.turn, None)
    for out in brought.end():
        if isinstance(out, Message):
            yield out


class Replaying:
    def __init__(self) -> None:
        self.cancelled = False

    async def cancel(self) -> None:
        self.cancelled = True


@REPLAY.method("replay", result=wire.ReplayResult, summary="Tell again everything the thread has seen, in order (1.3).")
async def replay(call: Call[Client], params: NoParams) -> wire.ReplayResult:
    client, replaying = call.state, Replaying()
    events = requests = 0
    with client.busy(replaying):
        thread = await client.house.thread()
        async for out in retell(client.house, thread):
            if replaying.cancelled:
                return wire.ReplayResult("cancelled", events, requests)
            if isinstance(out, Asked):
                await call.connection.post(out.id, "request", out.message)
                requests += 1
            elif client.gate.lets(out.type):
                await call.notify("event", out)
                events += 1
    return wire.ReplayResult("finished", events, requests)
