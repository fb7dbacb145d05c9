"""A memory's record: made, numbered, put among the others, and emptied so that nothing is left of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace

from quintet.domain.errors import Invalid
from quintet.domain.memory import (
    FORGOTTEN_TEXT,
    GLOBAL,
    WORKSPACE,
    Layer,
    Memories,
    Memory,
    MemoryStatus,
    Source,
    workspace_scope,
)

LONGEST = 4_000  # characters of a text
MOST_TAGS = 10
CONFIDENCE = 0.65  # of a hint that a person gave


def record(text: str, layer: Layer, scope: str, tags: tuple[str, ...], source: Source, now: str) -> Memory:
    """Without a number yet; on one line, since that is what its file and the prompt have room for."""
    text = " ".join(text.split())
    if not text:
        raise Invalid("Memory text cannot be empty", next_step="Say what is to be remembered.")
    if len(text) > LONGEST:
        raise Invalid(f"Memory text has {len(text)} characters; {LONGEST} are the most.")
    confidence = 1.0 if layer is Layer.CORE else CONFIDENCE
    return Memory(
        "", layer, text, scope, tags, source, confidence=confidence, created_at=now, updated_at=now, last_seen_at=now
    )


def without(kept: Memories, id: str, now: str) -> Memories:
    soft = tuple(_emptied(m, now) if m.id == id else m for m in kept.soft)
    return Memories(tuple(m for m in kept.core if m.id != id), soft)


def _emptied(memory: Memory, now: str) -> Memory:
    """Everything that says what it was is gone, what other programs noted of it as well."""
    return Memory(
        memory.id,
        memory.layer,
        FORGOTTEN_TEXT,
        memory.scope,
        source=memory.source,
        status=MemoryStatus.FORGOTTEN,
        confidence=0.0,
        created_at=memory.created_at,
        updated_at=now,
        last_seen_at=memory.last_seen_at,
        ttl_days=memory.ttl_days,
    )


def with_memory(kept: Memories, memory: Memory) -> Memories:
    if memory.layer is Layer.CORE:
        return replace(kept, core=(*kept.core, memory))
    return replace(kept, soft=(*kept.soft, memory))


def next_id(layer: Layer, kept: Memories) -> str:
    rows = kept.core if layer is Layer.CORE else kept.soft
    numbers = [int(found[1]) for m in rows if (found := re.fullmatch(rf"{layer.value}_(\d{{1,9}})", m.id))]
    return f"{layer.value}_{max(numbers, default=0) + 1:03d}"


def whole_scope(scope: str, workspace: str) -> str:
    scope = scope.strip() or GLOBAL
    if scope == WORKSPACE:
        if not workspace:
            raise Invalid("There is no workspace here for the scope `workspace`.", next_step="Name it: workspace:/path")
        return workspace_scope(workspace)
    return scope


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    words = (word for tag in tags for word in re.split(r"[,\s]+", tag) if word)
    return tuple(dict.fromkeys(words))[:MOST_TAGS]


def reference(memory: Memory) -> dict[str, str]:
    """For the store's record, which nothing is ever taken out of: neither the text nor the tags."""
    return {"id": memory.id, "layer": memory.layer.value, "scope": memory.scope}
