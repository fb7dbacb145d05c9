"""Step: one model call. Turns the provider's chunks into deltas and, as each piece completes, into items.

Only emits; decides nothing about tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from msgspec.structs import replace

from quintet.domain.errors import ErrorInfo
from quintet.domain.event import (
    AnyPayload,
    Event,
    ItemAdded,
    MediaDelta,
    ReasoningDelta,
    StepFinished,
    StepRetried,
    StepStarted,
    TextDelta,
    ToolCalled,
    ToolInputDelta,
)
from quintet.domain.ids import new_id
from quintet.domain.item import AssistantMessage, Body, Item, MediaPart, Reasoning, ToolCall, named
from quintet.domain.model import (
    Chunk,
    Finish,
    FinishChunk,
    MediaChunk,
    ReasoningChunk,
    RetryChunk,
    TextChunk,
    ToolInput,
    ToolStart,
    Usage,
    UsageChunk,
)
from quintet.domain.turn import Lease
from quintet.engine.feed import Feed
from quintet.engine.redaction import HOLD_S, RedactedStream
from quintet.engine.storable import storable

DELTAS_BETWEEN_BREATHS = 32  # how often a burst makes room for the writer and for other tasks


class _Growing:
    """An item that is still being streamed."""

    def __init__(
        self,
        kind: type[TextDelta] | type[ReasoningDelta] | type[ToolInputDelta],
        call: ToolStart | None,
        own: str = "",
    ) -> None:
        self.id = new_id("itm")
        self.kind = kind
        self.call = call
        self.own = own  # name of the tool that is called
        self.pieces: list[str] = []
        self.said = 0
        self.signature = ""
        self.stream: RedactedStream | None = None

    def delta(self, text: str) -> TextDelta | ReasoningDelta | ToolInputDelta:
        index, self.said = self.said, self.said + 1
        if self.kind is TextDelta:
            return TextDelta(self.id, index, text)
        if self.call is not None:
            return ToolInputDelta(self.id, index, self.call.call_id, self.call.name, text)
        return ReasoningDelta(self.id, index, text)

    def body(self, *, partial: bool) -> Body:
        text = "".join(self.pieces)
        if self.call is not None:
            return ToolCall(self.call.call_id, self.call.name, text, partial, self.own)
        if self.kind is TextDelta:
            return AssistantMessage(text, partial)
        return Reasoning(text, self.signature, partial)


class Step:
    def __init__(
        self,
        feed: Feed,
        lease: Lease,
        number: int,
        model: str,
        taken_call_ids: set[str],
        own_names: Mapping[str, str] | None = None,
        *,
        agent: str = "",
        restarts: bool = False,
    ) -> None:
        """`own_names`: of tools that the model knows by other ones. With `restarts` an answer may begin anew, so
        nothing of it is kept before all of it is there; else each piece is, as soon as it is whole."""
        self.id = new_id("stp")
        self.number = number
        self.calls: list[ToolCall] = []
        self.items: list[Item] = []
        self.finish: Finish | None = None
        self.usage: Usage | None = None
        self._feed = feed
        self._redactor = feed.redactor  # looked up once: this is the hot path
        self._lease = lease
        self._model = model
        self._taken = taken_call_ids
        self._own_names = own_names or {}
        self.answer_id = ""
        self._growing: _Growing | None = None
        self._open_calls: dict[str, _Growing] = {}
        self._renamed: dict[str, str] = {}
        self._release: asyncio.TimerHandle | None = None
        self._agent = agent
        self._restarts = restarts
        self._kept = 0  # items that are in the journal already
        self._settled = False  # its items and step.finished are in the journal

    @property
    def has_spoken(self) -> bool:
        """Whether anything of the answer has been passed on."""
        return bool(self.items or self._growing is not None or self._open_calls)

    async def run(self, chunks: AsyncIterator[Chunk]) -> None:
        """Stream to the end; afterwards `calls` are what the model asks for. Errors pass through, see `cut_off`."""
        await self._feed.say(self._lease, StepStarted(self.id, self.number, self._model, self._agent))
        since_breath = 0
        async for chunk in chunks:
            if type(chunk) is TextChunk:
                if self._growing is not None and self._growing.kind is not TextDelta:
                    await self._keep_growing()
                self._grow(TextDelta, chunk.text)
            else:
                await self._take(chunk)
            since_breath += 1
            if since_breath >= DELTAS_BETWEEN_BREATHS:
                since_breath = 0
                await self._feed.room(self._lease)
        done = self._closed_items()
        finished = StepFinished(self.id, self.number, self._model, self.finish, self.usage, answer_id=self.answer_id)
        await self._add(done, finished)

    def cut_off(self, error: ErrorInfo | None) -> list[AnyPayload]:
        """What was streamed until it was cut off, kept and marked. Part of the turn's last commit."""
        if self._settled:
            return []
        self._settled = True
        self._stop_holding()
        growing = [g for g in (self._growing, *self._open_calls.values()) if g is not None and g.pieces]
        items = [*self.items[self._kept :], *(self._item(g, partial=True) for g in growing)]
        finished = StepFinished(self.id, self.number, self._model, self.finish, self.usage, error)
        return [*(ItemAdded(i) for i in items), finished]

    async def _take(self, chunk: Chunk) -> None:
        match chunk:
            case ReasoningChunk(text=text, signature=signature):
                if self._growing is not None and self._growing.kind is not ReasoningDelta:
                    await self._keep_growing()
                self._grow(ReasoningDelta, text)
                if signature and self._growing is not None:
                    self._growing.signature += storable(signature)
            case ToolStart():
                await self._keep_growing()
                await self._feed.say(self._lease, self._begin_call(chunk))
            case ToolInput(call_id=call_id, text=text):
                self._grow_call(call_id, text)
            case UsageChunk(usage=usage):
                self.usage = usage
            case FinishChunk(reason=reason, answer_id=answer_id):
                self.finish = reason
                self.answer_id = storable(answer_id)
            case MediaChunk(part=part):
                await self._keep_growing()
                self._send(part)
            case RetryChunk():
                self._begin_anew()
                said = (chunk.attempt, chunk.wait_s, chunk.reason, chunk.kind, chunk.most, chunk.status)
                await self._feed.say(self._lease, StepRetried(self.id, *said))

    def _grow(self, kind: type[TextDelta] | type[ReasoningDelta], text: str) -> None:
        growing = self._growing
        if growing is None or growing.kind is not kind:
            self._complete_growing()
            growing = self._growing = _Growing(kind, None)
        self._say(growing, text)

    def _send(self, part: MediaPart) -> None:
        whole = self._redactor.struct(replace(part, url=storable(part.url), label=storable(part.label)))
        body = AssistantMessage(named(whole), sent=whole)
        item = Item(new_id("itm"), self._lease.thread, self._lease.turn, 0, self._feed.clock.now_ms(), body)
        self._feed.push(MediaDelta(item.id, 0, whole), self._lease)
        self.items.append(item)

    def _begin_call(self, start: ToolStart) -> ToolCalled:
        self._complete_growing()
        unique, name = storable(start.call_id), storable(start.name)
        if not unique or unique in self._taken:
            unique = new_id("cal")  # some servers repeat ids; results are matched by them, so they must differ
        self._taken.add(unique)
        self._renamed[start.call_id] = unique
        own = self._own_names.get(name, "")
        growing = self._open_calls[unique] = _Growing(ToolInputDelta, ToolStart(unique, name), own)
        return ToolCalled(growing.id, unique, own or name, name if own else "", start.fed)

    def _grow_call(self, call_id: str, text: str) -> None:
        growing = self._open_calls.get(self._renamed.get(call_id, call_id))
        if growing is None:
            return
        if text:
            self._say(growing, text)
        else:
            self._feed.push(growing.delta(""), self._lease)  # only a script sends one, to be passed on as it is

    def _say(self, growing: _Growing, text: str) -> None:
        if not text:
            return
        text = storable(text)
        growing.pieces.append(text)
        if not self._redactor.idle:
            if growing.stream is None:
                growing.stream = RedactedStream(self._redactor)
            text = growing.stream.add(text)
            if growing.stream.holding and self._release is None:
                self._release = asyncio.get_running_loop().call_later(HOLD_S, self._stop_holding)
            if not text:
                return
        self._feed.push(growing.delta(text), self._lease)

    def _stop_holding(self) -> None:
        if self._release is not None:
            self._release.cancel()
            self._release = None
        for growing in (self._growing, *self._open_calls.values()):
            if growing is not None and growing.stream is not None and (held := growing.stream.release()):
                self._feed.push(growing.delta(held), self._lease)

    def _begin_anew(self) -> None:
        """What came of an attempt that broke off was shown and is not kept: the next one says all of it."""
        if self._release is not None:
            self._release.cancel()
            self._release = None
        self._growing, self._open_calls, self._renamed = None, {}, {}
        del self.items[self._kept :]

    async def _keep_growing(self) -> None:
        """The model goes on to something else: who watches is told that this is whole before the next thing begins."""
        self._complete_growing()
        fresh = self.items[self._kept :]
        if fresh and not self._restarts:
            events = await self._feed.say(self._lease, *(ItemAdded(i) for i in fresh))
            self._replace_kept(events)

    def _replace_kept(self, events: list[Event]) -> None:
        """The journal has given them their places."""
        self.items[self._kept :] = [e.payload.item for e in events if isinstance(e.payload, ItemAdded)]
        self._kept = len(self.items)

    def _complete_growing(self) -> None:
        """The model went on to something else: what grew until now is whole."""
        if self._growing is not None:
            self._stop_holding()
            if self._growing.pieces or self._growing.signature:
                self.items.append(self._item(self._growing, partial=False))
            self._growing = None

    def _closed_items(self) -> list[Item]:
        self._complete_growing()
        self._stop_holding()
        for growing in self._open_calls.values():
            item = self._item(growing, partial=False)
            assert isinstance(item.body, ToolCall)
            self.items.append(item)
            self.calls.append(item.body)
        self._open_calls = {}
        return self.items

    async def _add(self, items: list[Item], finished: StepFinished) -> None:
        events = await self._feed.say(self._lease, *(ItemAdded(i) for i in items[self._kept :]), finished)
        self._settled = True
        self._replace_kept(events)

    def _item(self, growing: _Growing, *, partial: bool) -> Item:
        body = growing.body(partial=partial)
        return Item(growing.id, self._lease.thread, self._lease.turn, 0, self._feed.clock.now_ms(), body)
