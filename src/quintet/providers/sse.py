"""Server-sent events out of bytes that arrive in any pieces. Pure: no network, no model words.

Pieces of an unfinished line are kept in a list, not joined at every piece, so that a line of many megabytes costs its
length once. What is larger than the limit is refused instead of kept.
"""

from __future__ import annotations

from collections.abc import Iterator

LINE_LIMIT = 16 * 1024 * 1024


class LineTooLong(ValueError):
    """No honest server sends such a line."""


class EventParser:
    """Feed it bytes, take (event name, data) pairs. A comment counts as life, not as an event."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._open: list[bytes] = []  # the line that is not finished yet
        self._size = 0
        self._after_return = False  # the last byte was a CR: a LF that follows belongs to it
        self._begun = False
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        if not self._begun and data:
            self._begun = True
            data = data.removeprefix(b"\xef\xbb\xbf")
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]
        self._after_return = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in data:
            self._keep(data)
            return
        first, *lines = data.split(b"\n")
        rest = lines.pop()
        self._keep(first)
        yield from self._line(b"".join(self._open))
        for line in lines:
            yield from self._line(line)
        self._open, self._size = [], 0
        self._keep(rest)

    def close(self) -> Iterator[tuple[str, bytes]]:
        """The stream has ended: what has no empty line behind it counts all the same, some servers forget it."""
        if self._open:
            yield from self._line(b"".join(self._open))
            self._open = []
        yield from self._line(b"")

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._size += len(piece)
            if self._size > self._limit:
                raise LineTooLong(f"a line of more than {self._limit} bytes")
            self._open.append(piece)

    def _line(self, line: bytes) -> Iterator[tuple[str, bytes]]:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif not line:
            if self._data:
                yield self._name, self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            self._name, self._data = "", []
        elif line.startswith(b"event:"):
            self._name = line[6:].strip().decode("utf-8", "replace")
