"""GET /events: what happened after a cursor, then what happens, without gap or duplicate.

A watcher joins the fan-out first and is held while it reads pages from the store; what came meanwhile and was read
already is told apart by its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from quintet.domain.cursor import FRAMES_PER_EVENT, first_seq_to_read, parse, public_number
from quintet.domain.errors import Invalid
from quintet.domain.event import Event, EventPage, Gap
from quintet.domain.ports import Journal
from quintet.engine.fanout import Numbered
from quintet.engine.subscription import PAGE, gap_after
from quintet.protocols.knp.frames import GLOBAL, NAMESPACE, Envelope, Frame, unnumbered
from quintet.protocols.knp.house import House
from quintet.protocols.knp.kinds import chosen
from quintet.rpc.http.call import HttpCall, Streamed
from quintet.rpc.http.routes import HOLDER, Routes
from quintet.rpc.http.sse import MOST_BYTES, MOST_FRAMES, Stream

EVENTS = Routes("events", who=HOLDER, since="0.1")


class Wanted(msgspec.Struct, frozen=True):
    """What a watcher wants; watchers that want the same share what is picked and encoded for them."""

    scope: str = NAMESPACE
    namespace: str = "default"
    tid: str = ""
    kinds: frozenset[str] = frozenset()

    def wants(self, frame: Frame) -> bool:
        if self.kinds and frame.kind not in self.kinds:
            return False
        if not frame.everywhere if self.scope == GLOBAL else frame.namespace != self.namespace:
            return False
        return not self.tid or self.tid in (frame.tid, frame.root)

    def pick(self, frames: Numbered[Frame]) -> Picked | None:
        chunks = [(number, frame.encoded(number, self.scope)) for number, frame in frames if self.wants(frame)]
        return Picked(chunks) if chunks else None


class Picked:
    """Some frames for all who want them, joined once."""

    __slots__ = ("_chunks", "bytes", "count", "first", "last")

    def __init__(self, chunks: Sequence[tuple[int, bytes]]) -> None:
        self._chunks = chunks
        self.first, self.last, self.count = chunks[0][0], chunks[-1][0], len(chunks)
        self.bytes = chunks[0][1] if len(chunks) == 1 else b"".join(chunk for _, chunk in chunks)

    def after(self, cursor: int) -> Picked | None:
        if cursor < self.first:
            return self
        return self.between(cursor + 1, self.last)

    def between(self, first: int, last: int) -> Picked | None:
        left = [(number, chunk) for number, chunk in self._chunks if first <= number <= last]
        return Picked(left) if left else None


class Where(msgspec.Struct, frozen=True):
    """Which events are enough to read from the store: those of a thread, else of a project, else all."""

    root: str = ""
    project: str = ""

    async def page(self, journal: Journal, after: int) -> EventPage:
        if self.project:
            return await journal.events_of(self.project, after, limit=PAGE)
        events = await journal.events(after, root=self.root, limit=PAGE)
        return EventPage(events, events[-1].seq if events else after, len(events) == PAGE)


class Watcher:
    """One client's stream: where it stands, and what is held while it catches up."""

    def __init__(self, house: House, stream: Stream, wanted: Wanted, position: int) -> None:
        self._house, self._stream, self._wanted = house, stream, wanted
        self.position = position  # the starting cursor, then the last number sent
        self._held: list[Picked] | None = []
        self._held_frames = self._held_bytes = 0
        self._missed = False  # more came than could be held: it is in the store
        stream.heartbeat = lambda: self.word("heartbeat", {"seq": self.mark})
        stream.overflow = lambda: self.word("overflow", {})

    @property
    def mark(self) -> int:
        return public_number(self._house.feed.told, FRAMES_PER_EVENT - 1) if self._house.feed.told else self.position

    def word(self, kind: str, data: Any) -> bytes:
        at_ms = self._house.feed.clock.now_ms()
        return unnumbered(
            kind,
            data,
            position=self.position,
            scope=self._wanted.scope,
            namespace=self._wanted.namespace if self._wanted.scope == NAMESPACE else "",
            at_ms=at_ms,
        )

    def deliver(self, picked: Picked) -> None:
        if self._held is None:
            self._offer(picked)
            return
        self._held.append(picked)
        self._held_frames += picked.count
        self._held_bytes += len(picked.bytes)
        if self._held_frames > MOST_FRAMES or self._held_bytes > MOST_BYTES:
            self._forget_held()
            self._missed = True

    async def catch_up(self, where: Where) -> None:
        """Everything kept after the position, at the client's own pace."""
        journal = self._house.feed.journal
        after, told_gap = first_seq_to_read(self.position), 0
        while not self._stream.closed:
            self._forget_held()  # what was published until now is in the store, so it will be in the page
            self._missed = False
            page = await where.page(journal, after)
            # Looked up after the page: what was pruned while it was read is told too.
            gap = gap_after(after, await journal.marks(), where.root)
            if gap is not None and gap.to_seq > told_gap:
                told_gap = gap.to_seq
                await self._stream.send(self.word("replay.gap", _gap_numbers(gap)))
            await self._send_page(page.events)
            after = page.through
            if not page.more and not self._missed:
                return

    def go_live(self) -> None:
        held, self._held = self._held or [], None
        for picked in held:
            self._offer(picked)

    async def _send_page(self, events: Sequence[Event]) -> None:
        picked = self.pick(await self._house.fanout.numbered(events))
        left = self._left(picked) if picked is not None else None
        if left is not None:
            await self._stream.send(left.bytes)
            self.position = left.last

    def pick(self, frames: Numbered[Frame]) -> Picked | None:
        return self._wanted.pick(frames)

    def _left(self, picked: Picked) -> Picked | None:
        """What of it was not sent yet."""
        return picked.after(self.position)

    def _offer(self, picked: Picked) -> None:
        left = self._left(picked)
        if left is not None and self._stream.offer(left.bytes, left.count):
            self.position = left.last

    def _forget_held(self) -> None:
        self._held = []
        self._held_frames = self._held_bytes = 0


