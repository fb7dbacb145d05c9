"""Mirrors: files that clients read themselves, told from the journal. Which clients, where and how is their protocols'.

The owner of a turn brings them up to date before its end is told; whoever opens such a thread catches up first. A file
that cannot be written never fails a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Protocol

import msgspec

from quintet.domain.mirror import Mirror, digest_of
from quintet.domain.ports import Journal, MirrorFiles
from quintet.domain.thread import Handle, Thread

WITHIN_S = 3.0


class Writer(Protocol):
    """Of the files of one protocol's clients."""

    async def bring_up(self, handle: Handle) -> None: ...
    async def remove(self, handle: Handle) -> None:
        """The thread is being deleted."""


class Mirrors:
    """`names` are of protocols whose clients shall find every thread: what one is called there that has no name yet."""

    def __init__(
        self,
        journal: Journal,
        writers: Mapping[str, Callable[[], Writer]],
        note: Callable[[str], None],
        names: Mapping[str, Callable[[Thread], Handle]] | None = None,
    ) -> None:
        self._journal = journal
        self._writers = writers
        self._note = note
        self._names = names or {}

    async def bring_up(self, thread: str) -> None:
        """Every file of this thread; what could not be written is noted, and caught up with the next time."""
        if self._names:
            await self._name(thread)
        await self._each(thread, lambda writer, handle: writer.bring_up(handle), "not up to date")

    async def _name(self, thread: str) -> None:
        """A subagent's thread is no conversation of its own and gets no name."""
        try:
            known = {handle.protocol for handle in await self._journal.handles(thread)}
            here = await self._journal.thread(thread)
            for protocol in self._names.keys() - known if not here.parent else ():
                handle = self._names[protocol](here)
                await self._journal.add_handle(msgspec.structs.replace(handle, thread=thread))
        except Exception as error:
            self._note(f"{thread} got no name for clients that read files: {error!r:.300}")

    async def remove(self, thread: str) -> None:
        """What people had erased must not go on in files. Those that others have changed since are theirs and stay."""
        await self._each(thread, lambda writer, handle: writer.remove(handle), "not all removed")

    async def _each(self, thread: str, do: Callable[[Writer, Handle], Awaitable[None]], otherwise: str) -> None:
        try:
            for handle in await self._journal.handles(thread):
                if (writer := self._writers.get(handle.protocol)) is not None:
                    async with asyncio.timeout(WITHIN_S):
                        await do(writer(), handle)
        except Exception as error:  # also a defect of ours: the turn has ended well, and its files can wait
            self._note(f"The files that clients read of {thread} are {otherwise}: {error!r:.300}")


class Standing(StrEnum):
    OURS = "ours"  # and up to date now
    EXTENDED = "extended"  # somebody else has put something behind what we wrote
    CHANGED = "changed"  # somebody else has written it


class Told(msgspec.Struct, frozen=True):
    """What belongs behind what a file holds, and up to which event it tells."""

    data: bytes
    through: int


# What belongs behind these bytes, which tell everything up to this event. Each further part begins the file anew; what
# stood there is put aside.
Tell = Callable[[int, bytes], Awaitable[list[Told]]]


class MirrorFile:
    """One file that only grows. Its caller holds the lock."""

    def __init__(self, journal: Journal, files: MirrorFiles, kind: str, path: str, thread: str) -> None:
        self._journal = journal
        self._files = files
        self._blank = Mirror(path, kind, thread)
        self.path = path

    async def row(self) -> Mirror:
        """As it was last written for this thread; a blank one where it never was."""
        known = await self._journal.mirror(self.path)
        return known if known is not None and known.thread == self._blank.thread else self._blank

    async def adopt(self, through: int, data: bytes) -> None:
        """What is there counts as told up to this event; what follows is put behind it."""
        await self._keep(through, data)

    async def bring_up(self, tell: Tell) -> Standing:
        row, there = await self.row(), await self._files.read(self.path)
        if there is None:  # not a deletion
            if (told := (await tell(0, b""))[-1:]) and (told[0].data or row.size):
                await self._write(told[0])
            return Standing.OURS
        ours, behind = there[: row.size], there[row.size :]
        if digest_of(ours) != row.digest:
            return Standing.CHANGED
        told = await tell(row.through_seq, ours)
        if ours and told[0].data and not ours.endswith(b"\n"):  # somebody who wrote it was killed in its last line
            told[0] = msgspec.structs.replace(told[0], data=b"\n" + told[0].data)
        if not told[0].data.startswith(behind):  # else we were killed between writing and noting that we did
            return Standing.EXTENDED if row.size else Standing.CHANGED
        await self._grow(row, there, told[0], len(behind))
        for part in told[1:]:
            await self._put_aside()
            await self._write(part)
        return Standing.OURS

    async def _grow(self, row: Mirror, there: bytes, told: Told, written: int) -> None:
        if rest := told.data[written:]:
            await self._files.append(self.path, rest)
        if told.through != row.through_seq:
            await self._keep(told.through, there + rest)

    async def remove(self) -> None:
        """This file and those put aside, as far as nobody else has changed them."""
        aside = [m for m in await self._journal.mirrors(self._blank.thread) if _beside(m.path, self.path)]
        for row in aside:
            if digest_of(await self._files.read(row.path) or b"") == row.digest:
                await self._files.remove(row.path)

    async def _put_aside(self) -> None:
        row = await self.row()
        aside = await self._files.set_aside(self.path)
        await self._journal.put_mirror(msgspec.structs.replace(row, path=aside))

    async def _write(self, told: Told) -> None:
        await self._files.write(self.path, told.data)
        await self._keep(told.through, told.data)

    async def _keep(self, through: int, data: bytes) -> None:
        row = self._blank
        await self._journal.put_mirror(Mirror(row.path, row.kind, row.thread, through, len(data), digest_of(data)))


def _beside(one: str, other: str) -> bool:
    return one.rpartition("/")[0] == other.rpartition("/")[0]
