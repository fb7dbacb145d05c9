"""Proposals: what a model wants kept in mind. Marked with what the thread had read, and used only once approved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quintet.domain.item import ToolResult
from quintet.domain.memory import Memory, Source
from quintet.domain.ports import Journal
from quintet.engine.memory import Mind

PAGE = 500


class MemoryProposals:
    """Plays domain.ports.Proposals."""

    def __init__(self, journal: Journal, minds: Callable[[str], Mind], roots: Callable[[str], tuple[str, ...]]) -> None:
        self._journal = journal
        self._minds = minds
        self._roots = roots

    async def propose(self, thread: str, text: str, scope: str) -> Memory:
        here = await self._journal.thread(thread)
        root = (await asyncio.to_thread(self._roots, here.settings.cwd))[0]
        return await self._minds(here.profile).add(
            text, scope=scope, source=Source.AGENT, workspace=root, thread=thread, seen=await self._seen(thread)
        )

    async def _seen(self, thread: str) -> list[str]:
        """The tools whose results are in the thread: whatever they brought may have suggested it."""
        names, after = set[str](), 0
        while page := await self._journal.items(thread, after=after, limit=PAGE):
            names |= {item.body.name for item in page if isinstance(item.body, ToolResult)}
            after = page[-1].ordinal
        return sorted(names)
