"""Storable: text from models and tools as a store can hold it. Half a character, as a cut stream has it, is none."""

from __future__ import annotations

import msgspec

from quintet.domain.tool import ToolOutcome


def storable(text: str) -> str:
    """The same text, halves of characters put together where they lie side by side and replaced where they do not."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def storable_outcome(outcome: ToolOutcome) -> ToolOutcome:
    """A tool's outcome without what no store can hold; what is only for display goes before the result does."""
    whole = ToolOutcome(
        storable(outcome.text),
        outcome.status,
        storable(outcome.message),
        outcome.display,
        tuple(storable(path) for path in outcome.changed_files),
        storable(outcome.diff),
        outcome.images,
        outcome.limit,
        outcome.facts,
    )
    try:
        msgspec.json.encode(whole.display)
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
        return msgspec.structs.replace(whole, display=())
    return whole
