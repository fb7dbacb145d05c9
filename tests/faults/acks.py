"""The list of acknowledgements: what a client came to know, written down before it goes on. Survives kill -9."""

from __future__ import annotations

import json
import os
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

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(self._fd, b"\n")  # whoever was killed before us may have been in the middle of a line

    def write(self, what: str, **said: Any) -> None:
        os.write(self._fd, json.dumps({"what": what, **said}).encode() + b"\n")

    def event(self, event: Event) -> None:
        self.write("event", seq=event.seq, told=told(event), fact=is_fact(event.kind))


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
