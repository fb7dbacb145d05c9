"""Recalling: a turn's dealings with memory. Before it, what comes to mind; after it, what is worth keeping.

A memory that fails or hangs is said to be missing, and the turn goes on. Only turns that somebody talks to have one:
no subagent, no compaction, no question beside the thread, nothing headless.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from quintet.domain.event import MemoryRecalled, TurnFinished
from quintet.domain.item import Item, TextPart
from quintet.domain.memory import Recall
from quintet.domain.turn import TurnState
from quintet.engine.feed import Feed
from quintet.engine.running import RunningTurn

if TYPE_CHECKING:
    from quintet.engine.memory import Mind

WITHIN_S = 5.0
NOT_RECALLED = "what you remember: it could not be read this time"
PAGE = 500


class Remembered(msgspec.Struct, frozen=True):
    text: str = ""
    problem: str = ""  # for the model, where there should have been something


class Recalling:
    def __init__(
        self,
        feed: Feed,
        minds: Callable[[str], Mind],
        roots: Callable[[str], tuple[str, ...]],
        note: Callable[[str], None],
    ) -> None:
        """`minds` gives a profile's, `roots` the workspaces that a directory counts as; `note` is the log's."""
        self._feed = feed
        self._minds = minds
        self._roots = roots
        self._note = note

    async def before(self, running: RunningTurn) -> Remembered:
        if not _talks(running):
            return Remembered()
        try:
            async with asyncio.timeout(WITHIN_S):
                recalled = await self._recall(running)
        except Exception as error:
            self._note(f"The memory could not be read: {str(error) or type(error).__name__}")
            return Remembered(problem=NOT_RECALLED)
        if recalled is None:
            return Remembered()
        recall, text = recalled
        await self._feed.say(running.lease, MemoryRecalled(recall))
        return Remembered(text)

    async def _recall(self, running: RunningTurn) -> tuple[Recall, str] | None:
        mind = self._minds(running.thread.profile)
        if not (await mind.switch()).enabled:
            return None
        words = " ".join(part.text for part in running.turn.parts if isinstance(part, TextPart))
        roots = await asyncio.to_thread(self._roots, running.thread.settings.cwd)
        return await mind.recall(words, roots, running.thread.recalled)

    async def after(self, running: RunningTurn, finished: TurnFinished) -> None:
        """Quietly, and only of a turn that was done: its end is told already."""
        if finished.state is not TurnState.DONE or not _talks(running):
            return
        try:
            async with asyncio.timeout(WITHIN_S):
                mind = self._minds(running.thread.profile)
                switch = await mind.switch()
                if switch.enabled and switch.auto_summary:
                    from quintet.engine.inference import messages_of

                    messages = messages_of(await self._items(running))
                    roots = await asyncio.to_thread(self._roots, running.thread.settings.cwd)
                    await mind.summarise(messages, roots[0])
        except Exception as error:
            self._note(f"Nothing was remembered of a turn: {str(error) or type(error).__name__}")

    async def _items(self, running: RunningTurn) -> list[Item]:
        found: list[Item] = []
        after = max(running.thread.last_ordinal - 1, 0)  # the input was the last when the turn was claimed
        while page := await self._feed.journal.items(running.thread.id, after=after, limit=PAGE):
            found += [item for item in page if item.turn == running.turn.id]
            after = page[-1].ordinal
        return found


def _talks(running: RunningTurn) -> bool:
    works = running.compact is None and not running.turn.aside
    return running.starter.remembers and running.above is None and works