def _gap_numbers(gap: Gap) -> dict[str, int]:
    return {"from": public_number(gap.from_seq), "to": public_number(gap.to_seq, FRAMES_PER_EVENT - 1)}


async def watch(house: House, stream: Stream, wanted: Wanted, cursor: int | None, *, reset: bool, where: Where) -> None:
    """Fill a stream until its client leaves."""
    await house.feed.journal.tail()  # what others did before is not news
    told = house.feed.told or (await house.feed.journal.marks()).last
    mark = public_number(told, FRAMES_PER_EVENT - 1)
    watcher = Watcher(house, stream, wanted, mark if cursor is None else cursor)
    leave = house.fanout.join(wanted, wanted.pick, watcher.deliver, stream.close)
    try:
        await stream.send(watcher.word("connected", {"seq": mark}))
        if reset:
            watcher.position = mark
            await stream.send(watcher.word("replay.reset", {"seq": mark}))
        elif cursor is not None:
            await watcher.catch_up(where)
        watcher.go_live()
        await stream.pump()
    finally:
        leave()


class Watch(msgspec.Struct, frozen=True):
    scope: str = NAMESPACE
    namespace: str = ""
    kinds: str = ""
    after: str = ""
    tid: str = ""


@EVENTS.get(
    "/events",
    summary="what happens, replayed from a cursor, then live",
    params=Watch,
    result=Envelope,
    streams="always",
)
async def events(call: HttpCall[House], params: Watch, body: None) -> Streamed:
    house = call.state
    last = call.header("last-event-id")
    cursor = parse(last or params.after) if last or params.after else None
    newest = public_number((await house.feed.journal.marks()).last, FRAMES_PER_EVENT - 1)
    beyond = cursor is not None and cursor > newest
    if beyond and not last:
        raise Invalid("This cursor lies beyond everything that has happened.")
    wanted, where = await _wanted(call, params)
    return Streamed(lambda stream: watch(house, stream, wanted, cursor, reset=beyond, where=where))


async def _wanted(call: HttpCall[House], params: Watch) -> tuple[Wanted, Where]:
    """What is asked for, and which events are enough to read for it."""
    kinds = chosen(params.kinds)
    if params.scope not in (NAMESPACE, GLOBAL):
        raise Invalid(f"`scope` is {NAMESPACE} or {GLOBAL}.")
    if params.scope == GLOBAL:
        if params.namespace:
            raise Invalid("The global stream belongs to no namespace.", next_step="Leave out `namespace`, or `scope`.")
        return Wanted(GLOBAL, "", params.tid, kinds), Where()
    if not params.tid:
        found = await call.state.namespace(call, params.namespace)
        return Wanted(NAMESPACE, found.name, "", kinds), Where(project=found.project)
    thread, namespace = await call.state.thread(call, params.tid, params.namespace)
    return Wanted(NAMESPACE, namespace.name, thread.id, kinds), Where(root=thread.root)
