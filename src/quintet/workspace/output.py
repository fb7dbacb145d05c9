"""A child's output: bytes made text without tearing characters, kept whole up to a size and then as head and tail, and
a thinned copy for those who watch. Knows no process and no journal.
"""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import Callable

# Characters held in memory and given on; what of them a model reads at once is not decided here.
HEAD = 1_000_000
TAIL = 3_000_000
LIVE_LIMIT = 200_000  # characters told to watchers while it runs; the result has the end
LIVE_PAUSE_S = 0.02  # between two pieces, so that a line-by-line writer does not become one event per line
LIVE_STOP = "\n[the output goes on; it is no longer shown live]\n"


class Decoder:
    """Bytes of several streams to text; a character split between two reads waits for its rest."""

    def __init__(self) -> None:
        self._made: dict[str, codecs.IncrementalDecoder] = {}

    def text(self, stream: str, data: bytes) -> str:
        if stream not in self._made:
            self._made[stream] = codecs.getincrementaldecoder("utf-8")("replace")
        return self._made[stream].decode(data)

    def rest(self) -> list[tuple[str, str]]:
        """What is still open at the end, as the replacement character."""
        ends = [(stream, decoder.decode(b"", final=True)) for stream, decoder in self._made.items()]
        return [(stream, text) for stream, text in ends if text]


class Kept:
    """The first and the last characters of a text of any length, and its true size."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self._head_room = head
        self._tail_size = tail
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_length = 0
        self.characters = 0
        self.lines = 0

    def add(self, text: str) -> None:
        self.characters += len(text)
        self.lines += text.count("\n")
        if self._head_room:
            self._head.append(text[: self._head_room])
            taken = len(self._head[-1])
            self._head_room -= taken
            text = text[taken:]
        if not text:
            return
        self._tail.append(text)
        self._tail_length += len(text)
        while self._tail_length - len(self._tail[0]) >= self._tail_size:
            self._tail_length -= len(self._tail.popleft())

    def text(self) -> str:
        """Everything, or head and tail with what is missing between them told."""
        tail = "".join(self._tail)
        left_out = self.characters - sum(map(len, self._head)) - min(len(tail), self._tail_size)
        if left_out <= 0:
            return "".join(self._head) + tail
        marker = f"\n[{left_out} of {self.characters} characters ({self.lines} lines) left out here]\n"
        return "".join(self._head) + marker + tail[-self._tail_size :]


class Live:
    """Output as it comes, for watchers: the first piece at once, then at most one piece per pause and stream, then
    silence beyond the limit. Call `close` at the end."""

    def __init__(self, emit: Callable[[str, str], None]) -> None:
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[str, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._room = LIVE_LIMIT
        self._failure: Exception | None = None

    def add(self, stream: str, text: str) -> None:
        if self._failure is not None:
            raise self._failure
        if not text or self._room <= 0:
            return
        piece = text[: self._room]
        self._room -= len(piece)
        self._waiting.append((stream, piece if self._room > 0 else piece + LIVE_STOP))
        if self._timer is None:
            self._say()
            self._timer = self._loop.call_later(LIVE_PAUSE_S, self._flush)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._failure is not None:
            raise self._failure
        self._say()

    def _flush(self) -> None:
        try:
            said = self._say()
        except Exception as error:
            # Raised from a timer it would reach nobody: kept for whoever adds or closes.
            self._failure, self._room, said = error, 0, False
        self._timer = self._loop.call_later(LIVE_PAUSE_S, self._flush) if said else None

    def _say(self) -> bool:
        """Pieces of one stream that follow each other are joined; the order between streams stays."""
        pieces, self._waiting = self._waiting, []
        place = 0
        while place < len(pieces):
            stream = pieces[place][0]
            end = place
            while end < len(pieces) and pieces[end][0] == stream:
                end += 1
            self._emit(stream, "".join(text for _, text in pieces[place:end]))
            place = end
        return bool(pieces)
