"""The files of a session: where they lie, told from the journal, and taken over where others have written them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable

import msgspec

from quintet.domain.errors import QuintetError
from quintet.domain.event import ViewChanged
from quintet.domain.ports import Journal, MirrorFiles
from quintet.domain.thread import Handle, Thread, ThreadSettings
from quintet.engine.mirrors import MirrorFile, Standing, Told
from quintet.engine.threads import Threads
from quintet.protocols.wire import context_file, mirror, shared_files
from quintet.protocols.wire.events import Options
from quintet.protocols.wire.session_import import bodies

KIND = "wire"
_NAME = re.compile(r"[A-Za-z0-9][\w.@+-]{0,199}", re.ASCII)  # of a directory, and of nothing above it


class Place(msgspec.Struct, frozen=True):
    share_dir: str
    work_dir: str
    session: str

    @property
    def directory(self) -> str:
        digest = hashlib.md5(self.work_dir.encode(), usedforsecurity=False).hexdigest()
        return os.path.join(self.share_dir, "sessions", digest, self.session)

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def handle(self) -> Handle:
        return Handle(KIND, f"{self.share_dir}\n{self.work_dir}", self.session)


def place_of(handle: Handle) -> Place | None:
    """None for a name that cannot be a directory's: its thread has no files."""
    share_dir, _, work_dir = handle.scope.partition("\n")
    return Place(share_dir, work_dir, handle.external_id) if _NAME.fullmatch(handle.external_id) else None


class SessionFiles:
    def __init__(
        self,
        journal: Journal,
        threads: Threads,
        files: MirrorFiles,
        options: Options,
        note: Callable[[str], None],
    ) -> None:
        self._journal = journal
        self._threads = threads
        self._files = files
        self._options = options
        self._note = note

    async def bring_up(self, handle: Handle) -> None:
        if (place := place_of(handle)) is None:
            return
        async with self._files.hold(place.directory):
            work = _Work(self, place, await self._journal.thread(handle.thread))
            standing = await work.context()
            if standing is not Standing.OURS:
                self._note(f"{place.path('context.jsonl')} was written by somebody else and is left as it is.")
            elif await work.wire() is not Standing.OURS:
                self._note(f"{place.path('wire.jsonl')} was written by somebody else and is left as it is.")
            await work.state()
        if work.told:
            await self._used(place)

    async def remove(self, handle: Handle) -> None:
        if (place := place_of(handle)) is None:
            return
        async with self._files.hold(place.directory):
            work = _Work(self, place, await self._journal.thread(handle.thread))
            await work.file("context.jsonl").remove()
            if await self._files.read(place.path("context.jsonl")) is None:
                await self._files.remove(place.path("state.json"))
            await self._files.remove_empty(place.directory)

    async def open(self, place: Place, settings: ThreadSettings) -> Thread:
        """The thread of that name, as its files say where others have written them; a new one if there is none."""
        handle = place.handle()
        if place_of(handle) is None:
            return (await self._threads.open(handle, settings)).thread
        try:
            async with self._files.hold(place.directory):
                return await self._open(place, settings)
        except (OSError, TimeoutError) as error:
            self._note(f"The files of session {place.session} were not looked at: {error!r:.300}")
            return (await self._threads.open(handle, settings)).thread

    async def _open(self, place: Place, settings: ThreadSettings) -> Thread:
        known = await self._journal.find_handle(*_name(place.handle()))
        if known is None or known.deleted_ms:
            return await self._import(place, settings, takes_name=False)
        thread = (await self._threads.get(known.thread)).thread
        work = _Work(self, place, thread)
        standing = await work.context()
        if standing is Standing.EXTENDED and await self._extend(work):
            standing = Standing.OURS
        if standing is Standing.CHANGED or standing is Standing.EXTENDED:
            return await self._import(place, thread.settings, takes_name=True)
        if await work.wire() is not Standing.OURS:  # it tells people, not the model: what follows is put behind it
            await work.adopt("wire.jsonl")
        await work.state()
        return thread

    async def _extend(self, work: _Work) -> bool:
        file = work.file("context.jsonl")
        row, there = await file.row(), await self._files.read(file.path) or b""
        if (await mirror.happened(self._journal, work.thread, row.through_seq)).events:
            return False  # both have gone on: these are two conversations now
        try:
            await self._threads.extend(work.thread.id, bodies(there[row.size :]))
        except QuintetError as error:
            self._note(f"{file.path} was not taken over: {error.line()}")
            return False
        await work.adopt("context.jsonl")
        return True

    async def _import(self, place: Place, settings: ThreadSettings, *, takes_name: bool) -> Thread:
        there = await self._files.read(place.path("context.jsonl"))
        try:
            found = bodies(there or b"")
        except QuintetError as error:
            self._note(f"{place.path('context.jsonl')} was not taken over: {error.line()}")
            found, there = [], None
            if takes_name:
                return (await self._threads.open(place.handle(), settings)).thread
        thread = await self._threads.begin(settings, found, handle=place.handle(), takes_name=takes_name)
        work = _Work(self, place, thread)
        for name in ("context.jsonl", "wire.jsonl"):
            if there is not None:
                await work.adopt(name)
        return thread

    async def last_used(self, share_dir: str, work_dir: str) -> str:
        """The session that was used last in this directory, by whichever program; empty where none was."""
        path = os.path.join(share_dir, "kimi.json")
        try:
            found = shared_files.last_used(shared_files.parsed(await self._files.read(path), path), work_dir)
        except (QuintetError, OSError) as error:
            self._note(f"{path} was not looked at: {error!r:.300}")
            found = ""
        return found if _NAME.fullmatch(found) else ""

    async def leave(self, place: Place) -> None:
        """Nobody needs an empty directory."""
        if place_of(place.handle()) is not None:
            await self._files.remove_empty(place.directory)

    async def _used(self, place: Place) -> None:
        path = os.path.join(place.share_dir, "kimi.json")
        async with self._files.hold(path):
            there = shared_files.parsed(await self._files.read(path), path)
            made = shared_files.used(there, place.work_dir, place.session)
            if made != there:
                await self._files.write(path, shared_files.encoded(made))


