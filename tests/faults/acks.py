"""The list of acknowledgements: what a client came to know, written down before it goes on. Survives kill -9."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import msgspec

from quintet.domain.event import KIND_BY_NAME, Durability, Event


def told(event: Event) -> list[Any]:
    """An event as something two tellings of it can be compared by."""
    body = msgspec.json.encode(event.payload).decode()
    return [event.kind, event.at_ms, event.thread, event.root, event.turn, body]


def is_fact(event_kind: str) -> bool:
    return KIND_BY_NAME[event_kind].durability is Durability.FACT


class Acks:
    """Appended to by the process that is going to be killed."""

    def __init__(self, path: Path, home: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._log = LogPosition(home)
        os.write(self._fd, b"\n")  # whoever was killed before us may have been in the middle of a line

    def write(self, what: str, **said: Any) -> None:
        line = {"what": what, "log": self._log.now(), **said}
        os.write(self._fd, json.dumps(line).encode() + b"\n")

    def event(self, event: Event) -> None:
        self.write("event", seq=event.seq, told=told(event), fact=is_fact(event.kind))


class LogPosition:
    """The last committed frame of the write-ahead log and the log's salts, from SQLite's shared index of it.

    The index is opened once and never closed: closing any descriptor of a file drops the locks the whole process holds
    on it, and SQLite's locks lie on this one.
    """

    def __init__(self, home: Path) -> None:
        self._fd = os.open(home / "quintet.db-shm", os.O_RDONLY)

    def now(self) -> list[int]:
        while True:
            head = os.pread(self._fd, 96, 0)
            if head[:48] == head[48:]:
                (frame,) = struct.unpack("=I", head[16:20])
                salts = struct.unpack(">II", head[32:40])  # kept in the order of the file
                return [frame, salts[0], salts[1]]


def read_acks(path: Path, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The lines behind the offset, and the offset behind them. One cut off by the kill was never relied on."""
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read()
    acks = []
    lines = [line for line in data.split(b"\n") if line]
    for number, line in enumerate(lines, 1):
        try:
            acks.append(json.loads(line))
        except json.JSONDecodeError:
            assert number == len(lines), f"a line in the middle is torn: {line!r}"
    return acks, offset + len(data)


def cut_log(home: Path, position: list[int]) -> int:
    """Power loss: nothing behind this position of the log reached the disk. Returns how many bytes are gone."""
    log, index = home / "quintet.db-wal", home / "quintet.db-shm"
    frame, *salts = position
    before = log.stat().st_size
    with log.open("rb") as file:
        head = file.read(32)
    index.unlink(missing_ok=True)
    if len(head) < 32:
        return 0
    (page,) = struct.unpack(">I", head[8:12])
    same_round = list(struct.unpack(">II", head[16:24])) == salts
    keep = 32 + frame * (24 + page) if same_round else 32
    if keep < before:
        os.truncate(log, keep)
    return max(0, before - keep)
