"""What other processes do in a session that is open here: their turns are told live, as the client's own are.

A turn belongs to the process that runs it. This one follows the thread; it can steer, answer and stop as anybody can.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from quintet.domain import event as ev
from quintet.domain.errors import NotFound
from quintet.domain.interaction import Interaction
from quintet.domain.turn import Turn, TurnState
from quintet.engine.subscription import Subscription, replay
from quintet.protocols.kward.client import Client, Opened
from quintet.protocols.kward.compacting import Shortening
from quintet.protocols.kward.events import Asked, Compacting, Frame, Projection
from quintet.protocols.kward.running import Running
from quintet.rpc.connection import Connection

Said = ev.TextDelta | ev.ReasoningDelta


class Others:
    """Of one open session, until it is closed."""

    def __init__(self, connection: Connection[Client], session: Opened) -> None:
        self._connection, self._session = connection, session
        self._feed = connection.state.house.feed
        self._turns: dict[str, Foreign | Shortened] = {}
        self._ends: set[asyncio.Task[Turn]] = set()
        self._events: Subscription | None = None
        self._closed = False

    async def follow(self) -> None:
        """Once the client knows the session: nothing of it can be told before."""
        try:
            with suppress(NotFound):  # erased meanwhile: the next request is told so
                root = (await self._feed.journal.thread(self._session.thread)).root
                cursor = await self._catch_up(root)
                if not self._closed:
                    self._events = self._feed.follow(cursor, root=root)
                    await self._tell(self._events)
        finally:
            self.close()

    def close(self) -> None:
        self._closed = True
        if self._events is not None:
            self._events.close()
        for waiting in self._ends:
            waiting.cancel()
        for turn in self._turns.values():
            turn.forget()
        self._turns = {}

    async def _catch_up(self, root: str) -> int:
        """What runs already, as if it had been watched from its beginning; how far the journal was read for it."""
        journal = self._feed.journal
        cursor = (await journal.marks()).last
        live = [turn for turn in await journal.turns(self._session.thread, live=True) if self._is_foreign(turn)]
        for turn in live:
            await self._begin(turn)
        if live and live[0].state is TurnState.RUNNING:
            began = await journal.began(live[0].id)
            async for entry in replay(journal, min(began - 1, cursor), root):
                if isinstance(entry, ev.Event):
                    await self._take(entry, past=True)
                    cursor = max(cursor, entry.seq)
            for told in [*self._turns.values()]:
                await told.caught_up()
        return cursor

    async def _tell(self, events: Subscription) -> None:
        async for entry in events:
            if isinstance(entry, ev.Event):
                await self._take(entry)
                if isinstance(entry.payload, ev.ThreadDeleted) and entry.thread == self._session.thread:
                    return

    async def _take(self, event: ev.Event, *, past: bool = False) -> None:
        if isinstance(event.payload, ev.TurnQueued) and self._is_foreign(event.payload.turn):
            await self._begin(event.payload.turn)
        for turn in [*self._turns.values()]:
            await (turn.take_past(event) if past else turn.take(event))
        self._turns = {id: turn for id, turn in self._turns.items() if not turn.ended}

    def _is_foreign(self, turn: Turn) -> bool:
        """A subagent's belongs to the turn it works for; what this process runs is told by whoever began it; a question
        beside the thread is nothing this protocol could tell."""
        mine = turn.for_turn or turn.aside or turn.runner == self._feed.journal.owner
        return turn.thread == self._session.thread and not mine and turn.id not in self._turns

    async def _begin(self, turn: Turn) -> None:
        if turn.parts:
            told = self._turns[turn.id] = Foreign(self._connection, self._session, turn)
            await told.queue()
        else:  # a compaction that somebody asked for: no turn for this protocol
            self._turns[turn.id] = Shortened(Shortening(self._connection, self._session), turn)
        # Should its process die, somebody must see that and end it.
        waiting = asyncio.ensure_future(self._connection.state.house.turns.wait(turn.id))
        self._ends.add(waiting)
        waiting.add_done_callback(self._ended)

    def _ended(self, waiting: asyncio.Task[Turn]) -> None:
        self._ends.discard(waiting)
        if not waiting.cancelled() and (failure := waiting.exception()) is not None:
            self._connection.log("waiting for another process's turn", failure)


class Foreign(Running):
    """A turn of another process. Its numbers begin where this client first hears of it."""

    own = False

    def __init__(self, connection: Connection[Client], session: Opened, turn: Turn) -> None:
        super().__init__(connection, session)
        self._created_ms = turn.queued_ms
        self._turn: Turn = turn
        self._projection: Projection = Projection(turn.id)
        self._unfinished: dict[str, list[Said]] = {}  # by item: it is in no transcript before it is whole
        self._open: dict[str, Interaction] = {}
        self._step = ""  # the one that speaks; the engine's own, a question beside it say, end in between

    async def take(self, event: ev.Event) -> None:
        for out in self._projection.project(event):
            await self._send(out)
        if self._projection.finished is not None:
            self._leave()

    async def take_past(self, event: ev.Event) -> None:
        """What is whole is in the transcript and not told again; where the turn stands is told."""
        said = event.payload
        mine = event.turn == self._turn.id
        if mine and isinstance(said, ev.TurnStarted | ev.TurnCancelRequested | ev.TurnFinished):
            await self.take(event)
            return
        for out in self._projection.project(event):
            if isinstance(out, Asked):
                self._open[out.interaction.id] = out.interaction
        match said:
            case ev.TextDelta(item=item) | ev.ReasoningDelta(item=item) if mine:
                self._unfinished.setdefault(item, []).append(said)
            case ev.ItemAdded(item=whole):
                self._unfinished.pop(whole.id, None)
            case ev.StepStarted(step=step, number=number) if mine and number:
                self._step = step
            case ev.StepRetried(step=step) | ev.StepFinished(step=step) if mine and step == self._step:
                self._unfinished = {}
            case ev.InteractionResolved(interaction=id):
                self._open.pop(id, None)

    async def caught_up(self) -> None:
        if self.ended:
            return
        for pieces in self._unfinished.values():
            kind = "assistantDelta" if isinstance(pieces[0], ev.TextDelta) else "reasoningDelta"
            await self._send(Frame(kind, {"delta": "".join(piece.text for piece in pieces)}, pieces[0].item))
        for asked in self._open.values():
            await self._send(Asked(asked))
        self._unfinished, self._open = {}, {}

    def forget(self) -> None:
        """The session is closed; the turn goes on without this client."""
        if self in self.session.turns:
            self.session.turns.remove(self)
        self._leave()


class Shortened:
    """A compaction in another process."""

    def __init__(self, shortening: Shortening, turn: Turn) -> None:
        self._shortening = shortening
        self._projection = Projection(turn.id)

    @property
    def ended(self) -> bool:
        return self._projection.finished is not None

    async def take(self, event: ev.Event) -> None:
        for out in self._projection.project(event):
            if isinstance(out, Compacting):
                await (self._shortening.over(out.over) if out.over else self._shortening.begun())

    async def take_past(self, event: ev.Event) -> None:
        await self.take(event)  # it is told when it began, not again when it is over

    async def caught_up(self) -> None:
        pass

    def forget(self) -> None:
        pass
