"""CallContext: what a running call may use. Its output goes out masked, in pieces that carry their place."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from quintet.domain.event import ThreadUpdated, TodoUpdated, ToolOutputDelta
from quintet.domain.interaction import QuestionItem
from quintet.domain.item import MediaKind, ToolCall
from quintet.domain.subagent import Assignment, Report
from quintet.domain.tool import Confine, Prepared, Todo
from quintet.domain.turn import Mode
from quintet.engine.clearance import Clearance
from quintet.engine.feed import Feed
from quintet.engine.redaction import HOLD_S, RedactedStream
from quintet.engine.running import RunningTurn
from quintet.engine.storable import storable
from quintet.engine.subagents import Subagents
from quintet.engine.subscription import facts


class CallContext:
    """Plays domain.ports.ToolContext for one call."""

    def __init__(
        self,
        feed: Feed,
        running: RunningTurn,
        clearance: Clearance,
        subagents: Subagents,
        call: ToolCall,
        prepared: Prepared,
    ) -> None:
        self.cwd = prepared.cwd or running.thread.settings.cwd
        self.directories = running.thread.settings.directories
        self.thread = running.thread.id
        self.call_id = call.call_id
        self._feed = feed
        self._lease = running.lease
        self._running = running
        self._clearance = clearance
        self._subagents = subagents
        self.child = ""  # the thread of the subagent that works for the call
        self._name = call.name
        self._index = 0
        self._streams: dict[str, RedactedStream | None] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def mode(self) -> Mode:
        return self._running.mode

    @property
    def confine(self) -> Confine:
        return self._running.starter.confine

    def takes(self, kind: MediaKind) -> bool:
        models = self._running.models
        return models is not None and models.info.takes(kind)

    def emit_output(self, stream: str, text: str) -> None:
        if stream not in self._streams:
            redactor = self._feed.redactor
            self._streams[stream] = None if redactor.idle else RedactedStream(redactor)
        redacted, text = self._streams[stream], storable(text)
        self._say(stream, text if redacted is None else redacted.add(text))
        if redacted is not None and redacted.holding and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(HOLD_S, self.release)

    def release(self) -> None:
        """Long enough, or the output has ended: what was held back as a possible secret's beginning goes out."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for stream, redacted in self._streams.items():
            if redacted is not None:
                self._say(stream, redacted.release())

    def _say(self, stream: str, text: str) -> None:
        if text:
            self._feed.push(ToolOutputDelta(self.call_id, self._name, self._index, stream, text), self._lease)
            self._index += 1

    async def ask(self, questions: Sequence[QuestionItem]) -> tuple[tuple[str, ...], ...] | None:
        return await self._clearance.ask_person(self.call_id, questions)

    async def read_todos(self) -> Sequence[Todo]:
        found: tuple[Todo, ...] = ()
        async for event in facts(self._feed.journal, 0, self._running.thread.root):
            if isinstance(event.payload, TodoUpdated) and event.thread == self.thread:
                found = event.payload.todos
        return found

    async def set_todos(self, todos: Sequence[Todo]) -> None:
        await self._feed.say(self._lease, TodoUpdated(tuple(todos)))

    async def set_plan_mode(self, *, on: bool) -> None:
        if on:
            self._running.planning = True  # stricter at once; looser from the next step on, when the journal has it
        await self._feed.say(self._lease, ThreadUpdated(plan_mode=on))

    async def start_child(self, assignment: Assignment) -> Report:
        def known(child: str) -> None:
            self.child = child

        return await self._subagents.work(self._running, self.call_id, assignment, known)

    async def look_at_child(self, thread: str, wait_s: float = 0.0) -> Report:
        return await self._subagents.look(self._running, thread, wait_s)

    async def children_at_work(self) -> Sequence[Report]:
        return await self._subagents.at_work(self._running)

    async def stop_child(self, thread: str) -> Report:
        return await self._subagents.stop(self._running, thread)
