"""wire.jsonl: a thread's turns as lines, resumable after any event at which no turn was under way.

Asks only for what an earlier event said: a turn's input, a subagent's name. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from quintet.domain import event as ev
from quintet.domain.ports import Journal
from quintet.domain.thread import Thread
from quintet.engine.happened import Happened, happened
from quintet.engine.mirrors import Told
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.events import Asked, Options, Out, said_by_user
from quintet.protocols.wire.lines import encode_line
from quintet.protocols.wire.models import Message
from quintet.protocols.wire.replay import Brought, Retold
from quintet.protocols.wire.tree import Tree

__all__ = ["METADATA", "Happened", "happened", "line", "told"]


def line(value: Any) -> bytes:
    return encode_line(msgspec.json.encode(value))


METADATA = line({"type": "metadata", "protocol_version": wire.VERSION})


async def told(journal: Journal, thread: Thread, options: Options, since: Happened, before: bytes) -> Told:
    """The lines of these events; the metadata line first, where nothing stands before them."""
    lines: list[bytes] = []
    trees: dict[str, Tree] = {}
    brought = Brought(options)
    for event in since.events:
        said = event.payload
        if event.thread == thread.id:
            lines += _lines(event, brought.take(event))
        if isinstance(said, ev.TurnStarted) and event.thread == thread.id:
            turn = await journal.turn(event.turn)
            trees[turn.id] = Tree(journal, turn, said_by_user(turn.parts), options, Retold)
        elif isinstance(said, ev.ThreadUpdated) and said.plan_mode is not None and not trees:
            lines += _lines(event, [Message("StatusUpdate", wire.StatusUpdate(plan_mode=said.plan_mode))])
        for tree in tuple(trees.values()):
            lines += _lines(event, await tree.take(event))
        if isinstance(said, ev.TurnFinished):
            trees.pop(event.turn, None)
    if since.events:
        lines += _lines(since.events[-1], brought.end())
    if lines and not before:
        lines.insert(0, METADATA)
    return Told(b"".join(lines), since.through)


def _lines(event: ev.Event, told: Sequence[Out]) -> list[bytes]:
    messages = [out.message if isinstance(out, Asked) else out for out in told if isinstance(out, Message | Asked)]
    return [line({"timestamp": event.at_ms / 1000, "message": message}) for message in messages]
