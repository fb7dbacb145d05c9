"""The files of a session: where they lie, told from the journal, and taken over where others have written them."""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from quintet.domain.errors import NotFound, QuintetError
from quintet.domain.ids import has_prefix
from quintet.domain.ports import Journal, MirrorFiles
from quintet.domain.thread import Handle, Thread, ThreadSettings
from quintet.engine.mirrors import Standing
from quintet.engine.threads import Threads
from quintet.protocols.wire import mirror, shared_files
from quintet.protocols.wire.events import Options
from quintet.protocols.wire.place import NAME, Place, place_of
from quintet.protocols.wire.session_import import bodies
from quintet.protocols.wire.session_work import Desk, Work


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
        self._desk = Desk(journal, threads, files, options, {})
        self._note = note

    def show(self, place: Place, freely: Callable[[], dict[str, bool]]) -> None:
        """How freely this process's client acts there, for people to see. Nobody reads leave out of a file."""
        self._desk.shown[place.directory] = freely

    async def bring_up(self, handle: Handle) -> None:
        if (place := place_of(handle)) is None:
            return
        async with self._files.hold(place.directory):
            work = Work(self._desk, place.directory, await self._journal.thread(handle.thread))
            standing = await work.context()
            if standing is not Standing.OURS:
                self._note(f"{place.path('context.jsonl')} was written by somebody else and is left as it is.")
            elif await work.wire() is not Standing.OURS:
                self._note(f"{place.path('wire.jsonl')} was written by somebody else and is left as it is.")
            await self._state(work)
            await work.subagents()
        if work.told:
            await self._used(place)

    async def remove(self, handle: Handle) -> None:
        if (place := place_of(handle)) is None:
            return
        async with self._files.hold(place.directory):
            work = Work(self._desk, place.directory, await self._journal.thread(handle.thread))
            await work.file("context.jsonl").remove()
            if await self._files.read(place.path("context.jsonl")) is None:
                await self._files.remove(place.path("state.json"))
            await work.remove_subagents()
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
            known = await self._by_own_id(place)
        if known is None:
            return await self._import(place, settings, takes_name=False)
        thread = (await self._threads.get(known.thread)).thread
        work = Work(self._desk, place.directory, thread)
        standing = await work.context()
        if standing is Standing.EXTENDED and await self._extend(work):
            standing = Standing.OURS
        if standing is Standing.CHANGED or standing is Standing.EXTENDED:
            return await self._import(place, thread.settings, takes_name=True)
        if await work.wire() is not Standing.OURS:  # it tells people, not the model: what follows is put behind it
            await work.adopt("wire.jsonl")
        await self._state(work)
        return thread

    async def _state(self, work: Work) -> None:
        """It is there for people to see: one that somebody has broken holds up nothing else."""
        try:
            await work.state()
        except (QuintetError, OSError) as error:
            self._note(error.message if isinstance(error, QuintetError) else f"state.json was not written: {error}")

    async def _by_own_id(self, place: Place) -> Handle | None:
        """A thread begun elsewhere is known by its own id, in its own directory; from then on it has files."""
        if not has_prefix(place.session, "thr"):
            return None
        try:
            thread = await self._journal.thread(place.session)
        except NotFound:
            return None
        if thread.parent or thread.settings.cwd != (place.real_dir or place.work_dir):
            self._note(f"{place.session} is no thread of {place.work_dir}; a new one gets that name.")
            return None
        return await self._journal.add_handle(msgspec.structs.replace(place.handle(), thread=thread.id))

    async def _extend(self, work: Work) -> bool:
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
        work = Work(self._desk, place.directory, thread)
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
        return found if NAME.fullmatch(found) else ""

    async def use(self, place: Place) -> None:
        """A turn begins: whoever goes on later goes on here, also where this process is killed."""
        if place_of(place.handle()) is not None:
            try:
                await self._used(place)
            except (QuintetError, OSError, TimeoutError) as error:
                self._note(f"kimi.json does not name session {place.session}: {error!r:.300}")

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


def _name(handle: Handle) -> tuple[str, str, str]:
    return handle.protocol, handle.scope, handle.external_id
