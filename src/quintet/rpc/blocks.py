"""Content-Length blocks, without I/O: the LSP framing. Pure as framing.py is; knows headers and counts."""

import re
from functools import cache
from typing import Literal

from quintet.rpc.framing import DEFAULT_LIMIT, BadFrame, Frame, Item, Reason

HEADER_LIMIT = 8 * 1024
KNOWN_HEADERS = frozenset({b"content-length", b"content-type"})


def encode_block(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


_TOKEN = rb"[A-Za-z0-9!#$%&'*+.^_`|~-]"
_HEADER = re.compile(rb"(" + _TOKEN + rb"{1,64}):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*", re.DOTALL)
_DIGITS = re.compile(rb"[0-9]{1,15}")
# The certain boundary of a stream of JSON bodies. Outside a JSON string the word is not JSON; inside one a
# raw newline is not JSON; so no valid body holds these bytes, whatever text it carries. Bounded, so that a
# short tail is enough memory.
# The look-behind keeps the tail of another header's name (X-Content-Length) from posing as one.
_WORDS = rb"(?<![-_])content-length:[ \t]{0,8}[0-9]{1,15}[ \t]{0,8}"
_CRLF, _LF = rb"\r\n", rb"\r?\n"
_MARK_MAX = 64


@cache
def _mark(*, bare_lf: bool) -> re.Pattern[bytes]:
    """Made when something went wrong: who starts a server waits for none of it."""
    return re.compile(_WORDS + (_LF if bare_lf else _CRLF), re.IGNORECASE)


class BlockDecoder:
    """Content-Length blocks. `known`: the only header names allowed (None: any); `bare_lf`: `\\n` may end a
    header line.

    Modes: *head* reads header lines, *body* collects, *skip* drops a counted body, *drain* drops the rest of
    a bad block, *seek* drops everything up to the next mark, *dead* drops all.
    """

    def __init__(
        self,
        *,
        limit: int = DEFAULT_LIMIT,
        header_limit: int = HEADER_LIMIT,
        known: frozenset[bytes] | None = KNOWN_HEADERS,
        bare_lf: bool = False,
        recover: bool = True,
    ) -> None:
        self._limit, self._header_limit = limit, header_limit
        self._known, self._bare_lf, self._recover = known, bare_lf, recover
        self._buffer = bytearray()
        self._pos = 0  # consumed so far; cut off once per feed
        self._searched = 0  # nothing sought lies before this index: a slow sender makes no search start over
        self._mode: Literal["head", "body", "skip", "drain", "seek", "dead"] = "head"
        self._open_block()

    def _open_block(self) -> None:
        self._length: int | None = None
        self._unknown: str | None = None
        self._header_bytes = 0

    def feed(self, data: bytes) -> list[Item]:
        out: list[Item] = []
        self._buffer += data
        while self._advance(out):
            pass
        del self._buffer[: self._pos]
        self._searched = max(0, self._searched - self._pos)
        self._pos = 0
        return out

    def eof(self) -> list[Item]:
        mode, left = self._mode, len(self._buffer)
        self._mode, self._buffer = "dead", bytearray()
        if mode in ("body", "skip"):
            return [BadFrame("truncated", "body", fatal=True)] if mode == "body" else []
        if mode == "head" and (left or self._header_bytes):
            return [BadFrame("truncated", "header", fatal=True)]
        return []

    def _advance(self, out: list[Item]) -> bool:
        """One step; False when more bytes are needed."""
        match self._mode:
            case "head" | "drain":
                return self._step_line(out)
            case "body":
                return self._step_body(out)
            case "skip":
                return self._step_skip()
            case "seek":
                return self._step_seek()
        self._pos = len(self._buffer)
        return False

    def _step_body(self, out: list[Item]) -> bool:
        length = self._length or 0
        end = self._pos + length
        if len(self._buffer) < end:
            return False
        with memoryview(self._buffer) as view:
            out.append(Frame(bytes(view[self._pos : end])))
        self._pos = self._searched = end
        self._mode = "head"
        self._open_block()
        return True

    def _step_skip(self) -> bool:
        dropped = min(self._length or 0, len(self._buffer) - self._pos)
        self._length = (self._length or 0) - dropped
        self._pos += dropped
        if self._length:
            return False
        self._searched = self._pos
        self._mode = "head"
        self._open_block()
        return True

    def _step_seek(self) -> bool:
        found = _mark(bare_lf=self._bare_lf).search(self._buffer, self._searched)
        if found is None:
            # Keep what may be the beginning of a mark, and the byte before it, which the look-behind must
            # see.
            self._searched = max(self._searched, len(self._buffer) - _MARK_MAX)
            self._pos = max(self._pos, self._searched - 1)
            return False
        self._pos = self._searched = found.start()
        self._mode = "head"
        self._open_block()
        return True

    def _step_line(self, out: list[Item]) -> bool:
        end = self._buffer.find(b"\n", max(self._pos, self._searched))
        size = (len(self._buffer) if end < 0 else end + 1) - self._pos
        if self._header_bytes + size > self._header_limit:
            return self._overflow(out)
        if end < 0:
            self._searched = len(self._buffer)
            return False
        line = bytes(self._buffer[self._pos : end])
        start, self._pos = self._pos, end + 1
        self._searched = self._pos
        self._header_bytes += size
        if line.endswith(b"\r"):
            line = line[:-1]
        elif not self._bare_lf and self._mode == "head":
            return self._bad_line(out, line, start)
        if self._mode == "drain":
            if not line:
                self._mode = "seek"
            return True
        return self._header(out, line, start) if line else self._end_block(out)

    def _header(self, out: list[Item], line: bytes, start: int) -> bool:
        found = _HEADER.fullmatch(line)
        if found is None:
            return self._bad_line(out, line, start)
        name, value = found[1].lower(), found[2]
        if name != b"content-length":
            if self._known is not None and name not in self._known:
                self._unknown = name.decode("ascii")
            return True
        if self._length is not None:
            return self._lose(out, "duplicate_length", "Content-Length given twice", drain=True)
        if not _DIGITS.fullmatch(value):
            return self._lose(out, "bad_length", _show(value), drain=True)
        self._length = int(value)
        return True

    def _bad_line(self, out: list[Item], line: bytes, start: int) -> bool:
        """Not a header. A block that has named a length is void as a whole; else a mark may follow."""
        if self._length is not None:
            return self._lose(out, "bad_header", _show(line), drain=True)
        self._pos = start
        return self._lose(out, "bad_header", _show(line))

    def _end_block(self, out: list[Item]) -> bool:
        length = self._length
        if length is None:
            return self._lose(out, "missing_length", "no Content-Length in the header block")
        if self._unknown is not None:
            self._report(out, "unknown_header", self._unknown)
        elif length > self._limit:
            self._report(out, "too_large", f"{length} bytes, the limit is {self._limit}")
        else:
            self._mode = "body"
            return True
        # The sender's own count is the certain boundary, unless it is so large that no honest body has it:
        # then the mark is.
        if self._mode != "dead":
            self._mode = "skip" if length <= 4 * self._limit else "seek"
        return True

    def _report(self, out: list[Item], reason: Reason, detail: str) -> None:
        out.append(BadFrame(reason, detail, fatal=not self._recover))
        if not self._recover:
            self._mode = "dead"

    def _overflow(self, out: list[Item]) -> bool:
        # Counted from the block's start, so that the same bytes are dropped however they were cut.
        room = self._header_limit - self._header_bytes
        self._lose(out, "header_too_large", f"header block over {self._header_limit} bytes")
        self._searched = self._pos + max(1, room - _MARK_MAX)
        return True

    def _lose(self, out: list[Item], reason: Reason, detail: str, *, drain: bool = False) -> bool:
        if self._mode != "drain":  # the same loss is not reported twice
            self._report(out, reason, detail)
        if self._mode != "dead":
            self._mode = "drain" if drain else "seek"
            self._searched = self._pos
        return True


def _show(raw: bytes) -> str:
    """Bad bytes as short printable text, fit for an error message."""
    return raw[:80].decode("ascii", "backslashreplace").encode("unicode_escape").decode("ascii")
