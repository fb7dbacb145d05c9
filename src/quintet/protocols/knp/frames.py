"""Frames: what an event says on KNP, and the envelope around it. Encoded once for everybody who gets the same."""

from __future__ import annotations

from typing import Any

import msgspec

from quintet.domain.cursor import frame_id, split
from quintet.rpc.http.sse import sse_frame

NAMESPACE, GLOBAL = "namespace", "global"
_encode = msgspec.json.Encoder().encode


class Frame(msgspec.Struct, gc=False):
    """One frame of an event's projection. `everywhere`: also on the global stream."""

    kind: str
    data: Any
    namespace: str
    at_ms: int
    tid: str = ""
    root: str = ""  # the thread it belongs to with its subagents
    everywhere: bool = False
    _encoded: dict[str, bytes] | None = None

    def encoded(self, number: int, scope: str) -> bytes:
        if self._encoded is None:
            self._encoded = {}
        found = self._encoded.get(scope)
        if found is None:
            envelope = Envelope(
                number, frame_id(*split(number)), scope, self.namespace, self.kind, self.data, self.at_ms
            )
            found = self._encoded[scope] = sse_frame(_encode(envelope), number)
        return found


class Envelope(msgspec.Struct, frozen=True):
    """As published: `seq` is the cursor, `id` unique and the same on every stream."""

    seq: int
    id: str
    scope: str
    namespace: str
    kind: str
    data: Any
    timestamp: int


def unnumbered(kind: str, data: Any, *, position: int, scope: str, namespace: str, at_ms: int) -> bytes:
    """A frame that is no event: it repeats the stream's position and does not move a client's cursor."""
    return sse_frame(_encode(Envelope(position, f"{kind}.{at_ms}", scope, namespace, kind, data, at_ms)))
