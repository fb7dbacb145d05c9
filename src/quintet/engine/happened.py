"""What happened in a thread after some event, for whoever tells it in files: facts alone, as far as settled."""

from __future__ import annotations

import msgspec

from quintet.domain import event as ev
from quintet.domain.ports import Journal
from quintet.domain.thread import Thread
from quintet.engine.subscription import facts


class Happened(msgspec.Struct, frozen=True):
    """Up to the last event at which no turn of the thread was under way."""

    events: list[ev.Event]
    through: int
    under_way: list[ev.Event]  # what followed


async def happened(journal: Journal, thread: Thread, after: int) -> Happened:
    events: list[ev.Event] = []
    turns: set[str] = set()
    settled, through = 0, after
    async for event in facts(journal, after, thread.root):
        events.append(event)
        if event.thread == thread.id and isinstance(event.payload, ev.TurnStarted):
            turns.add(event.turn)
        if isinstance(event.payload, ev.TurnFinished):
            turns.discard(event.turn)
        if not turns:
            settled, through = len(events), event.seq
    return Happened(events[:settled], through, events[settled:])
