"""Bytes to frames and back, without I/O: what a frame is, and JSON lines. (Content-Length: blocks.py.)

Pure: no asyncio, no descriptors, no JSON. A decoder gives the same frames however the bytes are cut, and
after bad input goes on at the next *certain* boundary (said where it is decided), or declares the stream
dead; it never guesses.
"""

from typing import Literal, Protocol

from msgspec import Struct

MIB = 1024 * 1024
DEFAULT_LIMIT = 16 * MIB

Reason = Literal[
    "missing_length",
    "bad_header",
    "unknown_header",
    "bad_length",
    "duplicate_length",
    "header_too_large",
    "too_large",
    "truncated",
]


class Frame(Struct, frozen=True):
    """One whole body, not yet known to be JSON or even UTF-8."""

    body: bytes


class BadFrame(Struct, frozen=True):
    """What was wrong, once per loss of step. `fatal`: the decoder reads no further; close the stream."""

    reason: Reason
    detail: str
    fatal: bool = False


Item = Frame | BadFrame


class Decoder(Protocol):
    def feed(self, data: bytes) -> list[Item]: ...
    def eof(self) -> list[Item]: ...


def encode_line(body: bytes) -> bytes:
    return body + b"\n"


class LineDecoder:
    """One frame per newline, always a certain boundary; a carriage return before it is dropped."""

    def __init__(self, *, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[Item]:
        out: list[Item] = []
        start = 0
        # Only new bytes are searched: the buffer is known to hold no newline, so a long line costs linear
        # time.
        while (end := data.find(b"\n", start)) >= 0:
            self._take(data[start:end], out)
            self._finish(out)
            start = end + 1
        self._take(data[start:] if start else data, out)
        return out

    def eof(self) -> list[Item]:
        """A last line without newline counts: if it was cut, it is no JSON object and fails as such."""
        out: list[Item] = []
        if self._buffer and not self._skipping:
            self._finish(out)
        self._buffer.clear()
        return out

    def _take(self, piece: bytes, out: list[Item]) -> None:
        if self._skipping:
            return
        # One byte of grace for the carriage return that may close a line of exactly the limit.
        if len(self._buffer) + len(piece) > self._limit + 1:
            self._refuse(out)
        else:
            self._buffer += piece

    def _refuse(self, out: list[Item]) -> None:
        out.append(BadFrame("too_large", f"line over {self._limit} bytes"))
        self._buffer = bytearray()
        self._skipping = True

    def _finish(self, out: list[Item]) -> None:
        if self._skipping:
            self._skipping = False
            return
        if self._buffer.endswith(b"\r"):
            del self._buffer[-1:]
        if len(self._buffer) > self._limit:
            self._refuse(out)
            self._skipping = False
            return
        out.append(Frame(bytes(self._buffer)))
        self._buffer = bytearray()
