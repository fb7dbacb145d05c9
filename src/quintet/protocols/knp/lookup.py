"""Lookup: what a frame says beyond its event: names, the call behind a result, the message behind a run.

All of it never changes once it is there, so what is found is kept for a while, and a replay finds the same. Asks the
journal, decides nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from quintet.domain.errors import NotFound, StorageDamaged
from quintet.domain.event import Event, InteractionRequested, InteractionResolved, ItemAdded
from quintet.domain.interaction import Interaction
from quintet.domain.item import Item, ToolCall, ToolResult
from quintet.domain.ports import Journal
from quintet.domain.project import Project
from quintet.protocols.knp.namespaces import Namespaces

KEPT = 10_000
PAGE = 200
V = TypeVar("V")


class Known:
    """What one event needs, looked up."""

    __slots__ = ("call", "forked_from", "interaction", "namespace", "parent")

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.parent = 0  # seq of the message that began the run
        self.forked_from = ""  # the thread that a copied item is from
        self.call: Item | None = None
        self.interaction: Interaction | None = None


class Lookup:
    def __init__(self, journal: Journal, namespaces: Namespaces) -> None:
        self._journal = journal
        self._namespaces = namespaces
        self._spaces: dict[str, str] = {}  # by thread
        self._parents: dict[str, int] = {}  # by turn
        self._calls: dict[tuple[str, str], Item] = {}  # by thread and call

    def namespace(self, thread: str) -> str | None:
        """Where it is known already: deltas come by the thousand."""
        return self._spaces.get(thread)

    async def of(self, event: Event) -> Known:
        known = Known(await self.namespace_of(event.thread))
        said = event.payload
        if isinstance(said, ItemAdded):
            item = said.item
            known.parent = await self.parent(item.turn)
            if item.origin and not event.turn:
                fork = await _or_none(self._journal.thread, event.thread)
                known.forked_from = fork.forked_from if fork is not None else ""
            if isinstance(item.body, ToolCall):
                _keep(self._calls, (item.thread, item.body.call_id), item)
            elif isinstance(item.body, ToolResult):
                known.call = await self.call(item.thread, item.body.call_id, item.ordinal)
        elif isinstance(said, InteractionRequested):
            known.interaction = said.interaction
            known.call = await self.call(event.thread, said.interaction.call_id)
        elif isinstance(said, InteractionResolved):
            known.interaction = await _or_none(self._journal.interaction, said.interaction)
        return known

    async def namespace_of(self, thread: str) -> str:
        found = self._spaces.get(thread)
        if found is None:
            found = await self._namespaces.name_of(await self._journal.project_of(thread)) if thread else ""
            _keep(self._spaces, thread, found)
        return found

    async def project_name(self, project: Project) -> str:
        return await self._namespaces.name_of(project.id) or project.name

    async def parent(self, turn: str) -> int:
        if not turn:
            return 0
        found = self._parents.get(turn)
        if found is None:
            known = await _or_none(self._journal.turn, turn)
            found = known.input if known is not None else 0
            if found:  # else it was not begun yet, or nothing was said to begin it
                _keep(self._parents, turn, found)
        return found

    async def call(self, thread: str, call_id: str, before: int = 0) -> Item | None:
        """The item of a call, from the newest (or the one before) backwards."""
        if not call_id:
            return None
        found = self._calls.get((thread, call_id))
        if found is None:
            found = await self._read_call(thread, call_id, before)
            if found is not None:
                _keep(self._calls, (thread, call_id), found)
        return found

    async def _read_call(self, thread: str, call_id: str, before: int) -> Item | None:
        try:
            if not before:
                newest = await self._journal.items(thread, limit=1, newest=True)
                before = newest[-1].ordinal + 1 if newest else 0
            while before > 1:
                after = max(before - 1 - PAGE, 0)
                page = await self._journal.items(thread, after=after, limit=before - 1 - after)
                for item in reversed(page):
                    if isinstance(item.body, ToolCall) and item.body.call_id == call_id:
                        return item
                before = after + 1
        except NotFound:
            pass  # the thread was deleted meanwhile
        return None


async def _or_none(find: Callable[[str], Awaitable[V]], name: str) -> V | None:
    try:
        return await find(name)
    except (NotFound, StorageDamaged):
        return None


K = TypeVar("K")


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    if len(kept) >= KEPT:
        del kept[next(iter(kept))]
    kept[key] = value
