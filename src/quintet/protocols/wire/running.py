"""A prompt under way: the engine's turn, shown to the client event by event until its last one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from quintet.domain.errors import QuintetError
from quintet.domain.event import Delta, Event, TurnFinished, TurnStarted
from quintet.domain.item import Part, TextPart
from quintet.domain.thread import Thread
from quintet.domain.turn import Turn, WhenBusy
from quintet.engine.starter import Starter
from quintet.engine.subscription import Subscription
from quintet.engine.turns import Started
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.asked import Asked, Settled
from quintet.protocols.wire.client import Client
from quintet.protocols.wire.ends import needless, result_of
from quintet.protocols.wire.errors import NotSupported
from quintet.protocols.wire.events import Options
from quintet.protocols.wire.house import ME
from quintet.protocols.wire.inputs import core_parts, plain_text
from quintet.protocols.wire.models import Message
from quintet.protocols.wire.requests import Requests
from quintet.protocols.wire.slash import carry_out
from quintet.protocols.wire.tree import Tree
from quintet.protocols.wire.voice import Voice
from quintet.rpc.connection import Connection


class Running:
    def __init__(self, client: Client, connection: Connection[Any], user_input: wire.UserInput) -> None:
        self.client = client
        self._connection = connection
        self._input = user_input
        self._turn: Turn | None = None
        self._cancelled = False
        self._said: tuple[Part, ...] = ()
        self._cancelling: asyncio.Task[None] | None = None
        self._getting: asyncio.Task[tuple[Part, ...]] | None = None  # what lies at addresses
        self.begun = asyncio.Event()  # a turn runs, or all is over: it can be steered, or never will be
        self.over = asyncio.Event()  # everything has been told
        self.left = asyncio.Event()  # the client has left and can be kept no longer
        self.voice = Voice(client, connection, user_input)
        self._requests = Requests(connection, client.house)

    async def play(self) -> wire.PromptResult:
        """The whole turn. When this returns, everything the client is to be told of it has been sent."""
        house = self.client.house
        try:
            called = house.commands.meant(plain_text(self._input))
            if called is not None and (done := await carry_out(self, called)) is not None:
                return done
            await self.fits()
            parts = self._said or await self._given()
            if parts is None:
                await self.voice.whole()
                return wire.PromptResult("cancelled")
            if called is None and house.repeats:
                from quintet.protocols.wire.flowing import run_again  # few clients ask for that

                return await run_again(self, parts)
            return result_of(await self.turn(parts, self.client.starter()))
        except Exception:
            if self.voice.open:  # it could be told no further: nobody would hear of the turn, nor be asked
                await self.cancel()
                await self.voice.end()
            raise
        finally:
            self.begun.set()
            self.over.set()

    async def _given(self) -> tuple[Part, ...] | None:
        """What the client sent; None where it has cancelled while some of that was fetched."""
        self._getting = asyncio.ensure_future(core_parts(self._input, self.client.house.fetch))
        try:
            return await self._getting
        except asyncio.CancelledError:
            if self._cancelled and not self.left.is_set():
                return None
            raise
        finally:
            self._getting.cancel()

    def says(self, words: str) -> None:
        """What the model is given in place of what the client sent."""
        self._said = (TextPart(words, typed=plain_text(self._input)),)

    @property
    def typed(self) -> str:
        return plain_text(self._input)

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    async def turn(
        self,
        parts: tuple[Part, ...],
        starter: Starter,
        *,
        shown: wire.UserInput | None = None,
        when_busy: WhenBusy = WhenBusy.REJECT,
    ) -> TurnFinished:
        """One turn of the engine's; `shown` is the input it is told with, where it is not the prompt's own."""
        thread, start = await self.client.house.thread(), self.client.house.turns.start
        return await self._run(thread, lambda: start(thread.id, parts, starter, when_busy=when_busy), shown)

    async def last_turn(self) -> Turn:
        """As it ended."""
        assert self._turn is not None
        return await self.client.house.feed.journal.turn(self._turn.id)

    async def compact(self, wishes: str) -> wire.PromptResult:
        """A turn that summarises."""
        house = self.client.house
        thread = await house.thread()
        starter = self.client.starter()
        compact, busy = house.turns.compact, WhenBusy.REJECT
        finished = await self._run(thread, lambda: compact(thread.id, starter, wishes, when_busy=busy))
        return wire.PromptResult("finished") if needless(finished) else result_of(finished)

    async def aside(self, question: str) -> wire.PromptResult:
        """A turn that answers a question beside the thread."""
        house = self.client.house
        thread = await house.thread()
        starter = self.client.starter()
        ask, busy = house.turns.aside, WhenBusy.REJECT
        return result_of(await self._run(thread, lambda: ask(thread.id, starter, question, when_busy=busy)))

    async def cancel(self) -> None:
        """Returned when the turn has ended, as far as that is possible."""
        self._cancelled = True
        if self._getting is not None:
            self._getting.cancel()
        if self._turn is not None:
            with suppress(QuintetError):  # it has ended by itself
                await self.client.house.turns.cancel(self._turn.id, ME)

    async def fits(self) -> None:
        """Raises where the model cannot take the input."""
        thread = await self.client.house.thread()
        try:
            if words := self.client.house.unsupported:
                raise NotSupported(words)
            self.client.refuse_unfit(self._input, thread)
        except NotSupported:
            await self.voice.whole()
            raise

    async def _run(
        self, thread: Thread, start: Callable[[], Awaitable[Started]], shown: wire.UserInput | None = None
    ) -> TurnFinished:
        house = self.client.house
        with house.feed.follow(root=thread.root) as events:
            self.client.own_plan_changes = 0  # what was changed before is not among these events
            started = await start()
            self._connection.background(house.use)
            self._turn = started.turn
            if self._cancelled:
                self._cancelling = asyncio.ensure_future(self.cancel())
            now = await house.feed.journal.thread(thread.id)
            options, mode = Options(house.names, house.window, house.session), now.settings.plan_mode
            given = self._input if shown is None else shown
            tree = Tree(house.feed.journal, started.turn, given, options, plan_mode=mode)
            ending = asyncio.ensure_future(house.turns.wait(started.turn.id))
            showing = asyncio.ensure_future(self._show(events, tree))
            try:
                await asyncio.wait({ending, showing}, return_when=asyncio.FIRST_COMPLETED)
                if not showing.done() and ending.exception() is not None:
                    # It ended without being able to say so in the journal: no event will come.
                    await self.voice.tell("TurnEnd", wire.Empty())
                    ending.result()
                return await showing
            finally:
                for task in (ending, showing):
                    task.cancel()
                await asyncio.gather(ending, showing, return_exceptions=True)
                await self._requests.close()

    async def _show(self, events: Subscription, tree: Tree) -> TurnFinished:
        """What comes together is sent together: a fast model says more in a moment than one by one could be sent."""
        async for batch in events.batches():
            for entry in batch:
                if not isinstance(entry, Event):
                    self.client.house.log(
                        "wire: the client reads so slowly that pieces of text were pruned before it got them"
                    )
                    continue
                told = tree.take_known(entry)
                if told is None:
                    told = await tree.take(entry)
                if isinstance(entry.payload, Delta):
                    self.voice.add_pieces(told)
                    continue
                if isinstance(entry.payload, TurnStarted):
                    self.begun.set()
                for out in told:
                    if isinstance(out, Message):
                        self.voice.add(out, tree.projection.finished, cancelled=self._cancelled)
                    else:
                        await self._turn_to(out)
                if tree.projection.finished is not None:
                    self.begun.clear()  # whoever steers now waits: of a flow, another turn may follow
                    await self.voice.flush()
                    return tree.projection.finished
            await self.voice.flush()
        raise asyncio.CancelledError  # the feed was closed: the process ends

    async def _turn_to(self, out: Asked | Settled) -> None:
        await self.voice.flush()  # in their order
        if isinstance(out, Asked):
            await self._requests.ask(out)
        else:
            self._requests.settled(out.interaction)
