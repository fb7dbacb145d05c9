"""A thread's history in pages: its items as published events, each call with the state it has come to."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from quintet.domain.errors import Invalid
from quintet.domain.item import AssistantMessage, Damaged, Item, Reasoning, Summary, ToolCall, ToolResult, UserMessage
from quintet.domain.thread import Thread
from quintet.protocols.knp import models as knp
from quintet.protocols.knp.house import House
from quintet.protocols.knp.kinds import chosen
from quintet.protocols.knp.wording import call_state, history_event

USUAL, MOST = 100, 1000
PAGE = 500
FURTHEST = 1 << 30  # no thread has that many
_KINDS = frozenset(knp.HISTORY_KINDS)
_KIND_OF = {
    UserMessage: "message",
    AssistantMessage: "message",
    Summary: "message",
    Damaged: "message",
    Reasoning: "reasoning",
    ToolCall: "tool.call",
    ToolResult: "tool.result",
}


class Page(msgspec.Struct, frozen=True):
    """What part of a history is wanted."""

    after: int = 0  # thread-local seqs above this one
    limit: int = USUAL
    newest_first: bool = True
    kinds: frozenset[str] = frozenset()


def page_of(*, after: int = 0, limit: int = USUAL, order: str = "desc", kinds: str = "") -> Page:
    if after < 0:
        raise Invalid("`after` is a seq, and those begin at 1.")
    if limit < 1:
        raise Invalid("`limit` is at least 1.")
    if order not in ("asc", "desc"):
        raise Invalid("`order` is asc or desc.")
    return Page(min(after, FURTHEST), min(limit, MOST), order == "desc", chosen(kinds, _KINDS))


async def read(house: House, thread: Thread, page: Page) -> knp.HistoryPage:
    found: list[Item] = []
    async for item in _backwards(house, thread, page) if page.newest_first else _forwards(house, thread, page):
        if not page.kinds or _KIND_OF[type(item.body)] in page.kinds:
            found.append(item)
            if len(found) > page.limit:
                break
    kept = found[: page.limit]
    states = await _states(house, thread, kept)
    events = [
        history_event(
            item,
            parent=await house.lookup.parent(item.turn),
            state=states.get(item.ordinal, ""),
            hidden=thread.view.is_hidden(item.ordinal),
            forked_from=thread.forked_from,
        )
        for item in kept
    ]
    return knp.HistoryPage(events, len(found) > page.limit)


async def _forwards(house: House, thread: Thread, page: Page) -> AsyncIterator[Item]:
    after = page.after
    while items := await house.journal.items(thread.id, after=after, limit=PAGE):
        for item in items:
            yield item
        after = items[-1].ordinal


async def _backwards(house: House, thread: Thread, page: Page) -> AsyncIterator[Item]:
    before = (await house.journal.thread(thread.id)).last_ordinal + 1
    while before - 1 > page.after:
        after = max(before - 1 - PAGE, page.after)
        for item in reversed(await house.journal.items(thread.id, after=after, limit=before - 1 - after)):
            if item.ordinal < before:
                yield item
        before = after + 1


async def _states(house: House, thread: Thread, items: list[Item]) -> dict[int, str]:
    """What became of each call. A result stands behind its call, in the same run; mostly a few places further on."""
    results = {i.body.call_id: i.body for i in items if isinstance(i.body, ToolResult)}
    states: dict[int, str] = {}
    for item in items:
        if isinstance(item.body, ToolCall):
            if item.body.call_id not in results:
                await _look_ahead(house, thread, item, item.body.call_id, results)
            states[item.ordinal] = call_state(results.get(item.body.call_id))
    return states


async def _look_ahead(house: House, thread: Thread, call: Item, call_id: str, results: dict[str, ToolResult]) -> None:
    after = call.ordinal
    while following := await house.journal.items(thread.id, after=after, limit=PAGE):
        for item in following:
            if isinstance(item.body, ToolResult):
                results.setdefault(item.body.call_id, item.body)
            if item.turn != call.turn or (isinstance(item.body, ToolResult) and item.body.call_id == call_id):
                return
        after = following[-1].ordinal
