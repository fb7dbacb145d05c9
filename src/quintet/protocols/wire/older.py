"""What a client is told in place of a message that it does not know: mostly nothing. Pure."""

from __future__ import annotations

from quintet.protocols.wire import models as wire
from quintet.protocols.wire.gate import Gate
from quintet.protocols.wire.models import Message
from quintet.protocols.wire.tree import innermost


def for_client(message: Message, gate: Gate, *, cancelled: bool = False) -> list[Message]:
    """`cancelled`: by the client itself, which may wait for the end alone. What a call came to is in the thread."""
    if cancelled and gate.ends_once() and innermost(message) == "ToolResult":
        return []
    if gate.lets(innermost(message)):
        return [message]
    if isinstance(message.payload, wire.BtwEnd):  # somebody has asked, and would get no answer at all
        said = message.payload
        words = said.response or f"The question was not answered: {said.error}"
        return [Message("ContentPart", wire.TextPart(words))]
    return []
