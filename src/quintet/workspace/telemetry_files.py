"""Telemetry on disk: a file of JSON lines a day, private, begun anew when it is full. Nothing is removed here."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from quintet.workspace.mirror_files import make_private

LARGEST = 10 * 1024 * 1024
_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})(?:-(\d{1,6}))?\.jsonl")
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class TelemetryFiles:
    """Plays domain.ports.TelemetryLog."""

    def __init__(self, directory: str, largest: int = LARGEST) -> None:
        self.directory = directory
        self._largest = largest

    async def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        await asyncio.to_thread(self._append, records)

    async def read(self, start: datetime, end: datetime, take: Callable[[Mapping[str, Any]], None]) -> None:
        await asyncio.to_thread(self._read, start, end, take)

    def _append(self, records: Sequence[Mapping[str, Any]]) -> None:
        import json  # not for every start: most people keep no log

        make_private(self.directory)
        days: dict[str, list[bytes]] = {}
        for record in records:
            line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
            days.setdefault(str(record["timestamp"])[:10], []).append(line)
        for day, lines in days.items():
            descriptor = os.open(self._current(day), _APPEND, 0o600)
            try:
                os.write(descriptor, b"".join(lines))  # one call: lines of several processes do not mix
            finally:
                os.close(descriptor)

    def _current(self, day: str) -> str:
        number = 0
        while True:
            path = os.path.join(self.directory, f"{day}-{number}.jsonl" if number else f"{day}.jsonl")
            try:
                if os.stat(path).st_size < self._largest:
                    return path
            except FileNotFoundError:
                return path
            number += 1

    def _read(self, start: datetime, end: datetime, take: Callable[[Mapping[str, Any]], None]) -> None:
        try:
            names = sorted(os.listdir(self.directory))
        except OSError:
            return
        for name in names:
            found = _NAME.fullmatch(name)
            if found and f"{start:%Y-%m-%d}" <= found[1] <= f"{end:%Y-%m-%d}":
                with open(os.path.join(self.directory, name), "rb") as file:
                    for line in file:
                        if (record := _record(line)) is not None and _within(record, start, end):
                            take(record)


def _record(line: bytes) -> Mapping[str, Any] | None:
    """None for what cannot be read: a line of another program, or one that was cut off."""
    import json

    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _within(record: Mapping[str, Any], start: datetime, end: datetime) -> bool:
    try:
        return start <= datetime.fromisoformat(record["timestamp"]) <= end
    except (KeyError, TypeError, ValueError):
        return False
