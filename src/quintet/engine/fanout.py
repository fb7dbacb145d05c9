"""Fan-out: many watchers of one projection. The feed is read once and each event projected once for all of them.

Watchers that want the same are one group: what they get is picked once. Knows no wire: a frame is whatever the
projection makes of an event, and has the event's public number and its place in it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from quintet.domain.cursor import public_number
from quintet.domain.event import Event, Gap
from quintet.engine.feed import Feed
from quintet.engine.subscription import Subscription

F = TypeVar("F")
P = TypeVar("P")
# Frames of each of these events, in their order; pure but for looking things up that do not change.
Project = Callable[[Sequence[Event]], Awaitable[Sequence[Sequence[F]]]]
Numbered = Sequence[tuple[int, F]]
AT_ONCE = 64  # events handed out before writers get their turn: a page must not fill every queue at once


class Fanout(Generic[F]):
    def __init__(
        self, feed: Feed, project: Project[F], on_defect: Callable[[BaseException], None] = lambda failure: None
    ) -> None:
        self._feed, self._project, self._on_defect = feed, project, on_defect
        self._groups: dict[Hashable, _Group[F]] = {}
        self._subscription: Subscription | None = None
        self._task: asyncio.Task[None] | None = None
        self._handed = 0  # the newest number that every watcher was offered
        self._moved = asyncio.Event()

    async def numbered(self, events: Sequence[Event]) -> list[tuple[int, F]]:
        """The frames of these events with their public numbers."""
        found = await self._project(events)
        return [
            (public_number(event.seq, k), frame)
            for event, frames in zip(events, found, strict=True)
            for k, frame in enumerate(frames)
        ]

    def join(
        self,
        wanted: Hashable,
        pick: Callable[[Numbered[F]], P | None],
        deliver: Callable[[P], None],
        end: Callable[[], None],
    ) -> Callable[[], None]:
        """Hear of everything from now on. `pick` is the same for all who want the same, and is called once for them;
        None means nothing for them. `end` is called where something went missing: the watcher comes back with its
        cursor. What is returned leaves again."""
        if self._subscription is None:
            self._subscription, self._handed = self._feed.follow(), self._feed.told
            self._task = asyncio.get_running_loop().create_task(self._run(self._subscription))
        group = self._groups.setdefault(wanted, _Group(pick))
        member = (deliver, end)
        group.members.append(member)

        def leave() -> None:
            with contextlib.suppress(ValueError):
                group.members.remove(member)
            if not group.members and self._groups.get(wanted) is group:
                del self._groups[wanted]
            if not self._groups:
                self._rest()

        return leave

    async def told_all(self) -> None:
        """Everything that happened until now was offered to whoever watches; at once where nobody does."""
        newest = self._feed.told
        while self._subscription is not None and self._handed < newest:
            self._moved.clear()
            await self._moved.wait()

    async def close(self) -> None:
        self._end_all()
        task = self._task
        self._rest()
        if task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _rest(self) -> None:
        self._moved.set()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self, subscription: Subscription) -> None:
        try:
            async for batch in subscription.batches():
                if any(isinstance(entry, Gap) for entry in batch):
                    self._end_all()
                events = [entry for entry in batch if isinstance(entry, Event)]
                for at in range(0, len(events), AT_ONCE):
                    await self._hand_out(events[at : at + AT_ONCE])
        except Exception as failure:
            self._on_defect(failure)
        finally:
            if self._subscription is subscription:  # nobody told it to rest: whoever watches must not watch in vain
                self._subscription = self._task = None
                self._moved.set()
                self._end_all()

    async def _hand_out(self, events: Sequence[Event]) -> None:
        frames = await self.numbered(events)
        for group in tuple(self._groups.values()):
            if (picked := group.pick(frames)) is not None:
                for deliver, _ in tuple(group.members):
                    deliver(picked)
        self._handed = events[-1].seq
        self._moved.set()
        await asyncio.sleep(0)  # whoever writes has its turn before there is more

    def _end_all(self) -> None:
        """Nobody of these hears of anything more: between what they had and what comes now something is missing."""
        groups, self._groups = self._groups, {}
        for group in groups.values():
            for _, end in tuple(group.members):
                end()


class _Group(Generic[F]):
    def __init__(self, pick: Callable[[Numbered[F]], object | None]) -> None:
        self.pick: Callable[[Numbered[F]], Any | None] = pick
        self.members: list[tuple[Callable[[Any], None], Callable[[], None]]] = []
