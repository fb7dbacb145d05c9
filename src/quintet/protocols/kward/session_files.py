"""Session files: told from the journal, and taken over where others have written them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from quintet.domain.errors import NotFound, QuintetError
from quintet.domain.event import Draft, ThreadUpdated, ViewChanged
from quintet.domain.item import Item
from quintet.domain.ports import Journal, MirrorFiles
from quintet.domain.thread import Handle, Thread, ThreadSettings
from quintet.engine.files_seen import files_seen
from quintet.engine.happened import Happened, happened
from quintet.engine.mirrors import MirrorFile, Standing, Told
from quintet.engine.threads import Threads
from quintet.protocols.kward.errors import Failed
from quintet.protocols.kward.messages import messages
from quintet.protocols.kward.places import KIND, Place, named_in, place_of, thread_named
from quintet.protocols.kward.records import Ancestry, Known, Lines, header
from quintet.protocols.kward.session_import import Read, read, records


class SessionFiles:
    def __init__(
        self, journal: Journal, threads: Threads, files: MirrorFiles, note: Callable[[str], None], index: str
    ) -> None:
        """`index`: where is kept what files say that nobody has opened here."""
        self._index = index
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

    async def open(self, path: str, base: str) -> tuple[Thread, Place]:
        """The thread of this file, as the file says where others have written it; the file, where there is none yet.
        `base` is where it works if the file does not say."""
        async with self._files.hold(path):
            data = await self._files.read(path)
            if data is None:
                return await self._made(path)
            found = read(data)
            if found is None:
                raise Failed(f"Invalid Kward session file: {path}")
            found = found if found.cwd.startswith("/") else replace(found, cwd=base)
            place = Place(path, found.id)
            known = await self._journal.find_handle(KIND, path, found.id)
            if known is None or known.deleted_ms:
                return await self._imported(place, found, data), place
            thread = (await self._threads.get(known.thread)).thread
            return await self._caught_up(place, thread, found, data), place

    async def name(self, thread: Thread, place: Place) -> None:
        """From now on the thread has this file."""
        await self._threads.name(place.handle(thread.id))

    async def read(self, path: str) -> bytes | None:
        return await self._files.read(path)

    async def erase(self, place: Place) -> None:
        async with self._files.hold(place.path):
            await self._files.remove(place.path)

    async def read_index(self) -> bytes:
        """What was kept of files that nobody has opened here; an empty object where nothing was."""
        return await self._files.read(self._index) or b"{}"

    async def write_index(self, data: bytes) -> None:
        try:
            async with self._files.hold(self._index):
                await self._files.write(self._index, data)
        except (OSError, TimeoutError) as error:
            self._note(f"{self._index} was not written, so the files are read again next time: {error!r:.300}")

    async def _made(self, path: str) -> tuple[Thread, Place]:
        """A session that is listed may have no file yet, or none any more."""
        place = Place(path, named_in(path))
        known = await self._journal.find_handle(KIND, path, place.id) if place.id else None
        try:
            name = known.thread if known and not known.deleted_ms else thread_named(place.id)
            thread = (await self._threads.get(name)).thread
        except NotFound:
            raise Failed(f"Session file not found: {path}") from None
        await self._journal.add_handle(place.handle(thread.id))
        await self._told(place, thread)
        return thread, place

    async def _told(self, place: Place, thread: Thread) -> Standing:
        """The conversation lies in the journal: where its file cannot be written it is opened all the same."""
        try:
            return await self.tell(place, thread)
        except OSError as error:
            self._note(f"{place.path} is not up to date: {error!r:.300}")
            return Standing.OURS

    async def _caught_up(self, place: Place, thread: Thread, found: Read, data: bytes) -> Thread:
        standing = await self._told(place, thread)
        if standing is Standing.EXTENDED and await self._extended(place, thread, found, data):
            return await self._journal.thread(thread.id)
        if standing is Standing.OURS:
            return thread
        return await self._imported(place, found, data, takes_name=True)

    async def _extended(self, place: Place, thread: Thread, found: Read, data: bytes) -> bool:
        """Whether what others put behind ours is part of the thread now."""
        file = self._file(place, thread.id)
        row = await file.row()
        ours = read(data[: row.size])
        since = await happened(self._journal, thread, row.through_seq)
        if since.events or ours is None or found.marks != ours.marks or found.said[: len(ours.said)] != ours.said:
            return False  # both have gone on, or it is another conversation by now
        try:
            await self._threads.extend(thread.id, [body for _, body in found.said[len(ours.said) :]])
            if found.name != ours.name:
                await self._journal.append([Draft(titled(found.name), thread.id)])
        except QuintetError as error:
            self._note(f"{place.path} was not taken over: {error.line()}")
            return False
        last = await happened(self._journal, thread, row.through_seq)
        await file.adopt(last.through, data)
        return True

    async def _imported(self, place: Place, found: Read, data: bytes, *, takes_name: bool = False) -> Thread:
        thread = await self._threads.create(
            ThreadSettings(found.cwd),
            title=found.name,
            title_final=bool(found.name),
            handle=place.handle(),
            items=found.items(),
            view=found.view(),
            takes_name=takes_name,
            created_ms=found.created_ms,
        )
        last = await happened(self._journal, thread, 0)
        await self._file(place, thread.id).adopt(last.through, data)
        return thread

    async def ancestry(self, place: Place, thread: Thread) -> Ancestry:
        """Whom it was forked from, as far as that still is known: by us, or by whoever wrote its file."""
        if not thread.forked_from:
            head = next(records(await self._files.head(place.path)), {})
            return Ancestry(str(head.get("parentId") or ""), str(head.get("parentPath") or ""))
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


def titled(name: str) -> ThreadUpdated:
    """A person's name for it, or none again."""
    return ThreadUpdated(title=name, title_final=bool(name))
