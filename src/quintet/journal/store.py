"""Store: what a journal stands on. SQLite, memory, later PostgreSQL. One store is one process's seat at the rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from quintet.domain.event import Draft
from quintet.domain.ports import Clock, Listener
from quintet.domain.turn import Lease
from quintet.journal.rows import Reads
from quintet.journal.transaction import Transaction

T = TypeVar("T")


class OpenReport(msgspec.Struct, frozen=True):
    """What opening found. `damaged` is said aloud; a torn tail is what a kill or power loss normally leaves."""

    read_only: bool = False
    full: bool = False  # and that for want of room on the disk
    wal_frames: int = 0  # valid ones
    wal_dropped: int = 0  # frames of the current log behind those
    wal_lost: int = 0  # of those, frames that were written whole and committed: real damage
    saved_as: str = ""  # where the damaged log was kept
    migrated_from: int = 0
    backup: str = ""

    @property
    def damaged(self) -> bool:
        return self.wal_lost > 0


class Store(Protocol):
    @property
    def owner(self) -> str: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def report(self) -> OpenReport: ...

    def push(self, drafts: Sequence[Draft], lease: Lease) -> None: ...
    async def room(self, lease: Lease | None) -> None: ...
    def raise_failed_push(self, lease: Lease | None) -> None:
        """Raise what an earlier push of this lease (or of any) failed with, once."""

    def write(self, name: str, work: Callable[[Transaction], T], *, settling: bool = False) -> Awaitable[T]:
        """Run the work in one durable transaction, then publish. `settling` work is accepted on a full disk."""

    def read(self, work: Callable[[Reads], T]) -> Awaitable[T]:
        """Run the work on one consistent picture, beside the loop and the writer."""

    def alive(self, owner: str) -> bool: ...
    def listen(self, listener: Listener) -> Callable[[], None]: ...
    def changed_elsewhere(self) -> bool: ...
    def tail(self) -> Awaitable[None]: ...
    def tidy(self) -> Awaitable[int]:
        """Give freed space back to the file system; how many bytes."""

    async def close(self) -> None: ...
