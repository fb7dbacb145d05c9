"""Server-sent events out of bytes that arrive in any pieces. Pure: no network, no model words.

Pieces of an unfinished line are kept in a list, not joined at every piece, so that a line of many megabytes costs its
length once. What is larger than the limit is refused instead of kept.
"""

from __future__ import annotations

LIMIT = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class TooLong(ValueError):
    """No honest server sends such an event."""


class EventParser:
    """Feed it bytes, take (event name, data) pairs. A comment counts as life, not as an event."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._open: list[bytes] = []  # the line that is not finished yet
        self._size = 0  # of that line and of the event's data before it
        self._after_return = False  # the last byte was a CR: a LF that follows belongs to it
        self._first = True  # no line has been seen yet: a byte order mark may stand before it
        self._name = ""
        self._data: list[bytes] = []
        self._data_size = 0

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        if not data:
            return []
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]
            self._after_return = False
            if not data:
                return []
        if b"\r" in data:
            self._after_return = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        else:
            self._after_return = False
        if b"\n" not in data:
            self._keep(data)
            return []
        lines = data.split(b"\n")
        rest = lines.pop()
        if self._open:
            self._keep(lines[0])
            lines[0] = b"".join(self._open)
            self._open = []
        events = self._lines(lines)
        self._size = self._data_size
        self._keep(rest)
        return events

    def close(self) -> list[tuple[str, bytes]]:
        """The stream has ended: what has no empty line behind it counts all the same, some servers forget it."""
        last, self._open = b"".join(self._open), []
        return self._lines([last, b""])

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            raise TooLong(f"an event of more than {self._limit} bytes")
        if piece:
            self._open.append(piece)

    def _lines(self, lines: list[bytes]) -> list[tuple[str, bytes]]:
        events: list[tuple[str, bytes]] = []
        kept = self._data
        if self._first:
            self._first = False
            lines[0] = lines[0].removeprefix(_BOM)
        for line in lines:
            if line.startswith(b"data:"):
                kept.append(line[6:] if line.startswith(b"data: ") else line[5:])
                self._data_size += len(line)
            elif not line:
                if kept:
                    events.append((self._name, kept[0] if len(kept) == 1 else b"\n".join(kept)))
                    kept.clear()
                    self._data_size = 0
                self._name = ""
            elif line.startswith(b"event:"):
                self._name = line[6:].strip().decode("utf-8", "replace")
            elif line == b"data":
                kept.append(b"")
        return events
