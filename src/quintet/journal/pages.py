"""A damaged database, page by page, without SQLite: every leaf that can be read gives its rows, whatever became of the
pages above it. The log's good commits lie over the file. Knows SQLite's file format, not what the rows mean.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

import msgspec

from quintet.journal import wal

DEFAULT_SIZE = 4096
MAGIC = b"SQLite format 3\0"
TABLE_LEAF, TABLE_INNER, INDEX_LEAF, INDEX_INNER = 0x0D, 0x05, 0x0A, 0x02
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


class Unreadable(ValueError):
    """These bytes are no record."""


class Leaf(msgspec.Struct):
    """The rows of one page: (rowid, values); an index's rows have no rowid. `bad` counts cells that are none."""

    page: int
    rows: list[tuple[int | None, list[Any]]]
    bad: int = 0


class Pages:
    """The file as its last good commit left it."""

    def __init__(self, database: str, log: str) -> None:
        self._file = _opened(database)
        self._log = _opened(log)
        self.walked = wal.walk(log)
        length = 0 if self._file < 0 else os.fstat(self._file).st_size
        head = b"" if self._file < 0 else os.pread(self._file, 100, 0)
        self.size = _page_size(head)
        self.count = -(-length // self.size)
        self._over: dict[int, int] = {}
        if self.walked.frames:
            self._lay_over()
        head = self.page(1)[:100]
        self.usable = self.size - (head[20] if head[:16] == MAGIC and head[20] <= 64 else 0)
        said = struct.unpack(">I", head[28:32])[0] if head[:16] == MAGIC else 0
        self.version = struct.unpack(">I", head[60:64])[0] if head[:16] == MAGIC else 0  # of our schema
        self.missing = max(0, min(said, 1 << 31) - self.count) if not self._over else 0
        self.short = not self._over and length < said * self.size

    def close(self) -> None:
        for fd in (self._file, self._log):
            if fd >= 0:
                os.close(fd)

    def _lay_over(self) -> None:
        """Only whole transactions count: frames behind the last commit never happened."""
        self.size = struct.unpack(">I", os.pread(self._log, 4, 8))[0]
        waiting: dict[int, int] = {}
        for n in range(self.walked.frames):
            at = wal.HEADER + n * (wal.FRAME + self.size)
            page, pages = struct.unpack(">II", os.pread(self._log, 8, at))
            waiting[page] = at + wal.FRAME
            if pages:
                self._over |= waiting
                self.count = pages
                waiting = {}

    @property
    def laid_over(self) -> bool:
        return bool(self._over)

    def page(self, number: int) -> bytes:
        at = self._over.get(number)
        if at is not None:
            return os.pread(self._log, self.size, at)
        return b"" if self._file < 0 or number < 1 else os.pread(self._file, self.size, (number - 1) * self.size)

    def leaves(self, kinds: tuple[int, ...]) -> Iterator[Leaf]:
        for number in range(1, self.count + 1):
            data = self.page(number)
            start = 100 if number == 1 else 0
            if len(data) > start + 8 and data[start] in kinds:
                yield self._leaf(number, data, start)

    def unreadable(self) -> int:
        """Pages that the page map says are of a tree and that are none. Their rows cannot be counted."""
        span, found = self.usable // 5 + 1, 0
        for first in range(2, self.count + 1, span):
            known = self.page(first)
            for k in range(min(span - 1, self.count - first)):
                if known[5 * k : 5 * k + 1] in (b"\1", b"\5"):
                    head = self.page(first + 1 + k)[:1]
                    found += head not in (b"\x0d", b"\x05", b"\x0a", b"\x02")
        return found + self.missing

    def _leaf(self, number: int, data: bytes, start: int) -> Leaf:
        kind = data[start]
        leaf = Leaf(number, [])
        (cells,) = struct.unpack(">H", data[start + 3 : start + 5])
        first = start + (12 if kind in (TABLE_INNER, INDEX_INNER) else 8)
        if first + 2 * cells > len(data):
            leaf.bad += 1  # how many there were is not known any more
            cells = 0
        for n in range(cells):
            (at,) = struct.unpack(">H", data[first + 2 * n : first + 2 * n + 2])
            try:
                leaf.rows.append(self._cell(data, at + (4 if kind == INDEX_INNER else 0), kind))
            except (Unreadable, IndexError, struct.error, UnicodeDecodeError):
                leaf.bad += 1
        return leaf

    def _cell(self, data: bytes, at: int, kind: int) -> tuple[int | None, list[Any]]:
        total, at = _varint(data, at)
        rowid: int | None = None
        if kind == TABLE_LEAF:
            rowid, at = _varint(data, at)
            rowid -= (rowid >> 63) << 64
        if not 0 < total <= (self.count + 1) * self.size:
            raise Unreadable
        most = self.usable - 35 if kind == TABLE_LEAF else (self.usable - 12) * 64 // 255 - 23
        if total <= most:
            return rowid, _record(data[at : at + total])
        least = (self.usable - 12) * 32 // 255 - 23
        local = least + (total - least) % (self.usable - 4)
        local = local if local <= most else least
        (following,) = struct.unpack(">I", data[at + local : at + local + 4])
        return rowid, _record(data[at : at + local] + self._overflow(following, total - local))

    def _overflow(self, number: int, left: int) -> bytes:
        """The rest of a long row, as far as it is there: a short one then fails its checksum."""
        parts = []
        while left > 0 and 0 < number <= self.count:
            data = self.page(number)
            if len(data) < 4:
                break
            parts.append(data[4 : min(self.usable, 4 + left)])
            left -= self.usable - 4
            (number,) = struct.unpack(">I", data[:4])
        return b"".join(parts)


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1


def _page_size(head: bytes) -> int:
    """What the header says; one flipped bit cannot turn one good size into another."""
    if len(head) < 18:
        return DEFAULT_SIZE
    size: int = struct.unpack(">H", head[16:18])[0]
    size = 65536 if size == 1 else size
    return size if size >= 512 and not size & (size - 1) else DEFAULT_SIZE


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for n in range(9):
        byte = data[at + n]
        if n == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + n + 1
    raise Unreadable


def _record(data: bytes) -> list[Any]:
    end, at = _varint(data, 0)
    if not 1 <= end <= len(data):
        raise Unreadable
    body, out = end, []
    while at < end:
        kind, at = _varint(data, at)
        value, body = _value(data, body, kind)
        out.append(value)
    return out


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind >= 12:
        size = (kind - 12) // 2
        piece = data[at : at + size]
        if kind % 2 and len(piece) < size:
            raise Unreadable  # half an id is none; half a body is kept, and fails its checksum
        return (piece.decode() if kind % 2 else piece), at + size
    if kind in _INTEGERS:
        size = _INTEGERS[kind]
        if at + size > len(data):
            raise Unreadable
        return int.from_bytes(data[at : at + size], "big", signed=True), at + size
    if kind in (0, 8, 9):
        return (None, 0, 1)[(0, 8, 9).index(kind)], at
    if kind == 7:
        return struct.unpack(">d", data[at : at + 8])[0], at + 8
    raise Unreadable
