"""Memory: what an assistant keeps in mind beyond one thread, where each of it comes from, and why it came to mind.

Pure. Times are texts, as they stand in files that other programs write too.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

GLOBAL = "global"
WORKSPACE = "workspace"  # as a scope alone: the workspace one is in
FORGOTTEN_TEXT = "[forgotten]"
TTL_DAYS = 60


class Layer(StrEnum):
    CORE = "core"  # the person said so
    SOFT = "soft"  # a hint, with a confidence and an end


class MemoryStatus(StrEnum):
    ACTIVE = "active"
    FORGOTTEN = "forgotten"
    PROPOSED = "proposed"  # not from the person: waits for their word before it is used


class MemorySwitch(msgspec.Struct, frozen=True):
    enabled: bool = False
    auto_summary: bool = False


class Source(StrEnum):
    """Who it is from. Files may hold other words, of other programs."""

    EXPLICIT = "explicit_user_instruction"
    MANUAL = "manual"
    INFERRED = "inferred"  # from the person's own messages
    PROMOTED = "promoted_soft_memory"
    AGENT = "agent"  # the model wanted it kept; what it had read is in `seen`


class Memory(msgspec.Struct, frozen=True):
    id: str
    layer: Layer
    text: str
    scope: str = GLOBAL  # or workspace:<its real path>
    tags: tuple[str, ...] = ()
    source: str = ""
    status: MemoryStatus = MemoryStatus.ACTIVE
    confidence: float = 1.0
    hits: int = 0
    created_at: str = ""
    updated_at: str = ""
    last_seen_at: str = ""
    ttl_days: int = TTL_DAYS
    pinned: bool = True
    thread: str = ""  # where the model wanted it kept
    seen: tuple[str, ...] = ()  # whose results that thread held then
    rest: Mapping[str, Any] = {}  # whatever else its file says of it

    @property
    def usable(self) -> bool:
        return self.status is MemoryStatus.ACTIVE


class Memories(msgspec.Struct, frozen=True):
    """Everything that is kept, in the order of its files."""

    core: tuple[Memory, ...] = ()
    soft: tuple[Memory, ...] = ()

    def get(self, id: str) -> Memory | None:
        return next((m for m in (*self.core, *self.soft) if m.id == id), None)


class MemoryChange(msgspec.Struct, frozen=True):
    """What is to be kept from now on, and what the store's own record says of it: words and ids, never texts."""

    now: Memories
    record: tuple[Mapping[str, Any], ...] = ()


class MemoryPaths(msgspec.Struct, frozen=True):
    core: str
    soft: str
    events: str


class Recollection(msgspec.Struct, frozen=True):
    """One memory that came to mind, by id: the text stays where it can be forgotten."""

    id: str
    layer: Layer
    score: float
    reasons: tuple[str, ...] = ()


class Recall(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came to a turn's mind and why."""

    at_ms: int = 0
    scopes: tuple[str, ...] = ()
    memories: tuple[Recollection, ...] = ()


def workspace_scope(root: str) -> str:
    return f"{WORKSPACE}:{root}"


_SHARED = ("id", "text", "scope", "tags", "created_at", "updated_at", "source")
KEYS = {
    Layer.CORE: (*_SHARED, "pinned"),
    Layer.SOFT: (*_SHARED, "confidence", "hits", "last_seen_at", "ttl_days", "status"),
}
OURS = ("thread", "seen")  # told only where there is something to tell


def plain(memory: Memory) -> dict[str, Any]:
    """As its file has it and as clients are told."""
    said = msgspec.to_builtins(memory)
    known = {key: said[key] for key in KEYS[memory.layer]}
    return known | {key: said[key] for key in OURS if said[key]} | dict(memory.rest)
