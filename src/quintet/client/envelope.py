"""Envelopes as they come over a stream, and the lines they come in."""

from __future__ import annotations

from typing import Any

import msgspec

LONGEST = 64 * 1024 * 1024


class Envelope(msgspec.Struct, frozen=True):
    """`seq` is the cursor to come back with; frames that are no events repeat where the stream stood."""

    seq: int
    kind: str
    data: dict[str, Any]
    id: str = ""
    scope: str = ""
    namespace: str = ""
    timestamp: int = 0
    numbered: bool = True  # whether it came with an id of its own


class Lines:
    """Bytes to envelopes. Knows the few rules of the format that our server uses, and ignores the rest."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._id: bytes | None = None

    def feed(self, chunk: bytes) -> list[Envelope]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LONGEST:
            raise ValueError("a line of the stream is too long")
        found = []
        for line in lines:
            line = line.rstrip(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif line.startswith(b"id:"):
                self._id = line[3:].strip()
            elif not line and self._data:
                found.append(self._envelope())
        return found

    def _envelope(self) -> Envelope:
        raw = msgspec.json.decode(b"\n".join(self._data), type=dict[str, Any])
        numbered = self._id is not None
        self._data, self._id = [], None
        return msgspec.convert({**raw, "numbered": numbered}, type=Envelope)
