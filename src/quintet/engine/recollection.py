"""Recollection: which memories come to mind for an input, with the reasons, and how they are told to the model. Pure.

What came to mind in a thread before stays there unless something clearly fits better: the beginning of the prompt,
which the model's provider keeps, should not change with every input.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from quintet.domain.memory import Layer, Memories, Memory, Recollection

MOST_CORE = 6
MOST_SOFT = 6
SHOWN = 1_000  # characters of one memory in the prompt
_PER_WORD, _MOST_FOR_WORDS, _FOR_TAG, _FOR_BEFORE = 0.15, 0.45, 0.25, 0.3
_WORD = re.compile(r"[\w-]+")
# Words that say nothing of what a text is about.
_EMPTY = re.compile(
    r"the|and|for|with|that|this|from|into|are|was|were|been|have|has|had|not|but|you|your|our|its|all|any|can|could"
    r"|will|would|should|may|might|what|when|where|which|who|why|how|use|uses|using|please|just|also|then|than"
)

CORE_HEAD = "What the person wants you to keep in mind:"
SOFT_HEAD = "Hints from earlier work. They may be out of date; what is said now and the list above count for more:"


def recollected(
    kept: Memories, words: str, scopes: Collection[str], now: datetime, before: Collection[str] = ()
) -> tuple[Recollection, ...]:
    """At most six of each layer, of these scopes. `before` are ids that came to this thread's mind last time."""
    core = [m for m in kept.core if m.scope in scopes and m.usable][:MOST_CORE]
    said = frozenset(_WORD.findall(words.casefold()))
    soft = [_scored(m, said, before) for m in kept.soft if m.scope in scopes and m.usable and not expired(m, now)]
    best = sorted(soft, key=lambda found: (-found.score, found.id))[:MOST_SOFT]
    always = ("in scope", "core memories always count")
    return (
        *(Recollection(m.id, Layer.CORE, 1.0, always) for m in core),
        *sorted(best, key=lambda found: found.id),  # not by score: the same ones are to give the same bytes
    )


def told(kept: Memories, chosen: Iterable[Recollection]) -> str:
    """As the model reads them; nothing where nothing came to mind."""
    found = [m for c in chosen if (m := kept.get(c.id)) is not None]
    parts = []
    for layer, head in ((Layer.CORE, CORE_HEAD), (Layer.SOFT, SOFT_HEAD)):
        lines = [f"- [{m.id}] {_line(m.text)}" for m in found if m.layer is layer]
        if lines:
            parts.append("\n".join([head, *lines]))
    return "\n".join(parts)


def terms(text: str) -> frozenset[str]:
    return frozenset(w for w in _WORD.findall(text.casefold()) if len(w) > 2 and not _EMPTY.fullmatch(w))


def expired(memory: Memory, now: datetime) -> bool:
    """Not seen for longer than it lasts. One whose time cannot be read does not end."""
    try:
        seen = datetime.fromisoformat(memory.last_seen_at)
        return memory.ttl_days > 0 and seen < now - timedelta(days=memory.ttl_days)
    except (ValueError, TypeError, OverflowError):
        return False


def _scored(memory: Memory, said: frozenset[str], before: Collection[str]) -> Recollection:
    """The reasons count words instead of quoting them: they are kept where nothing is forgotten."""
    score, reasons = memory.confidence, ["in scope", f"confidence {memory.confidence:.2f}"]
    shared = len(said & terms(memory.text))
    if shared:
        score += min(shared * _PER_WORD, _MOST_FOR_WORDS)
        reasons.append(f"{shared} word{'' if shared == 1 else 's'} in common with the input")
    if said & {tag.casefold() for tag in memory.tags}:
        score += _FOR_TAG
        reasons.append("a tag is in the input")
    if memory.id in before:
        score += _FOR_BEFORE
        reasons.append("came to mind in this thread before")
    return Recollection(memory.id, Layer.SOFT, round(score, 3), tuple(reasons))


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… [cut: {SHOWN} of {len(text)} characters]"
