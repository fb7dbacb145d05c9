"""A profile's memories as Kward keeps them: core.json, soft.jsonl and events.jsonl in its directory `memory`.

The files are shared with other programs: what they say besides is kept, and a line nobody can read stays a line.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from quintet.domain.errors import Invalid
from quintet.domain.memory import KEYS, OURS, Layer, Memories, Memory, MemoryChange, MemoryPaths, MemoryStatus, plain
from quintet.domain.ports import MirrorFiles
from quintet.workspace.settings_file import Stamp, stamp_of

_LARGEST = 2.0**53
DEAD_S = 60.0  # a passing file that old belongs to nobody


class MemoryFiles:
    """Plays domain.ports.MemoryStore."""

    def __init__(self, directory: str, files: MirrorFiles) -> None:
        self._directory = os.path.join(directory, "memory")
        names = ("core.json", "soft.jsonl", "events.jsonl")
        self.paths = MemoryPaths(*(os.path.join(self._directory, name) for name in names))
        self._files = files
        self._read: tuple[tuple[Stamp | None, Stamp | None], Memories] | None = None

    async def read(self) -> Memories:
        stamps = stamp_of(self.paths.core), stamp_of(self.paths.soft)
        if self._read is None or self._read[0] != stamps:
            self._read = stamps, await self._parsed()
        return self._read[1]

    async def change(self, work: Callable[[Memories], MemoryChange]) -> Memories:
        async with self._files.hold(self.paths.core):
            before = await self._parsed()
            change = work(before)
            now = change.now
            if now.core != before.core:
                await self._files.write(self.paths.core, await self._core_bytes(now.core))
            if now.soft != before.soft:
                await self._files.write(self.paths.soft, await self._soft_bytes(now.soft))
            await self._record(change.record)
            self._clear_passing()
            self._read = None
        return now

    async def make(self) -> None:
        async with self._files.hold(self.paths.core):
            for path, empty in ((self.paths.core, b"[]\n"), (self.paths.soft, b""), (self.paths.events, b"")):
                if await self._files.read(path) is None:
                    await self._files.write(path, empty)

    async def _parsed(self) -> Memories:
        core = [_memory(Layer.CORE, raw) for raw in _list(self._core(await self._files.read(self.paths.core)))]
        soft = [_memory(Layer.SOFT, raw) for _, raw in _lines(await self._files.read(self.paths.soft)) if raw]
        return Memories(tuple(core), tuple(soft))

    def _core(self, data: bytes | None) -> Any:
        if data is None or not data.strip():
            return []
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise Invalid(
                f"The memory file {self.paths.core} is not valid JSON.", next_step="Correct it, or move it away."
            ) from None

    async def _core_bytes(self, memories: Sequence[Memory]) -> bytes:
        """In the form the file has, and with what else it says."""
        found = self._core(await self._files.read(self.paths.core))
        written: Any = [plain(m) for m in memories]
        if isinstance(found, dict):
            written = {**found, "memories": written}
        return (json.dumps(written, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "surrogatepass")

    async def _soft_bytes(self, memories: Sequence[Memory]) -> bytes:
        unread = [line for line, raw in _lines(await self._files.read(self.paths.soft)) if raw is None]
        lines = [*(_line(plain(m)) for m in memories), *unread]
        return b"".join(line + b"\n" for line in lines)

    async def _record(self, record: Sequence[Mapping[str, Any]]) -> None:
        if record:
            await self._files.append(self.paths.events, b"".join(_line(entry) + b"\n" for entry in record))

    def _clear_passing(self) -> None:
        """What a process that died while it wrote has left: it may hold a text that is to be forgotten. Old is told by
        what was written last, in the file system's own time."""
        with contextlib.suppress(OSError):
            entries = [(entry, entry.stat().st_mtime) for entry in os.scandir(self._directory)]
            now = max(written for _, written in entries)
            for entry, written in entries:
                passing = entry.name.startswith(".quintet-") and entry.name.endswith(".tmp")
                if passing and written < now - DEAD_S:
                    os.unlink(entry.path)


def _list(found: Any) -> list[dict[str, Any]]:
    rows = found.get("memories", []) if isinstance(found, dict) else found
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _lines(data: bytes | None) -> list[tuple[bytes, dict[str, Any] | None]]:
    """Each line with its record; None for one that cannot be read."""
    found: list[tuple[bytes, dict[str, Any] | None]] = []
    for line in (data or b"").splitlines():
        if not line.strip():
            continue
        try:
            raw = json.loads(line)
        except (ValueError, RecursionError):
            raw = None
        found.append((line, raw if isinstance(raw, dict) else None))
    return found


def _memory(layer: Layer, raw: dict[str, Any]) -> Memory:
    """Whatever cannot be what it should be counts as not said: one odd record must not hide all others."""

    def text(key: str, otherwise: str = "") -> str:
        return raw[key] if isinstance(raw.get(key), str) else otherwise

    def number(key: str, otherwise: float) -> float:
        value = raw.get(key)
        return value if isinstance(value, int | float) and not isinstance(value, bool) and _usable(value) else otherwise

    def texts(key: str) -> tuple[str, ...]:
        return tuple(t for t in raw[key] if isinstance(t, str)) if isinstance(raw.get(key), list) else ()

    known = (*KEYS[layer], *OURS)
    return Memory(
        id=text("id"),
        layer=layer,
        text=text("text"),
        scope=text("scope", "global"),
        tags=texts("tags"),
        source=text("source"),
        status=_status(layer, raw.get("status")),
        confidence=min(max(float(number("confidence", 1.0 if layer is Layer.CORE else 0.0)), 0.0), 1.0),
        hits=int(number("hits", 0)),
        created_at=text("created_at"),
        updated_at=text("updated_at"),
        last_seen_at=text("last_seen_at"),
        ttl_days=int(number("ttl_days", 0)),
        pinned=raw.get("pinned") is not False,
        thread=text("thread"),
        seen=texts("seen"),
        rest={key: value for key, value in raw.items() if key not in known},
    )


def _usable(value: float) -> bool:
    """JSON as many read it knows numbers that are none, and some that no computer counts with."""
    return -_LARGEST <= value <= _LARGEST


def _status(layer: Layer, said: Any) -> MemoryStatus:
    """A word nobody here knows is no approval."""
    if layer is Layer.CORE or said == MemoryStatus.ACTIVE:
        return MemoryStatus.ACTIVE
    return MemoryStatus.PROPOSED if said == MemoryStatus.PROPOSED else MemoryStatus.FORGOTTEN


def _line(raw: Mapping[str, Any]) -> bytes:
    return json.dumps(raw, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
