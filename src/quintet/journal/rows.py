"""Rows: the primitive operations every store offers, and the shapes of its rows.

The rules of the journal are written once against this protocol; it knows nothing of SQL, threads or files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from quintet.domain.audit import AuditRow
from quintet.domain.command import Command
from quintet.domain.grant import Grant
from quintet.domain.interaction import Interaction
from quintet.domain.mirror import Mirror
from quintet.domain.project import Project
from quintet.domain.thread import Handle, Thread, ThreadQuery
from quintet.domain.turn import Mode, Turn
from quintet.journal.chain import Unbound

USAGE = ("step.finished", "tool.finished", "turn.finished")  # the same as in the queries


class EventRow(msgspec.Struct, frozen=True, gc=False):
    seq: int
    kind: str
    at_ms: int
    thread: str
    root: str
    turn: str
    body: bytes  # the payload, or where it is kept when another row holds it
    sum: int


class ItemRow(msgspec.Struct, frozen=True, gc=False):
    thread: str
    ordinal: int
    id: str
    turn: str
    at_ms: int
    origin: str
    body: bytes
    sum: int


class TurnRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A turn and what only the journal needs of it. Once it is claimed its input lives in its first item alone."""

    turn: Turn
    mode: Mode  # as it was queued; the turn itself carries the mode in force
    started_seq: int = 0
    input_ordinal: int = 0
    agent: str = ""  # who works in it since it began


class Counter(msgspec.Struct, frozen=True):
    """The one row numbers come from. Numbers from `ceiling` on are not used before a synced commit raised it."""

    next: int
    ceiling: int
    boot_id: str
    pruned_through: int
    signals_through: int
    store_id: str


class KeyRow(msgspec.Struct, frozen=True):
    scope: str
    key: str
    digest: str
    turn: str
    thread: str
    at_ms: int


class Reads(Protocol):
    """Short look-ups. Lists come in a defined order and bounded pages."""

    def counter(self) -> Counter: ...
    def events(self, after: int, root: str, limit: int) -> list[EventRow]: ...
    def project_events(self, after: int, through: int, project: str, limit: int) -> list[EventRow]:
        """Between these numbers: those of the project's threads and those of none."""

    def facts(self, after: int, root: str, limit: int) -> list[EventRow]:
        """Those of a root thread without its deltas."""

    def turn_events(self, thread: str, turn: str, after: int) -> list[EventRow]:
        """Everything written for one turn, oldest first."""

    def event(self, seq: int) -> EventRow | None: ...
    def unknown_effects(self, thread: str) -> list[int]:
        """Numbers of effect.unknown events, newest first."""

    def usage(self, after: int, root: str, limit: int) -> list[EventRow]:
        """step.finished, tool.finished and turn.finished, oldest first."""

    def first_begun(self, since_ms: int) -> int | None:
        """The number at which the first of the turns began that ended at this time or later, or still run."""

    def audit(self, after: int, limit: int) -> list[AuditRow]:
        """Rows of the audit chain by their number."""

    def unaudited_events(self, after: int, through: int) -> Iterator[int]:
        """Numbers of the events in this range whose kind belongs into the chain, and which no row of it names."""

    def checkpoints(self, thread: str, after: int) -> list[EventRow]:
        """What was put aside and brought back, in one thread or in all, oldest first."""

    def thread(self, thread: str) -> Thread | None:
        """Also deleted ones, as their tombstones."""

    def threads(self, query: ThreadQuery) -> list[Thread]: ...
    def tree(self, root: str) -> list[Thread]:
        """The root and every thread below it, deepest first."""

    def busy(self, root: str) -> list[Thread]:
        """Of that tree, deepest first, the threads with an owner or a turn that has not ended."""

    def owned(self) -> list[Thread]:
        """Threads with an owner, dead or alive."""

    def unerased(self) -> list[str]:
        """Deleted threads whose rows are not all gone yet."""

    def items(self, thread: str, after: int, limit: int, *, newest: bool = False) -> list[ItemRow]: ...
    def item_range(self, thread: str, first: int, last: int) -> list[ItemRow]: ...
    def turn(self, turn: str) -> TurnRow | None: ...
    def turns(self, thread: str, *, live: bool) -> list[TurnRow]:
        """In the order they were queued."""

    def queued(self) -> list[TurnRow]: ...
    def first_kept(self, since_ms: int) -> int | None:
        """Where the first turn began that still runs or ended at or after `since_ms`."""

    def interaction(self, interaction: str) -> Interaction | None: ...
    def interactions(self, root: str, *, pending: bool) -> list[Interaction]: ...
    def turn_interactions(self, turn: str) -> list[Interaction]:
        """Pending ones that hold a call of this turn."""

    def command(self, command: str) -> Command | None: ...
    def commands(self, thread: str) -> list[Command]:
        """Without outcome, oldest first."""

    def grant(self, grant: str) -> Grant | None: ...
    def grants(self) -> list[Grant]:
        """Those not revoked."""

    def handle(self, protocol: str, scope: str, external_id: str) -> Handle | None: ...
    def handles(self, thread: str) -> list[Handle]:
        """The thread's live ones, oldest first."""

    def mirror(self, path: str) -> Mirror | None: ...
    def mirrors(self, thread: str) -> list[Mirror]: ...
    def projects(self) -> list[Project]: ...
    def key(self, scope: str, key: str) -> KeyRow | None: ...
    def matches(self, words: Sequence[str]) -> Iterator[tuple[str, int]]:
        """(thread, ordinal) of items holding, for every word, one that begins with it; newest threads first."""


class Rows(Reads, Protocol):
    """Reads and changes, inside one transaction."""

    def set_marks(self, *, pruned_through: int, signals_through: int) -> None: ...
    def insert_events(self, rows: Sequence[EventRow]) -> None: ...
    def insert_unknown(self, seq: int, thread: str) -> None: ...
    def insert_checkpoint(self, seq: int, thread: str) -> None: ...
    def insert_audit(self, event: Unbound) -> None:
        """One more row of the audit chain, bound to the last one, in the event's own transaction."""

    def drop_deltas(self, after: int, through: int) -> tuple[int, int]:
        """How many deltas went, and their bytes."""

    def drop_signals(self, before_ms: int, keep: int) -> tuple[int, int]:
        """How many signals went, and the newest number among them."""

    def insert_thread(self, thread: Thread) -> None: ...
    def save_thread(self, thread: Thread) -> None: ...
    def insert_item(self, row: ItemRow, text: str) -> None: ...
    def insert_turn(self, row: TurnRow) -> None: ...
    def save_turn(self, row: TurnRow) -> None: ...
    def put_interaction(self, interaction: Interaction) -> None: ...
    def put_command(self, command: Command) -> None: ...
    def put_grant(self, grant: Grant) -> None: ...
    def insert_handle(self, handle: Handle) -> None: ...
    def drop_handles(self, thread: str, at_ms: int) -> None:
        """Mark its live handles deleted; the rows stay."""

    def drop_handle(self, handle: Handle, at_ms: int) -> None:
        """Mark the live one of this name deleted."""

    def put_mirror(self, mirror: Mirror) -> None: ...
    def insert_project(self, project: Project) -> None: ...
    def put_key(self, row: KeyRow) -> None: ...
    def drop_keys(self, before_ms: int) -> None: ...
    def erase_some(self, thread: str, limit: int) -> int:
        """Remove up to `limit` events and then items of a deleted thread; 0 when only its thread.deleted is left."""

    def erase_rest(self, thread: str) -> None:
        """Its turns, interactions, commands, keys, grants and mirrors go, it is marked erased; its own row stays."""
