"""A turn this client began: its state, its newest events, and the engine's turn behind it, shown until its end."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from msgspec import UNSET

from quintet.domain.errors import QuintetError, as_quintet_error
from quintet.domain.event import Event
from quintet.domain.turn import Turn, TurnState
from quintet.engine.redaction import HOLD_S
from quintet.engine.subscription import Subscription
from quintet.engine.turns import Started
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client, Opened
from quintet.protocols.kward.compacting import Shortening
from quintet.protocols.kward.events import STATUS, Asked, Compacting, Frame, Out, Projection, error_of
from quintet.protocols.kward.house import ME
from quintet.protocols.kward.masking import PIECES, MaskedPieces
from quintet.protocols.kward.questions import ask
from quintet.protocols.kward.replay import OF_A_CLIENT, Replay
from quintet.protocols.kward.times import iso
from quintet.rpc.connection import Connection

KEPT_TURNS = 100  # of this client that have ended, with their events


class Running:
    own = True  # begun here: it ends when its session is closed

    def __init__(self, connection: Connection[Client], session: Opened) -> None:
        self._connection = connection
        self._house = connection.state.house
        self.session = session
        self.id = str(uuid.uuid4())
        self._created_ms = self._house.feed.clock.now_ms()
        self._started_ms = self._finished_ms = 0
        self._state = TurnState.QUEUED
        self._error: wire.TurnError | None = None
        self.cancel_requested = False
        self.replay = Replay()
        self._sequence = 0
        self._words = MaskedPieces()
        self._release: asyncio.TimerHandle | None = None  # when words that are held back are let go
        self._turn: Turn | None = None
        self._events: Subscription | None = None
        self._projection: Projection | None = None
        self._shortening = Shortening(connection, session)
        self._placed = asyncio.Event()  # in the engine's queue, or it never will be
        self.begun = asyncio.Event()  # it runs, or is over: it can be steered, or never will be
        self.over = asyncio.Event()  # everything of it has been told
        session.turns.append(self)
        connection.state.turns[self.id] = self

    @property
    def ended(self) -> bool:
        return self._state.ended

    def told(self) -> wire.Turn:
        return wire.Turn(
            self.id,
            self.session.id,
            STATUS[self._state],
            self.cancel_requested,
            iso(self._created_ms),
            iso(self._started_ms) if self._started_ms else UNSET,
            iso(self._finished_ms) if self._finished_ms else UNSET,
            self._error or UNSET,
        )

    async def emit(self, type: str, payload: Any, item: str = "") -> None:
        """Numbered before anything is waited for, so that numbers go out in their order. `item`: whose piece it is."""
        if type in PIECES:
            frames = [self._frame(*piece) for piece in self._words.add(type, item, payload["delta"])]
            if self._words.holding and self._release is None:
                self._release = asyncio.get_running_loop().call_later(HOLD_S, self._let_go)
        else:
            frames = [*self._held_back(), self._frame(type, payload)]
        if len(frames) == 1:
            await self._connection.notify("turn/event", frames[0])
        elif frames:
            await self._connection.notify_all("turn/event", frames)

    def _frame(self, type: str, payload: Any) -> wire.TurnEvent:
        self._sequence += 1
        now = self._house.feed.clock.now_ms()
        frame = wire.TurnEvent(self._sequence, iso(now), self.session.id, self.id, type, payload)
        self.replay.add(frame)
        self._note(type, payload, now)
        return frame

    def _held_back(self) -> list[wire.TurnEvent]:
        """What could have been the beginning of a secret, and is not waited for any longer."""
        if self._release is not None:
            self._release.cancel()
            self._release = None
        return [self._frame(*piece) for piece in self._words.release()]

    def _let_go(self) -> None:
        if frames := self._held_back():
            self._connection.background(lambda: self._connection.notify_all("turn/event", frames))

    async def queue(self) -> None:
        """First for the client and then, with `begin`, in the engine: so nothing can be told of it before that."""
        await self.emit("turnQueued", {"status": "queued"})

    async def begin(self, root: str, start: Callable[[], Awaitable[Started]]) -> None:
        if self.ended:
            return  # stopped while it waited for its place
        self._events = self._house.feed.follow(root=root)
        try:
            self._turn = (await start()).turn
        except BaseException as error:
            self._events.close()
            await self.fail(error)
            raise
        finally:
            self._placed.set()
        self._projection = Projection(self._turn.id)
        self._projection.stopping = self.cancel_requested

    async def show(self) -> None:
        """Everything that is to be told of it, until its end."""
        if self._turn is None or self._events is None:
            return
        ending = asyncio.ensure_future(self._house.turns.wait(self._turn.id))
        showing = asyncio.ensure_future(self._show(self._events))
        try:
            await asyncio.wait({ending, showing}, return_when=asyncio.FIRST_COMPLETED)
            if not showing.done() and (failure := ending.exception()) is not None:
                await self.fail(failure)  # it ended without being able to say so in the journal: no event will come
                return
            await showing
        finally:
            for task in (ending, showing):
                task.cancel()
            await asyncio.gather(ending, showing, return_exceptions=True)
            self._events.close()
            self._leave()

    async def fail(self, error: BaseException) -> None:
        if self.ended:
            return  # stopped before: its end has been told
        told = error_of(as_quintet_error(error).info())
        await self.emit("error", told)
        await self.emit("turnFinished", {"status": "failed", "error": told})
        self._leave()

    async def cancel(self) -> None:
        """Asked for and told at once, and once; the engine is told by `stop`."""
        if self.ended or self.cancel_requested:
            return
        self.cancel_requested = True
        if self._projection is not None:
            self._projection.stopping = True
        await self.emit("turnCancelRequested", {})

    async def stop(self) -> None:
        """Returned when the engine's turn has ended, as far as that is possible."""
        if self._events is not None:
            await self._placed.wait()
        if self._turn is None:
            if not self.ended:
                await self.emit("turnFinished", {"status": "canceled", "error": None})
                self._leave()
        else:
            with suppress(QuintetError):  # it has ended by itself
                await self._house.turns.cancel(self._turn.id, ME)

    async def _show(self, events: Subscription) -> None:
        assert self._projection is not None
        async for entry in events:
            if not isinstance(entry, Event):
                self._house.log("kward: the client reads so slowly that pieces of text were pruned before it got them")
                continue
            for out in self._projection.project(entry):
                await self._send(out)
            if self._projection.finished is not None:
                return

    async def _send(self, out: Out) -> None:
        match out:
            case Frame(type=type, payload=payload, item=item):
                await self.emit(type, payload, item)
            case Asked(interaction=interaction):
                await ask(self._connection, self.session, interaction)
            case Compacting(over=None):
                await self._shortening.begun()
            case Compacting(over=finished):
                assert finished is not None
                await self._shortening.over(finished)

    def _note(self, type: str, payload: Any, now: int) -> None:
        match type:
            case "turnStarted":
                self._state, self._started_ms = TurnState.RUNNING, now
                self.begun.set()
            case "turnFinished":
                self._state = next(state for state, word in STATUS.items() if word == payload["status"])
                self._finished_ms, self._error = now, payload["error"]
                self.cancel_requested = self.cancel_requested or self._state is TurnState.CANCELLED
                self._gone()
            case "turnCancelRequested":
                self.cancel_requested = True

    def _gone(self) -> None:
        if self in self.session.turns:
            self.session.turns.remove(self)
        turns = self._connection.state.turns
        ended = [turn for turn in turns.values() if turn.ended]
        size = sum(turn.replay.size for turn in turns.values())
        for place, old in enumerate(ended[:-1], 1):
            if len(ended) - place < KEPT_TURNS and size <= OF_A_CLIENT:
                break
            size -= turns.pop(old.id).replay.size
        self.begun.set()

    def _leave(self) -> None:
        self.begun.set()
        self.over.set()
