"""The feed: the one door to the journal. Masks known secrets, appends, publishes, replays and tells of gaps.

Everything the engine writes goes through here; everything anybody watches comes from here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from quintet.domain.command import Command, Outcome
from quintet.domain.errors import TimedOut
from quintet.domain.event import AnyPayload, Delta, Draft, Event, TurnFinished
from quintet.domain.grant import Grant
from quintet.domain.interaction import Decision, Interaction
from quintet.domain.item import Item
from quintet.domain.ports import Clock, Enqueued, Journal, Secrets
from quintet.domain.thread import Handle, Thread
from quintet.domain.turn import ClientKey, Lease, Turn
from quintet.engine.redaction import Redactor
from quintet.engine.subscription import Subscription
from quintet.engine.tailing import Tailing
from quintet.engine.unbroken import unbroken

Match = Callable[[Event], bool]
T = TypeVar("T")


class Feed:
    def __init__(self, journal: Journal, secrets: Secrets, clock: Clock) -> None:
        self.journal = journal
        self.clock = clock
        self._secrets = secrets
        self._known: Sequence[str] = ()
        self._redactor = Redactor(())
        self._subscriptions: set[Subscription] = set()
        self._watches: dict[asyncio.Future[Event | None], Match] = {}
        self._lookers: list[Callable[[], None]] = []
        self._handlers: list[Callable[[Event], None]] = []
        # Brings the files that clients read of a thread up to date. Bounded; never raises.
        self.mirror: Callable[[str], Awaitable[None]] = _no_mirror
        self.unmirror: Callable[[str], Awaitable[None]] = _no_mirror  # the thread is about to be deleted
        self._ending: set[str] = set()  # turns whose end is not told yet
        self._held: deque[Sequence[Event]] = deque()  # such an end, and what was published after it
        self.told = 0  # the newest number handed out here; 0: none yet
        self.tailing = Tailing(journal)
        self._stop_listening = journal.listen(self._deliver)

    @property
    def redactor(self) -> Redactor:
        """Made anew when the known values have changed, e.g. by a credential that was just stored."""
        known = self._secrets.known_values()
        if known is not self._known:
            self._known, self._redactor = known, Redactor(known)
        return self._redactor

    def mask(self, text: str) -> str:
        return self.redactor.text(text)

    # --- writing ---------------------------------------------------------------------------------------------------
    def push(self, payload: AnyPayload, lease: Lease) -> None:
        """A delta whose text is already masked (see RedactedStream); never waits."""
        self.journal.push((Draft(payload, lease.thread, lease.turn),), lease)

    async def room(self, lease: Lease) -> None:
        await self.journal.room(lease=lease)

    async def append(self, drafts: Sequence[Draft], lease: Lease | None = None) -> list[Event]:
        return await self.journal.append(self._clean(drafts), lease=lease)

    async def say(self, lease: Lease, *payloads: AnyPayload) -> list[Event]:
        """Facts of a running turn. Not cut in two by a cancel: what was said is known to have been said."""
        return await unbroken(self.append([Draft(p, lease.thread, lease.turn) for p in payloads], lease))

    async def finish(self, lease: Lease, finished: TurnFinished, payloads: Sequence[AnyPayload]) -> list[Event]:
        drafts = [Draft(p, lease.thread, lease.turn) for p in payloads]
        self._ending.add(lease.turn)
        try:
            events = await self.journal.finish(lease, self.redactor.struct(finished), self._clean(drafts))
            await self.mirror(lease.thread)
            return events
        finally:
            self._ending.discard(lease.turn)
            self._tell_held()

    def holds(self, turn: str) -> bool:
        """Whether the turn's end is committed, or about to be, and not told yet."""
        return turn in self._ending

    async def create_thread(
        self,
        thread: Thread,
        handle: Handle | None = None,
        items: Sequence[Item] = (),
        *,
        takes_name: bool = False,
        key: ClientKey | None = None,
    ) -> Thread:
        clean = [self.redactor.struct(i) for i in items]
        made = self.redactor.struct(thread)
        return await self.journal.create_thread(made, handle=handle, items=clean, takes_name=takes_name, key=key)

    async def add_items(self, thread: str, items: Sequence[Item]) -> list[Event]:
        return await self.journal.add_items(thread, [self.redactor.struct(i) for i in items])

    async def replace_items(self, thread: str, items: Sequence[Item]) -> list[Event]:
        return await self.journal.replace_items(thread, [self.redactor.struct(i) for i in items])

    async def enqueue(self, turn: Turn, *, only_idle: bool, key: ClientKey | None) -> Enqueued:
        """Not cut in two by a cancel: an input that is in the journal must be run."""
        return await unbroken(self._enqueue(turn, only_idle=only_idle, key=key))

    async def _enqueue(self, turn: Turn, *, only_idle: bool, key: ClientKey | None) -> Enqueued:
        return await self.journal.enqueue(self.redactor.struct(turn), only_idle=only_idle, key=key)

    async def resolve(self, interaction: str, decision: Decision, grant: Grant | None = None) -> Interaction:
        clean = None if grant is None else self.redactor.struct(grant)
        return await self.journal.resolve(interaction, self.redactor.struct(decision), grant=clean)

    async def post(self, command: Command) -> Command:
        return await self.journal.post(self.redactor.struct(command))

    async def settle(self, command: str, outcome: Outcome, lease: Lease, *payloads: AnyPayload) -> list[Event]:
        drafts = [Draft(p, lease.thread, lease.turn) for p in payloads]
        return await self.journal.settle(command, outcome, self._clean(drafts), lease)

    # --- watching ----------------------------------------------------------------------------------------------------
    def follow(self, after: int | None = None, *, root: str = "") -> Subscription:
        """Every event after the cursor, in order, then what happens; of one root thread or of all.

        Without a cursor it begins with what happens next.
        """
        subscription = Subscription(self.journal, root, after, self.tailing, self._subscriptions.discard, self.told)
        self._subscriptions.add(subscription)
        return subscription

    def handle(self, handler: Callable[[Event], None], missed: Callable[[], None] = lambda: None) -> Callable[[], None]:
        """Call with every published fact, at once, on the loop. For the engine's own parts. `missed` is called when
        some could not be read: then the part looks at the store itself."""
        self._handlers.append(handler)
        self._lookers.append(missed)

        def stop() -> None:
            if handler in self._handlers:
                self._handlers.remove(handler)
                self._lookers.remove(missed)

        return stop

    @contextmanager
    def watching(self, match: Match) -> Iterator[asyncio.Future[Event | None]]:
        """The first matching fact from now on, or None when some were missed. Look at the stored state inside the
        block, then await the future."""
        future: asyncio.Future[Event | None] = asyncio.get_running_loop().create_future()
        self._watches[future] = match
        self.tailing.hurry()
        try:
            yield future
        finally:
            self.tailing.relax()
            del self._watches[future]
            future.cancel()

    async def until(self, match: Match, state: Callable[[], Awaitable[T | None]], timeout_s: float | None) -> T:
        """Wait until `state` gives something; it is asked now and after every matching fact."""
        deadline = None if timeout_s is None else self.clock.monotonic_s() + timeout_s
        while True:
            with self.watching(match) as seen:
                found = await state()
                if found is not None:
                    return found
                left = None if deadline is None else deadline - self.clock.monotonic_s()
                try:
                    await asyncio.wait_for(seen, left)
                except TimeoutError:
                    raise TimedOut("What was waited for did not happen in time.") from None

    async def close(self) -> None:
        self._stop_listening()
        for subscription in list(self._subscriptions):
            subscription.close()
        await self.tailing.close()

    def _deliver(self, events: Sequence[Event]) -> None:
        """Whatever follows an end that is held waits with it: everybody hears everything in its order."""
        if self._held or (self._ending and any(e.turn in self._ending and _is_end(e) for e in events)):
            self._held.append(events)
        else:
            self._hand_out(events)

    def _tell_held(self) -> None:
        held, self._held = self._held, deque()
        for events in held:
            self._deliver(events)

    def _hand_out(self, events: Sequence[Event]) -> None:
        if not events:
            self._missed()
            return
        self.told = events[-1].seq
        for subscription in tuple(self._subscriptions):
            subscription.offer(events)
        if not self._handlers and not self._watches:
            return
        for event in events:
            if isinstance(event.payload, Delta):
                continue
            for handler in tuple(self._handlers):
                handler(event)
            for future, match in tuple(self._watches.items()):
                if not future.done() and match(event):
                    future.set_result(event)

    def _missed(self) -> None:
        """Something was committed that could not be read: everybody looks at the store instead."""
        for subscription in tuple(self._subscriptions):
            subscription.look_again()
        for future in tuple(self._watches):
            if not future.done():
                future.set_result(None)
        for look in tuple(self._lookers):
            look()

    def _clean(self, drafts: Sequence[Draft]) -> Sequence[Draft]:
        if self.redactor.idle:
            return drafts
        return [Draft(self.redactor.struct(d.payload), d.thread, d.turn) for d in drafts]


async def _no_mirror(thread: str) -> None:
    pass


def _is_end(event: Event) -> bool:
    return isinstance(event.payload, TurnFinished)
