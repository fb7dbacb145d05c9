"""Session files: told from the journal, and taken over where others have written them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quintet.domain.errors import NotFound
from quintet.domain.event import ViewChanged
from quintet.domain.item import Item
from quintet.domain.ports import Journal, MirrorFiles
from quintet.domain.thread import Handle, Thread
from quintet.engine.files_seen import files_seen
from quintet.engine.happened import Happened, happened
from quintet.engine.mirrors import MirrorFile, Standing, Told
from quintet.engine.threads import Threads
from quintet.protocols.kward.messages import messages
from quintet.protocols.kward.places import KIND, Place, place_of
from quintet.protocols.kward.records import Ancestry, Known, Lines, header


class SessionFiles:
    def __init__(self, journal: Journal, threads: Threads, files: MirrorFiles, note: Callable[[str], None]) -> None:
        self._journal = journal
        self._threads = threads
        self._files = files
        self._note = note

    async def bring_up(self, handle: Handle) -> None:
        """Plays engine.mirrors.Writer."""
        place = Place(handle.scope, handle.external_id)
        async with self._files.hold(place.path):
            if await self.tell(place, await self._journal.thread(handle.thread)) is not Standing.OURS:
                self._note(f"{place.path} was written by somebody else and is left as it is.")

    async def remove(self, handle: Handle) -> None:
        async with self._files.hold(handle.scope):
            await self._file(Place(handle.scope, handle.external_id), handle.thread).remove()

    async def tell(self, place: Place, thread: Thread) -> Standing:
        """Up to what has happened. Its caller holds the lock."""

        async def tell(after: int, before: bytes) -> list[Told]:
            since = await happened(self._journal, thread, after)
            lines = Lines(before, await self._known(thread, since))
            if not before:
                lines.begin(header(thread, place.id, await self.ancestry(place, thread)))
            return [Told(lines.of(thread, since.events), since.through)]

        return await self._file(place, thread.id).bring_up(tell)

    async def ancestry(self, place: Place, thread: Thread) -> Ancestry:
        """Whom it was forked from, as far as that still is known."""
        if not thread.forked_from:
            return Ancestry()
        try:
            above = await self._journal.thread(thread.forked_from)
        except NotFound:
            return Ancestry()
        found = await self.place(above, place.path.rpartition("/sessions/")[0])
        return Ancestry(found.id, found.path)

    async def place(self, thread: Thread, config_dir: str) -> Place:
        """The file it has, else the one it would get."""
        for handle in await self._journal.handles(thread.id):
            if handle.protocol == KIND:
                return Place(handle.scope, handle.external_id)
        return place_of(config_dir, thread)

    def _file(self, place: Place, thread: str) -> MirrorFile:
        return MirrorFile(self._journal, self._files, KIND, place.path, thread)

    async def _known(self, thread: Thread, since: Happened) -> Known:
        if not any(isinstance(event.payload, ViewChanged) for event in since.events):
            return Known()
        items: Sequence[Item] = await self._threads.items(thread.id)
        read, modified = files_seen(items, await self._journal.checkpoints(thread=thread.id), thread.settings.cwd)
        return Known(tuple(messages(items)), tuple(sorted(read)), tuple(sorted(modified)))
