"""The write-ahead log, looked at before anything is written behind it: SQLite drops what follows a bad frame silently.

A frame is whole when its salts are the log's and its checksum continues the one its predecessor carries. Only commits
can be lost: a transaction larger than the page cache writes frames ahead of its commit and rewrites them in place, so a
kill or a rollback leaves bad frames among chained ones. Frames behind a bad one therefore count as lost up to the last
whole commit frame; with no such frame they are a torn tail, which costs nothing that was acknowledged.
"""

from __future__ import annotations

import contextlib
import os
import struct

import msgspec

from quintet.journal.home import sync_directory

HEADER, FRAME = 32, 24
_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}
_CHUNK = 1 << 20

Sums = tuple[int, int]


class Walk(msgspec.Struct, frozen=True):
    frames: int = 0  # good ones
    dropped: int = 0  # of the current log, behind those
    lost: int = 0  # of the dropped, written whole and committed


def walk(path: str, committed: int = 0) -> Walk:
    """What the log at this path holds. `committed` frames were found good by SQLite and are not checked again."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Walk()
    try:
        return _walk(fd, committed)
    finally:
        os.close(fd)


def _walk(fd: int, committed: int) -> Walk:
    if os.fstat(fd).st_size < HEADER + FRAME:
        return Walk()
    head = os.pread(fd, HEADER, 0)
    magic, _, size, _, salt1, salt2, sum1, sum2 = struct.unpack(">8I", head)
    if magic in _MAGIC and _add(_MAGIC[magic], head[:24], 0, 0) == (sum1, sum2):
        return _Log(fd, _MAGIC[magic], size, (salt1, salt2)).behind(committed, (sum1, sum2))
    size, salts = _guess(fd)
    if size < 512 or size & (size - 1):
        return Walk(dropped=1, lost=1)  # nothing in it can be told apart any more
    either = [_Log(fd, order, size, salts).behind(0, None) for order in "<>"]
    return max(either, key=lambda found: found.lost)


def _guess(fd: int) -> tuple[int, Sums]:
    """With a bad header: the page size whose second frame carries the first one's salts, and those salts."""
    salts = os.pread(fd, 8, HEADER + 8)
    size = os.fstat(fd).st_size - HEADER - FRAME
    for power in range(9, 17):
        if os.pread(fd, 8, HEADER + FRAME + (1 << power) + 8) == salts:
            size = 1 << power
            break
    first, second = struct.unpack(">II", salts)
    return size, (first, second)


def _add(order: str, data: bytes, first: int, second: int) -> Sums:
    """SQLite's running checksum over pairs of 32-bit words."""
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for low, high in zip(words, words, strict=True):
        first = (first + low + second) & 0xFFFFFFFF
        second = (second + high + first) & 0xFFFFFFFF
    return first, second


class _Log:
    def __init__(self, fd: int, order: str, size: int, salts: Sums) -> None:
        self._fd = fd
        self._order = order
        self._length = FRAME + size
        self._salts = salts
        self._count = (os.fstat(fd).st_size - HEADER) // self._length

    def behind(self, good: int, first: Sums | None) -> Walk:
        """Look at what follows that many good frames. `first` is the header's own checksum, None if it is bad."""
        before = self._head(good - 1)[2] if good else first
        heads = [self._head(n) for n in range(good, self._count)]
        sums = [before, *(head[2] for head in heads)]
        ours = [head[1] == self._salts for head in heads]
        commits = (n for n in reversed(range(len(heads))) if ours[n] and heads[n][0])
        last = next((n for n in commits if self._whole(good + n, sums[n], sums[n + 1])), None)
        if last is None:
            return Walk(good, sum(ours))
        chained, frames, dropped, lost = True, good, 0, 0
        for n in range(len(heads)):
            whole = ours[n] and self._whole(good + n, sums[n], sums[n + 1])
            chained = chained and whole
            if chained:
                frames += 1
            else:
                dropped += ours[n]
                lost += whole and n <= last
        return Walk(frames, dropped, lost)

    def _head(self, number: int) -> tuple[int, Sums, Sums]:
        """Of a frame: pages after commit (0 if it is none), salts, checksum."""
        data = os.pread(self._fd, FRAME, HEADER + number * self._length)
        _, pages, salt1, salt2, sum1, sum2 = struct.unpack(">6I", data)
        return pages, (salt1, salt2), (sum1, sum2)

    def _whole(self, number: int, before: Sums | None, carried: Sums | None) -> bool:
        if before is None:
            return False
        data = os.pread(self._fd, self._length, HEADER + number * self._length)
        return _add(self._order, data[FRAME:], *_add(self._order, data[:8], *before)) == carried


def save_aside(path: str) -> str:
    """Keep the log as it was found, beside earlier ones; SQLite will overwrite it."""
    number, aside = 1, f"{path}.damaged"
    while True:
        try:
            fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            break
        except FileExistsError:
            number += 1
            aside = f"{path}.damaged.{number}"
    try:
        with open(path, "rb") as source, open(fd, "wb") as target:
            while data := source.read(_CHUNK):
                target.write(data)
            target.flush()
            os.fsync(target.fileno())
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(aside)  # half a copy is none
        raise
    sync_directory(os.path.dirname(aside))
    return aside
