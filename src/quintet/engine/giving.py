"""Giving: what a turn puts before its model besides the input: steers, notices, and words of its own.

Each becomes an item; what it was given for is said in the same commit.
"""

from __future__ import annotations

from collections.abc import Sequence

from quintet.domain.event import AnyPayload, ItemAdded, NoticeGiven, TurnSteered
from quintet.domain.ids import new_id
from quintet.domain.item import Item, TextPart, UserMessage, user_text
from quintet.domain.notice import Notice
from quintet.engine.context import Context
from quintet.engine.feed import Feed
from quintet.engine.notices import for_model
from quintet.engine.running import RunningTurn

LOOK = "shell_output"  # what is in the background is looked at with this


class Giving:
    def __init__(self, feed: Feed, running: RunningTurn, context: Context) -> None:
        self._feed = feed
        self._running = running
        self._context = context

    async def words(self, words: str) -> None:
        """For the model, and nobody's input."""
        await self._add(self._item(user_text(words)))

    async def steers(self) -> bool:
        """Put every accepted steer before the model. False when there is none; then the turn may end."""
        steers = await self._running.next_steers()
        for steer in steers:
            item = self._item(UserMessage(steer.parts, steered=True))
            await self._add(item, TurnSteered(steer.id, item.id))
            self._running.steers.popleft()
            self._running.moments.steered()
        return bool(steers)

    async def notices(self, notices: Sequence[Notice]) -> None:
        """Each once: the journal keeps those that have not been given, and this takes them from there."""
        running = self._running
        shows = running.starter.spellings.name_of(LOOK)
        for notice in notices:
            words = for_model(notice, shows if running.offered(shows) else "")
            item = self._item(UserMessage((TextPart(words),), notice=notice.id))
            await self._add(item, NoticeGiven(notice, item.id))
            running.moments.noticed(notice)

    def _item(self, body: UserMessage) -> Item:
        lease = self._running.lease
        return Item(new_id("itm"), lease.thread, lease.turn, 0, self._feed.clock.now_ms(), body)

    async def _add(self, item: Item, *more: AnyPayload) -> None:
        events = await self._feed.say(self._running.lease, ItemAdded(item), *more)
        added = events[0].payload
        assert isinstance(added, ItemAdded)
        self._context.add(added.item)
