"""Client: the sessions that one client has open, and the turns it was told of. One per connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from quintet.domain.errors import NotFound
from quintet.protocols.kward.errors import unknown

if TYPE_CHECKING:
    from quintet.domain.thread import Thread
    from quintet.protocols.kward.house import House
    from quintet.protocols.kward.others import Others
    from quintet.protocols.kward.places import Place
    from quintet.protocols.kward.running import Running


class Opened:
    """A thread as this client has it open; the same thread may be open twice."""

    def __init__(self, id: str, thread: str, place: Place, *, own: bool) -> None:
        self.id = id
        self.own = own  # begun by this client: it goes again where it is never used
        self.thread = thread
        self.place = place
        self.order = asyncio.Lock()  # what names one session takes effect in the order it came
        self.turns: list[Running] = []  # that have not ended, the running one first
        self.compacting = 0
        self.others: Others | None = None  # who tells what other processes do in it

    @property
    def busy(self) -> bool:
        return bool(self.turns or self.compacting)


class Client:
    def __init__(self, house: House) -> None:
        self.house = house
        self.sessions: dict[str, Opened] = {}
        self.turns: dict[str, Running] = {}
        self.unmasked: set[Any] = set()  # ids of requests whose answer is promised as it is stored

    def session(self, id: str) -> Opened:
        found = self.sessions.get(id)
        if found is None:
            raise unknown("session", id)
        return found

    @asynccontextmanager
    async def in_order(self, id: str) -> AsyncIterator[Opened]:
        """The session, once everything that came before and names it has taken effect."""
        found = self.session(id)
        async with found.order:
            yield self.session(id)  # what came before may have closed it

    def forget(self, id: str) -> None:
        session = self.sessions.pop(id, None)
        if session is not None and session.others is not None:
            session.others.close()

    def turn(self, id: str) -> Running:
        found = self.turns.get(id)
        if found is None:
            raise unknown("turn", id)
        return found


async def thread_of(house: House, session: Opened) -> Thread:
    """What stands behind a session. One that was erased elsewhere is as unknown as one that never was: a client that
    hears so begins another."""
    try:
        return await house.feed.journal.thread(session.thread)
    except NotFound:
        raise unknown("session", session.id) from None
