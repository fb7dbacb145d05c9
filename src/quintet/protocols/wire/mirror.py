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
from quintet.protocols.wire.asked import Asked
from quintet.protocols.wire.events import Options
from quintet.protocols.wire.lines import encode_line
from quintet.protocols.wire.models import Message
from quintet.protocols.wire.telling import Telling

__all__ = ["METADATA", "Happened", "happened", "line", "told"]


def line(value: Any) -> bytes:
    return encode_line(msgspec.json.encode(value))


METADATA = line({"type": "metadata", "protocol_version": wire.VERSION})


async def told(journal: Journal, thread: Thread, options: Options, since: Happened, before: bytes) -> Told:
    """The lines of these events; the metadata line first, where nothing stands before them."""
    lines: list[bytes] = []
    telling = Telling(journal, thread, options, plan_mode=_plan_mode_before(thread, since))
    for event in since.events:
        lines += _lines(event, await telling.take(event))
    if since.events:
        lines += _lines(since.events[-1], telling.end())
    if lines and not before:
        lines.insert(0, METADATA)
    return Told(b"".join(lines), since.through)


def _plan_mode_before(thread: Thread, since: Happened) -> bool:
    """A first change tells what was there before it; where there is none, it is as it was."""
    own = (e.payload for e in [*since.events, *since.under_way] if e.thread == thread.id)
    for said in own:
        if isinstance(said, ev.ThreadUpdated) and said.plan_mode is not None:
            return not said.plan_mode
    return thread.settings.plan_mode


def _lines(event: ev.Event, told: Sequence[Message | Asked]) -> list[bytes]:
    messages = [out.message if isinstance(out, Asked) else out for out in told]
    return [line({"timestamp": event.at_ms / 1000, "message": message}) for message in messages]
