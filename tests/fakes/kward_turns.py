"""What several tests of Kward's turns ask and look at."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from tests.fakes.kward_peer import Message, Peer, kinds, payloads
from tests.fakes.providers import GatedProvider, call, text

Connect = Callable[..., Peer]
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 20).decode()
OPTIONS = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
QUESTION: Message = {"question": "Which?", "header": "Colour", "options": OPTIONS}


def image(**more: Any) -> Message:
    return {"type": "image", "data": PNG, "mimeType": "image/png", **more}


async def transcript(peer: Peer, session: Message) -> list[Message]:
    return (await peer.ok("sessions/transcript", sessionId=session["id"]))["messages"]  # type: ignore[no-any-return]


async def result_of(connect: Connect, name: str, given: Message, **options: Any) -> tuple[Message, Message]:
    """The payloads of one call and of its result."""
    peer = connect(GatedProvider(call(name, json.dumps(given)), text("done")), **options)
    (peer.work / "a.txt").write_text("one\ntwo\n")
    events = await peer.turn((await peer.session())["id"])
    (called,), (result,) = payloads(events, "toolCall"), payloads(events, "toolResult")
    assert kinds(events).index("assistantMessage") < kinds(events).index("toolCall")
    return called, result
