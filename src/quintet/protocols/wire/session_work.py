"""The files of one session brought up to date from the journal, each in its own way; and those of its subagents.

Whoever works on them holds their lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec import Struct

from quintet.domain.errors import NotFound
from quintet.domain.event import ThreadCreated, ViewChanged
from quintet.domain.ports import Journal, MirrorFiles
from quintet.domain.thread import Thread
from quintet.engine.mirrors import MirrorFile, Standing, Told
from quintet.engine.threads import Threads
from quintet.protocols.wire import context_file, mirror, shared_files
from quintet.protocols.wire.events import Options
from quintet.protocols.wire.place import KIND


class Desk(Struct, frozen=True):
    """What it is done with."""

    journal: Journal
    threads: Threads
    files: MirrorFiles
    options: Options
    shown: dict[str, Callable[[], dict[str, bool]]]  # by directory: how freely a client of this process acts there


class Work:
    def __init__(self, desk: Desk, directory: str, thread: Thread) -> None:
        self._desk = desk
        self._journal, self._files = desk.journal, desk.files
        self._directory = directory
        self.thread = thread
        self._happened: dict[int, mirror.Happened] = {}
        self.told = False  # something of what happened

    def file(self, name: str) -> MirrorFile:
        return MirrorFile(self._journal, self._files, KIND, self._path(name), self.thread.id)

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    async def adopt(self, name: str) -> None:
        """As it stands now it tells everything; a missing one is no file yet."""
        file = self.file(name)
        if (there := await self._files.read(file.path)) is not None:
            last = (await mirror.happened(self._journal, self.thread, (await file.row()).through_seq)).through
            await file.adopt(last, there)

    async def _since(self, after: int) -> mirror.Happened:
        if after not in self._happened:
            self._happened[after] = await mirror.happened(self._journal, self.thread, after)
        return self._happened[after]

    async def wire(self) -> Standing:
        async def tell(after: int, before: bytes) -> list[Told]:
            told = await mirror.told(self._journal, self.thread, self._desk.options, await self._since(after), before)
            self.told = self.told or bool(told.data)
            return [told]

        return await self.file("wire.jsonl").bring_up(tell)

    async def context(self) -> Standing:
        async def tell(after: int, before: bytes) -> list[Told]:
            since = await self._since(after)
            changed = any(isinstance(event.payload, ViewChanged) for event in since.events)
            items = await self._desk.threads.items(self.thread.id) if changed else []
            return context_file.told(self.thread, self._desk.options.names, since, before, items)

        return await self.file("context.jsonl").bring_up(tell)

    async def state(self) -> None:
        path = self._path("state.json")
        if await self._files.read(self._path("context.jsonl")) is None:
            return  # nothing has happened yet
        there = shared_files.parsed(await self._files.read(path), path)
        known = await self._journal.grants(root=self.thread.root)
        grants = [g for g in known if g.thread == self.thread.root and not g.denies]
        events = [event for since in self._happened.values() for event in since.events]
        made = shared_files.state(there, self.thread, grants, sorted(events, key=lambda e: e.seq))
        if (shown := self._desk.shown.get(self._directory)) is not None:
            made["approval"] |= shown()
        if made != there:
            await self._files.write(path, shared_files.encoded(made))

    # --- subagents -----------------------------------------------------------------------------------------------
    async def subagents(self) -> None:
        """Of those that have done something since."""
        seen = {e.thread for since in self._happened.values() for e in since.events} - {self.thread.id, ""}
        for below in sorted(seen):
            try:
                work = self._below(await self._journal.thread(below))
            except NotFound:
                continue  # deleted meanwhile
            if await work.context() is Standing.OURS and await work.wire() is Standing.OURS:
                await work.meta()

    async def remove_subagents(self) -> None:
        for thread in await self._journal.tree(self.thread.root):
            if thread.id != self.thread.id:
                work = self._below(thread)
                await work.file("context.jsonl").remove()
                if await self._files.read(work._path("context.jsonl")) is None:
                    await self._files.remove(work._path("meta.json"))
                await self._files.remove_empty(work._directory)
        await self._files.remove_empty(self._path("subagents"))

    def _below(self, thread: Thread) -> Work:
        work = Work(self._desk, os.path.join(self._directory, "subagents", thread.id), thread)
        for since in self._happened.values():
            if any(isinstance(e.payload, ThreadCreated) and e.thread == thread.id for e in since.events):
                work._happened[0] = since  # all it has ever done is among these
        return work

    async def meta(self) -> None:
        path = self._path("meta.json")
        turns = await self._journal.turns(self.thread.id)
        made = shared_files.meta(self.thread, turns[-1].state if turns else None)
        if made != shared_files.parsed(await self._files.read(path), path):
            await self._files.write(path, shared_files.encoded(made))
