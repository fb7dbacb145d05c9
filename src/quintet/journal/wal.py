"""The write-ahead log, looked at before SQLite does: SQLite drops everything behind one bad frame without a word.

A frame is good when its salts are the log's and its checksum continues the one before it. Behind the first bad frame
the chain is broken, but each later frame can still be checked against the checksum its predecessor carries: whatever
passes was written whole and is really lost. Nothing behind the bad one means a torn tail, which power loss leaves.
"""

from __future__ import annotations

import os
import struct

import msgspec

HEADER, FRAME = 32, 24
_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}


class Walk(msgspec.Struct, frozen=True):
    frames: int = 0  # good ones
    dropped: int = 0  # of the current log, at and behind the first bad one
    lost: int = 0  # of those, written whole


def _add(order: str, data: bytes, first: int, second: int) -> tuple[int, int]:
    """SQLite's running checksum over pairs of 32-bit words."""
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for low, high in zip(words, words, strict=True):
        first = (first + low + second) & 0xFFFFFFFF
        second = (second + high + first) & 0xFFFFFFFF
    return first, second


def walk(path: str) -> Walk:
    """What the log at this path holds. No file or an empty one holds nothing."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return Walk()
    if len(data) < HEADER + FRAME:
        return Walk()
    magic, _, size, _, salt1, salt2, sum1, sum2 = struct.unpack(">8I", data[:HEADER])
    order = _MAGIC.get(magic, "<")
    good_header = magic in _MAGIC and _add(order, data[:24], 0, 0) == (sum1, sum2)
    if not good_header:
        size, salts = _guess(data)
    else:
        salts = (salt1, salt2)
    if size < 512 or size & (size - 1):
        return Walk(dropped=1, lost=1)  # nothing in it can be told apart any more
    if good_header:
        return _frames(data, order, size, salts, (sum1, sum2), good=True)
    either = [_frames(data, order, size, salts, (0, 0), good=False) for order in "<>"]
    return max(either, key=lambda found: found.lost)


def _guess(data: bytes) -> tuple[int, tuple[int, int]]:
    """With a bad header: the page size whose second frame carries the first one's salts, and those salts."""
    salts = struct.unpack(">II", data[HEADER + 8 : HEADER + 16])
    for power in range(9, 17):
        at = HEADER + FRAME + (1 << power)
        if data[at + 8 : at + 16] == data[HEADER + 8 : HEADER + 16]:
            return 1 << power, (salts[0], salts[1])
    return len(data) - HEADER - FRAME, (salts[0], salts[1])


def _frames(data: bytes, order: str, size: int, salts: tuple[int, int], before: tuple[int, int], *, good: bool) -> Walk:
    frames = dropped = lost = 0
    for at in range(HEADER, len(data) - FRAME - size + 1, FRAME + size):
        _, _, salt1, salt2, sum1, sum2 = struct.unpack(">6I", data[at : at + FRAME])
        ours = (salt1, salt2) == salts
        if good and not ours:
            # An older round of the log begins here, unless our own salts come back later.
            good = False
            before = (sum1, sum2)
            continue
        if not ours:
            before = (sum1, sum2)
            continue
        counted = _add(order, data[at : at + 8], *before)
        counted = _add(order, data[at + FRAME : at + FRAME + size], *counted)
        whole = counted == (sum1, sum2)
        if good and whole:
            frames += 1
        else:
            good = False
            dropped += 1
            lost += whole
        before = (sum1, sum2)
    return Walk(frames, dropped, lost)


def save_aside(path: str) -> str:
    """Keep the log as it was found; SQLite will overwrite it. The newest damage is the one kept."""
    aside = f"{path}.damaged"
    with open(path, "rb") as source:
        data = source.read()
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as target:
        target.write(data)
        target.flush()
        os.fsync(target.fileno())
    return aside
