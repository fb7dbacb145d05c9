"""Calls as they stream: a ToolCall as soon as the model begins it, and its parts. A part has no id and belongs to the
last ToolCall, so the arguments of one call are never cut by those of another: a later call's wait until the earlier
one is whole. Pure.
"""

from __future__ import annotations

import msgspec

from quintet.domain import item as it
from quintet.protocols.wire.models import Function, Message, ToolCall, ToolCallPart
from quintet.protocols.wire.names import Names


class CallStream:
    """Of one turn."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._open = ""  # the call whose parts are being sent
        self._sent: list[str] = []  # of that call
        self._begun: set[str] = set()  # of this turn, whose calls have one id each: calls the client has been told of
        self._waiting: set[str] = set()  # calls that began while another was open

    def begin(self, call_id: str, name: str, *, fed: bool) -> list[Message]:
        """`fed`: the first of its arguments came with it and is told with it, so it is not told yet."""
        if fed or not self._opened(call_id):
            return []
        self._begun.add(call_id)
        return [Message("ToolCall", ToolCall(call_id, Function(self._names.shown(name))))]

    def grow(self, call_id: str, name: str, text: str) -> list[Message]:
        if call_id == self._open:
            self._sent.append(text)
            return [Message("ToolCallPart", ToolCallPart(text or None))]
        if call_id in self._begun or call_id in self._waiting:
            return []  # said with the whole call; what was told of already lacks only blanks
        if not self._opened(call_id):
            return []
        self._sent.append(text)
        return [self._begin(call_id, name, text)]

    def _opened(self, call_id: str) -> bool:
        if self._open and not _is_json("".join(self._sent)):
            self._waiting.add(call_id)
            return False
        self._open, self._sent = call_id, []
        return True

    def whole(self, call: it.ToolCall) -> list[Message]:
        """The call as it is kept. What has not been sent of it is sent now."""
        if call.call_id == self._open:
            sent = "".join(self._sent)
            self._open, self._sent = "", []
            rest = call.input.removeprefix(sent) if call.input.startswith(sent) else ""
            return [Message("ToolCallPart", ToolCallPart(rest))] if rest else []
        if call.call_id in self._begun or call.partial:
            return []
        self._waiting.discard(call.call_id)
        return [self._begin(call.call_id, call.name, call.input)]

    def again(self) -> None:
        """The model begins its answer anew: what it had begun to call is no call."""
        self._open, self._sent = "", []
        self._waiting.clear()

    def _begin(self, call_id: str, name: str, arguments: str) -> Message:
        self._begun.add(call_id)
        shown, given = self._names.call(name, arguments)
        return Message("ToolCall", ToolCall(call_id, Function(shown, given or None)))


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text.encode(), type=msgspec.Raw)
    except (ValueError, RecursionError):
        return False
    return True
