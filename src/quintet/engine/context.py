"""Context: what the model sees. The thread's visible items, complete in the way model wires demand."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from quintet.domain.item import Damaged, Item, MediaKind, ResultStatus, ToolCall, ToolResult
from quintet.domain.ports import Journal
from quintet.domain.view import View, ViewReason, changed
from quintet.engine.gauge import rough_item, rough_items

PAGE = 500
WORTH_LEAVING_OUT = 200  # characters of a result; below that its note would hardly be shorter


class Context:
    """The items of one thread while a turn runs: read once, then extended by what the turn adds."""

    def __init__(self, view: View, items: Sequence[Item]) -> None:
        self._view = view
        self._items = {item.ordinal: item for item in items}
        self._left_out: frozenset[int] = frozenset()  # ordinals of results the model gets only a note of

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

    @property
    def last(self) -> int:
        return max(self._items, default=0)

    @property
    def first_kept(self) -> int:
        """Where the last compaction or clear began to keep."""
        mark = self._view.mark()
        return mark.first if mark else 0

    def all(self) -> list[Item]:
        """What is not hidden, also what has been summarised, in the order it came."""
        return [item for n, item in sorted(self._items.items()) if not self._view.is_hidden(n)]

    def seen(self) -> list[Item]:
        """What the model reads, as it is stored."""
        return [self._items[n] for n in self._view.model_ordinals(self.last) if n in self._items]

    def for_model(self) -> tuple[Item, ...]:
        return tuple(_answered([_note_of(i) if i.ordinal in self._left_out else i for i in self.seen()]))

    def compacted(self, summary: Item, first_kept: int, also: tuple[int, ...]) -> Context:
        """As it is behind this compaction."""
        ordinal = summary.ordinal
        view = changed(
            self._view, ViewReason.COMPACTION, last=ordinal, first_kept=first_kept, summary=ordinal, also=also
        )
        context = Context(view, ())
        context._items = {**self._items, ordinal: summary}
        context._left_out = self._left_out
        return context

    def trimmed(self, budget: int) -> Context:
        """With notes instead of old results, as many as bring what the model reads to `budget` rough tokens."""
        context = Context(self._view, ())
        context._items = self._items
        context._left_out = self._left_out | left_out(self.for_model(), budget)
        return context

    def become(self, other: Context) -> None:
        self._view, self._items, self._left_out = other._view, other._items, other._left_out


def left_out(items: Sequence[Item], budget: int) -> frozenset[int]:
    """Which results to leave out, oldest first, until the rest is within the budget or nothing is left to take."""
    size, gone = rough_items(items), set()
    for item in items:
        if size <= budget:
            break
        if isinstance(item.body, ToolResult) and (item.body.images or len(item.body.text) > WORTH_LEAVING_OUT):
            size -= rough_item(item.body) - rough_item(_note_of(item).body)
            gone.add(item.ordinal)
    return frozenset(gone)


def _note_of(item: Item) -> Item:
    assert isinstance(item.body, ToolResult)
    noun = "images" if all(part.kind is MediaKind.IMAGE for part in item.body.images) else "images or recordings"
    images = f" and {len(item.body.images)} {noun}" if item.body.images else ""
    note = f"[result of {len(item.body.text):,} characters{images} left out to save room]"
    return replace(item, body=replace(item.body, text=note, images=(), display=(), diff=""))


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
