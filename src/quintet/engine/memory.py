"""Memory: what one profile's assistant remembers: add, forget, promote, approve, and what comes to mind for an input.

Off until the person turns it on. Knows the store by its port and no file; texts never go to the journal from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from quintet.domain.errors import Invalid, NotFound
from quintet.domain.item import Item
from quintet.domain.memory import (
    GLOBAL,
    Layer,
    Memories,
    Memory,
    MemoryChange,
    MemoryPaths,
    MemoryStatus,
    MemorySwitch,
    Recall,
    Source,
    workspace_scope,
)
from quintet.domain.ports import Clock, Journal, MemoryStore, SettingsStore
from quintet.domain.thread import ThreadQuery
from quintet.engine.memory_records import clean_tags, next_id, record, reference, whole_scope, with_memory, without
from quintet.engine.why import Why, why

WHY_AMONG = 50  # threads, newest first, that are looked through for the last one
INFERRED = 0.55


class Mind:
    def __init__(
        self,
        store: MemoryStore,
        settings: SettingsStore,
        clock: Clock,
        mask: Callable[[str], str],
        usual: MemorySwitch | None = None,
    ) -> None:
        """`usual` holds where the profile's own settings say nothing; `mask` takes known secrets out of a text."""
        self._store = store
        self._settings = settings
        self._clock = clock
        self._mask = mask
        self._usual = usual or MemorySwitch()
        self.last: Recall | None = None  # what came to mind last in this process

    # --- the switch ------------------------------------------------------------------------------------------------
    @property
    def paths(self) -> MemoryPaths:
        return self._store.paths

    async def switch(self) -> MemorySwitch:
        said = (await self._settings.read()).get("memory")
        said = said if isinstance(said, dict) else {}
        named = {"enabled": self._usual.enabled, "auto_summary": self._usual.auto_summary}
        return MemorySwitch(**{k: said[k] if isinstance(said.get(k), bool) else v for k, v in named.items()})

    async def enable(self, *, on: bool) -> None:
        await self._turn("enabled", on=on)
        if on:
            await self._store.make()
        await self._note("enable" if on else "disable")

    async def auto_summary(self, *, on: bool) -> None:
        await self._turn("auto_summary", on=on)
        await self._note("auto_summary_enable" if on else "auto_summary_disable")

    async def _turn(self, key: str, *, on: bool) -> None:
        def turned(settings: dict[str, Any]) -> dict[str, Any]:
            said = settings.get("memory")
            return settings | {"memory": (said if isinstance(said, dict) else {}) | {key: on}}

        await self._settings.change(turned)

    async def _note(self, what: str) -> None:
        await self._store.change(lambda kept: MemoryChange(kept, (self._said(what),)))

    # --- what is kept ----------------------------------------------------------------------------------------------
    async def all(self) -> Memories:
        return await self._store.read()

    async def add(
        self,
        text: str,
        layer: Layer = Layer.SOFT,
        *,
        scope: str = GLOBAL,
        tags: Iterable[str] = (),
        source: Source | None = None,
        workspace: str = "",
        thread: str = "",
        seen: Sequence[str] = (),
    ) -> Memory:
        """`workspace` is what the scope "workspace" means here. What is not from the person waits for approval."""
        usual = Source.EXPLICIT if layer is Layer.CORE else Source.MANUAL
        made = self._new(text, layer, whole_scope(scope, workspace), clean_tags(tags), source or usual)
        if made.source == Source.AGENT:
            made = replace(made, status=MemoryStatus.PROPOSED, thread=thread, seen=tuple(seen))
        (kept,) = await self._add([made])
        return kept

    async def _add(self, made: Sequence[Memory]) -> list[Memory]:
        numbered: list[Memory] = []

        def added(kept: Memories) -> MemoryChange:
            numbered.clear()
            for memory in made:
                now = replace(memory, id=next_id(memory.layer, kept))
                kept = with_memory(kept, now)
                numbered.append(now)
            return MemoryChange(kept, tuple(self._said("add", **reference(m)) for m in numbered))

        await self._store.change(added)
        return numbered

    async def forget(self, id: str) -> bool:
        """A core memory goes; of a soft one its number stays, so that it is not given again. Whether there was one."""
        found: list[Memory] = []

        def forgotten(kept: Memories) -> MemoryChange:
            found[:] = [m for m in (*kept.core, *kept.soft) if m.id == id and m.status is not MemoryStatus.FORGOTTEN]
            record = tuple(self._said("forget", id=id, layer=m.layer.value) for m in found)
            return MemoryChange(without(kept, id, self._now()) if found else kept, record)

        await self._store.change(forgotten)
        return bool(found)

    async def promote(self, id: str) -> Memory:
        """A hint becomes something to keep in mind."""
        made: list[Memory] = []

        def promoted(kept: Memories) -> MemoryChange:
            soft = next((m for m in kept.soft if m.id == id and m.usable), None)
            if soft is None:
                raise Invalid(f"Unknown active soft memory: {id}", next_step="List them with `quintet memory list`.")
            core = replace(
                self._new(soft.text, Layer.CORE, soft.scope, soft.tags, Source.PROMOTED),
                id=next_id(Layer.CORE, kept),
                rest=soft.rest,
            )
            made[:] = [core]
            record = (
                self._said("add", **reference(core)),
                self._said("forget", id=id, layer=Layer.SOFT.value),
                self._said("promote", from_id=id, to_id=core.id),
            )
            return MemoryChange(with_memory(without(kept, id, self._now()), core), record)

        await self._store.change(promoted)
        return made[0]

    async def approve(self, id: str) -> Memory:
        """The person agrees to what was proposed."""
        made: list[Memory] = []

        def approved(kept: Memories) -> MemoryChange:
            found = next((m for m in kept.soft if m.id == id and m.status is MemoryStatus.PROPOSED), None)
            if found is None:
                raise NotFound(
                    f"No memory {id} waits for approval.", next_step="List them with `quintet memory list --all`."
                )
            made[:] = [replace(found, status=MemoryStatus.ACTIVE, updated_at=self._now(), last_seen_at=self._now())]
            soft = tuple(made[0] if m.id == id else m for m in kept.soft)
            return MemoryChange(replace(kept, soft=soft), (self._said("approve", id=id),))

        await self._store.change(approved)
        return made[0]

    async def summarise(self, messages: Sequence[str], workspace: str) -> list[Memory]:
        """Hints from what the person said; what is remembered already is left out."""
        from quintet.engine.inference import candidates  # its patterns are made only where they are used

        if not candidates(messages):
            return []
        kept = await self.all()
        found = candidates(messages, [m.text for m in (*kept.core, *kept.soft)])
        scope = workspace_scope(workspace)
        made = [replace(self._new(t, Layer.SOFT, scope, (), Source.INFERRED), confidence=INFERRED) for t in found]
        return await self._add(made) if made else []

    async def summarise_thread(self, journal: Journal, thread: str, workspace: str) -> list[Memory]:
        """The same over everything the person said in a thread. What a subagent was told, a model said."""
        from quintet.engine.inference import messages_of

        if (await journal.thread(thread)).parent:
            return []
        items: list[Item] = []
        while page := await journal.items(thread, after=items[-1].ordinal if items else 0):
            items += page
        return await self.summarise(messages_of(items), workspace)

    # --- what comes to mind ------------------------------------------------------------------------------------------
    async def recall(self, words: str, roots: Iterable[str], before: Recall | None = None) -> tuple[Recall, str]:
        """What comes to mind for these words in these workspaces, and how the model is told of it."""
        from quintet.engine.recollection import recollected, told

        kept = await self.all()
        scopes = (GLOBAL, *dict.fromkeys(map(workspace_scope, roots)))
        earlier = {m.id for m in before.memories} if before else set[str]()
        chosen = recollected(kept, words, scopes, self._time(), earlier)
        new = {m.id for m in chosen if m.layer is Layer.SOFT} - earlier
        if new:
            await self._seen(new)
        self.last = Recall(self._clock.now_ms(), scopes, chosen)
        return self.last, told(kept, chosen)

    async def why(self, journal: Journal, thread: str = "") -> Why | None:
        """Of a thread's last turn; without a thread the last anywhere: in this process, else in the newest thread."""
        recall = (await journal.thread(thread)).recalled if thread else self.last
        if recall is None and not thread:
            newest = await journal.threads(ThreadQuery(limit=WHY_AMONG))
            recall = max((t.recalled for t in newest if t.recalled), key=lambda r: r.at_ms, default=None)
        return None if recall is None else why(recall, await self.all())

    async def _seen(self, ids: set[str]) -> None:
        """Once a thread: what is of use does not end. Where that cannot be written down it is still of use."""
        now = self._now()

        def seen(kept: Memories) -> MemoryChange:
            soft = (replace(m, hits=m.hits + 1, last_seen_at=now) if m.id in ids and m.usable else m for m in kept.soft)
            return MemoryChange(replace(kept, soft=tuple(soft)))

        with suppress(OSError):
            await self._store.change(seen)

    def _new(self, text: str, layer: Layer, scope: str, tags: tuple[str, ...], source: Source) -> Memory:
        return record(self._mask(text), layer, scope, tags, source, self._now())

    def _said(self, what: str, **more: str) -> dict[str, str]:
        """A line of the store's own record."""
        return {"type": what, "timestamp": self._now(), **more}

    def _time(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)

    def _now(self) -> str:
        return self._time().isoformat(timespec="milliseconds").replace("+00:00", "Z")