class _Work:
    """On the files of one thread, under their lock."""

    def __init__(self, files: SessionFiles, place: Place, thread: Thread) -> None:
        self._above = files
        self._journal, self._files = files._journal, files._files
        self._place = place
        self.thread = thread
        self._happened: dict[int, mirror.Happened] = {}
        self.told = False  # something of what happened

    def file(self, name: str) -> MirrorFile:
        return MirrorFile(self._journal, self._files, KIND, self._place.path(name), self.thread.id)

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
            told = await mirror.told(self._journal, self.thread, self._above._options, await self._since(after), before)
            self.told = self.told or bool(told.data)
            return [told]

        return await self.file("wire.jsonl").bring_up(tell)

    async def context(self) -> Standing:
        async def tell(after: int, before: bytes) -> list[Told]:
            since = await self._since(after)
            changed = any(isinstance(event.payload, ViewChanged) for event in since.events)
            items = await self._above._threads.items(self.thread.id) if changed else []
            return context_file.told(self.thread, self._above._options.names, since, before, items)

        return await self.file("context.jsonl").bring_up(tell)

    async def state(self) -> None:
        path = self._place.path("state.json")
        if await self._files.read(self._place.path("context.jsonl")) is None:
            return  # nothing has happened yet
        there = shared_files.parsed(await self._files.read(path), path)
        grants = [
            g
            for g in await self._journal.grants(root=self.thread.root)
            if g.thread == self.thread.root and not g.denies
        ]
        events = [event for since in self._happened.values() for event in since.events]
        made = shared_files.state(there, self.thread, grants, sorted(events, key=lambda e: e.seq))
        if made != there:
            await self._files.write(path, shared_files.encoded(made))


def _name(handle: Handle) -> tuple[str, str, str]:
    return handle.protocol, handle.scope, handle.external_id
