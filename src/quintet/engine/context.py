"""Context: what the model sees. The thread's visible items, complete in the way model wires demand."""

from __future__ import annotations

from collections.abc import Sequence

from quintet.domain.item import Damaged, Item, ResultStatus, ToolCall, ToolResult
from quintet.domain.ports import Journal
from quintet.domain.view import View

PAGE = 500


class Context:
    """The items of one thread while a turn runs: read once, then extended by what the turn adds."""

    def __init__(self, view: View, items: Sequence[Item]) -> None:
        self._view = view
        self._items = {item.ordinal: item for item in items}

    @classmethod
    async def load(cls, journal: Journal, thread: str, view: View) -> Context:
        items: list[Item] = []
        while page := await journal.items(thread, after=items[-1].ordinal if items else 0, limit=PAGE):
            items.extend(page)
        return cls(view, items)

    def call_ids(self) -> set[str]:
        return {i.body.call_id for i in self._items.values() if isinstance(i.body, ToolCall)}

    def add(self, item: Item) -> None:
        self._items[item.ordinal] = item

    def for_model(self) -> tuple[Item, ...]:
        last = max(self._items, default=0)
        seen = [self._items[n] for n in self._view.model_ordinals(last) if n in self._items]
        return tuple(_answered(seen))


def _answered(items: Sequence[Item]) -> list[Item]:
    """Model wires refuse a call without its result and a result without its call: supply the one, drop the other."""
    results = {i.body.call_id for i in items if isinstance(i.body, ToolResult)}
    calls = {i.body.call_id for i in items if isinstance(i.body, ToolCall) and not i.body.partial}
    out: list[Item] = []
    for item in items:
        if isinstance(item.body, Damaged):
            continue
        if isinstance(item.body, ToolCall | ToolResult) and item.body.call_id not in calls:
            continue  # a call cut off in mid-input never ran and is not valid JSON
        out.append(item)
        if isinstance(item.body, ToolCall) and item.body.call_id not in results:
            out.append(_without_outcome(item, item.body))
    return out


def _without_outcome(item: Item, call: ToolCall) -> Item:
    text = "No result of this call was recorded. It may or may not have taken effect; check before repeating it."
    result = ToolResult(call.call_id, call.name, ResultStatus.UNKNOWN, text)
    return Item(item.id, item.thread, item.turn, item.ordinal, item.at_ms, result)
