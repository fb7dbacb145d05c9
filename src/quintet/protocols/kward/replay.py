"""The newest events of a turn, kept for who asks for them again: bounded by their number and by their size."""

from __future__ import annotations

from collections import deque

import msgspec

from quintet.protocols.kward.capabilities import REPLAYED
from quintet.protocols.kward.models import TurnEvent

MIB = 1024 * 1024
OF_A_TURN = 8 * MIB  # a single larger event is kept all the same
OF_A_CLIENT = 32 * MIB  # of all its turns: the oldest that have ended go first
_AROUND = 250  # bytes of a frame beside its payload


class Replay:
    def __init__(self) -> None:
        self._frames: deque[tuple[TurnEvent, int]] = deque()
        self.size = 0

    def add(self, frame: TurnEvent) -> None:
        size = _size(frame)
        self._frames.append((frame, size))
        self.size += size
        while len(self._frames) > REPLAYED or (self.size > OF_A_TURN and len(self._frames) > 1):
            self.size -= self._frames.popleft()[1]

    def after(self, sequence: int) -> list[TurnEvent]:
        return [frame for frame, _ in self._frames if frame.sequence > sequence]

    def missing(self, sequence: int) -> int:
        """How many after this one are no longer there."""
        return max(self._frames[0][0].sequence - 1 - max(sequence, 0), 0) if self._frames else 0


def _size(frame: TurnEvent) -> int:
    """About, and cheap for the many small ones."""
    match frame.payload:
        case {"delta": str(words)}:
            return _AROUND + len(words)
    return _AROUND + len(msgspec.json.encode(frame.payload))
