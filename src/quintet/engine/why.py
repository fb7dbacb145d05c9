"""Why: what came to a thread's mind, with the texts as they are kept now. One forgotten since has none any more."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from quintet.domain.memory import Memories, Memory, MemoryStatus, Recall, Recollection


class Why(msgspec.Struct, frozen=True):
    at_ms: int
    scopes: tuple[str, ...]
    reasons: tuple[Recollection, ...]
    memories: tuple[Memory, ...]  # those of them that are still kept


def why(recall: Recall, kept: Memories) -> Why:
    found = [m for r in recall.memories if (m := kept.get(r.id)) is not None and _same(m, recall.at_ms)]
    return Why(recall.at_ms, recall.scopes, recall.memories, tuple(found))


def _same(memory: Memory, at_ms: int) -> bool:
    """A number may have been given again since: what is younger is not what came to mind."""
    if memory.status is MemoryStatus.FORGOTTEN:
        return False
    try:
        return datetime.fromisoformat(memory.created_at) <= datetime.fromtimestamp(at_ms / 1000, UTC)
    except (ValueError, TypeError):
        return True
