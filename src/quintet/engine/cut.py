"""Cut: which of a thread's items a compaction summarises and which stay whole. Pure.

What one model call said and the results of its calls belong together; a cut never goes through that.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quintet.domain.item import AssistantMessage, Item, Reasoning, Summary, ToolCall, ToolResult, UserMessage
from quintet.engine.gauge import rough_item

_SPOKEN = (AssistantMessage, Reasoning, ToolCall)


class Cut(msgspec.Struct, frozen=True):
    older: tuple[Item, ...]  # to be summarised, an earlier summary among them
    first_kept: int  # ordinal
    also: tuple[int, ...] = ()  # ordinals of older items that stay whole


def cut(items: Sequence[Item], keep: int, *, first: int = 0, turn: str = "", resting: bool = False) -> Cut | None:
    """Keep the newest items, about `keep` rough tokens of them. None when there is nothing before them to summarise.

    `items` are what the model sees now, `first` is where the last compaction began to keep. What the person said in
    the turn that runs stays whole, and so does the newest answer with its results, which the model has not read yet;
    in a resting thread (`resting`) nothing has to.
    """
    places = [p for p in _places(items) if items[p].ordinal >= first]
    ends = [*places, len(items)] if resting or not places else [p for p in places if p <= _newest_answer(items, places)]
    chosen, size, fits = ends[-1], 0, len(items)
    for place in reversed(ends):
        size += sum(rough_item(i.body) for i in items[place:fits])
        fits = place
        if size > keep:
            break
        chosen = place
    older = tuple(items[:chosen])
    also = tuple(i.ordinal for i in older if isinstance(i.body, UserMessage) and turn and i.turn == turn)
    if all(isinstance(i.body, Summary) or i.ordinal in also for i in older):
        return None
    return Cut(older, items[chosen].ordinal if chosen < len(items) else items[-1].ordinal + 1, also)


def _places(items: Sequence[Item]) -> list[int]:
    """Where a cut may go: before a message of the person or before all that one model call said, with no call open."""
    answers = {i.body.call_id: p for p, i in enumerate(items) if isinstance(i.body, ToolResult)}
    places, open_until = [], -1
    for place, item in enumerate(items):
        begins = isinstance(item.body, UserMessage) or (
            isinstance(item.body, _SPOKEN) and not (place and isinstance(items[place - 1].body, _SPOKEN))
        )
        if begins and place > open_until:
            places.append(place)
        if isinstance(item.body, ToolCall):
            open_until = max(open_until, answers.get(item.body.call_id, -1))
    return places


def _newest_answer(items: Sequence[Item], places: Sequence[int]) -> int:
    spoken = [p for p in places if isinstance(items[p].body, _SPOKEN) and items[p].turn == items[-1].turn]
    return spoken[-1] if spoken else places[-1]
