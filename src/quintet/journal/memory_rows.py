"""Rows in dictionaries, with an undo list instead of a log. Everything kept is frozen, so handing it out is safe."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import Any

from msgspec.structs import replace

from quintet.domain.audit import BEGUN, AuditRow
from quintet.domain.command import Command
from quintet.domain.errors import NotFound
from quintet.domain.event import KIND_BY_NAME, Durability
from quintet.domain.grant import Grant
from quintet.domain.ids import new_id
from quintet.domain.interaction import Interaction
from quintet.domain.item import Damaged, text_of
from quintet.domain.mirror import Mirror
from quintet.domain.project import Project
from quintet.domain.thread import Handle, Thread, ThreadQuery
from quintet.domain.turn import TurnState
from quintet.journal.chain import Unbound, bound
from quintet.journal.codec import item_of
from quintet.journal.rows import USAGE, Counter, EventRow, ItemRow, KeyRow, TurnRow
from quintet.journal.searching import words_of

_ABSENT = object()


class MemoryRows:
    def __init__(self) -> None:
        self.next = 1
        self._store_id = new_id("own")
        self._events: dict[int, EventRow] = {}
        self._order: list[int] = []
        self._threads: dict[str, Thread] = {}
        self._items: dict[str, dict[int, ItemRow]] = {}
        self._turns: dict[str, TurnRow] = {}
        self._interactions: dict[str, Interaction] = {}
        self._commands: dict[str, Command] = {}
        self._grants: dict[str, Grant] = {}
        self._handles: dict[int, Handle] = {}
        self._projects: dict[str, Project] = {}
        self._mirrors: dict[str, Mirror] = {}
        self._keys: dict[tuple[str, str], KeyRow] = {}
        self._unknown: dict[int, str] = {}
        self._checkpoints: dict[int, str] = {}
        self._audit: dict[int, AuditRow] = {1: AuditRow(1, 0, BEGUN, 0, "", bytes(32), bytes(32))}
        self._marks: dict[str, int] = {"pruned": 0, "signals": 0}
        self._erased: dict[str, bool] = {}
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []

    # --- transactions ------------------------------------------------------------------------------------------
    def begin(self) -> None:
        self._undo = []

    def commit(self) -> None:
        self._undo = []
        if len(self._order) != len(self._events):
            self._order = sorted(self._events)

    def rollback(self) -> None:
        for table, key, old in reversed(self._undo):
            if old is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = old
        self.commit()
        self._order = sorted(self._events)

    def _put(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        self._undo.append((table, key, table.get(key, _ABSENT)))
        table[key] = value

    def _drop(self, table: dict[Any, Any], key: Any) -> None:
        if key in table:
            self._undo.append((table, key, table.pop(key)))

    # --- reading -------------------------------------------------------------------------------------------------
    def counter(self) -> Counter:
        return Counter(self.next, 1 << 62, "", self._marks["pruned"], self._marks["signals"], self._store_id)

    def _after(self, seq: int) -> Iterator[EventRow]:
        for at in range(bisect.bisect_right(self._order, seq), len(self._order)):
            row = self._events.get(self._order[at])
            if row is not None:
                yield row

    def events(self, after: int, root: str, limit: int) -> list[EventRow]:
        return list(islice((row for row in self._after(after) if root in ("", row.root)), limit))

    def project_events(self, after: int, through: int, project: str, limit: int) -> list[EventRow]:
        known = self._threads
        rows = takewhile(lambda row: row.seq <= through, self._after(after))
        return list(islice((r for r in rows if not r.root or known[r.root].project == project), limit))

    def facts(self, after: int, root: str, limit: int) -> list[EventRow]:
        found = (row for row in self._after(after) if row.root == root and not _is(row, Durability.DELTA))
        return list(islice(found, limit))

    def turn_events(self, thread: str, turn: str, after: int) -> list[EventRow]:
        return [e for s in sorted(self._events) if (e := self._events[s]).turn == turn and s > after]

    def event(self, seq: int) -> EventRow | None:
        return self._events.get(seq)

    def unknown_effects(self, thread: str) -> list[int]:
        return sorted((s for s, t in self._unknown.items() if thread in ("", t)), reverse=True)

    def usage(self, after: int, root: str, limit: int) -> list[EventRow]:
        found = (self._events[seq] for seq in self._order[bisect.bisect_right(self._order, after) :])
        return [row for row in found if row.kind in USAGE and root in ("", row.root)][:limit]

    def first_begun(self, since_ms: int) -> int | None:
        rows = [r for r in self._turns.values() if r.started_seq]
        late = (r for r in rows if not r.turn.state.ended or r.turn.finished_ms >= since_ms)
        return min((r.started_seq for r in late), default=None)

    def audit(self, after: int, limit: int) -> list[AuditRow]:
        return [self._audit[n] for n in sorted(self._audit) if n > after][:limit]

    def unaudited_events(self, after: int, through: int) -> Iterator[int]:
        named = {row.seq for row in self._audit.values()}
        ours = sorted(seq for seq, row in self._events.items() if KIND_BY_NAME[row.kind].audited)
        return (seq for seq in ours if after < seq <= through and seq not in named)

    def checkpoints(self, thread: str, after: int) -> list[EventRow]:
        found = sorted(s for s, t in self._checkpoints.items() if s > after and thread in ("", t))
        return [self._events[seq] for seq in found]

    def thread(self, thread: str) -> Thread | None:
        return self._threads.get(thread)

    def threads(self, query: ThreadQuery) -> list[Thread]:
        found = [
            t
            for t in self._threads.values()
            if query.project in ("", t.project)
            and (query.children or not t.parent)
            and bool(t.deleted_ms) == query.deleted
            and (query.before is None or (t.updated_ms, t.id) < query.before)
        ]
        return sorted(found, key=lambda t: (t.updated_ms, t.id), reverse=True)[: query.limit]

    def tree(self, root: str) -> list[Thread]:
        return sorted((t for t in self._threads.values() if t.root == root), key=lambda t: (-t.depth, t.id))

    def busy(self, root: str) -> list[Thread]:
        return [t for t in self.tree(root) if t.owner or self.turns(t.id, live=True)]

    def owned(self) -> list[Thread]:
        return [t for t in self._threads.values() if t.owner]

    def unerased(self) -> list[str]:
        return [t.id for t in self._threads.values() if t.deleted_ms and t.id not in self._erased]

    def items(self, thread: str, after: int, limit: int, *, newest: bool = False) -> list[ItemRow]:
        found = sorted((r for n, r in self._items.get(thread, {}).items() if n > after), key=lambda r: r.ordinal)
        return found[max(len(found) - limit, 0) :] if newest else found[:limit]

    def item_range(self, thread: str, first: int, last: int) -> list[ItemRow]:
        return [r for r in self.items(thread, first - 1, 1 << 30) if r.ordinal <= last]

    def turn(self, turn: str) -> TurnRow | None:
        return self._turns.get(turn)

    def turns(self, thread: str, *, live: bool) -> list[TurnRow]:
        mine = [r for r in self._turns.values() if r.turn.thread == thread]
        return [r for r in mine if not (live and r.turn.state.ended)]

    def queued(self) -> list[TurnRow]:
        return [r for r in self._turns.values() if r.turn.state is TurnState.QUEUED]

    def first_kept(self, since_ms: int) -> int | None:
        starts = [
            r.started_seq
            for r in self._turns.values()
            if r.started_seq and (r.turn.state is TurnState.RUNNING or r.turn.finished_ms >= since_ms)
        ]
        return min(starts, default=None)

    def interaction(self, interaction: str) -> Interaction | None:
        return self._interactions.get(interaction)

    def interactions(self, root: str, *, pending: bool) -> list[Interaction]:
        found = [i for i in self._interactions.values() if root in ("", i.root)]
        return [i for i in found if not (pending and i.decision is not None)]

    def turn_interactions(self, turn: str) -> list[Interaction]:
        return [i for i in self._interactions.values() if i.turn == turn and i.holds and i.decision is None]

    def command(self, command: str) -> Command | None:
        return self._commands.get(command)

    def commands(self, thread: str) -> list[Command]:
        return [c for c in self._commands.values() if c.thread == thread and c.outcome is None]

    def grant(self, grant: str) -> Grant | None:
        return self._grants.get(grant)

    def grants(self) -> list[Grant]:
        return [g for g in self._grants.values() if not g.revoked_ms]

    def handle(self, protocol: str, scope: str, external_id: str) -> Handle | None:
        name = (protocol, scope, external_id)
        found = [h for h in self._handles.values() if (h.protocol, h.scope, h.external_id) == name]
        live = [h for h in found if not h.deleted_ms]
        return next(reversed(live or found), None)

    def handles(self, thread: str) -> list[Handle]:
        return [h for h in self._handles.values() if h.thread == thread and not h.deleted_ms]

    def mirror(self, path: str) -> Mirror | None:
        return self._mirrors.get(path)

    def mirrors(self, thread: str) -> list[Mirror]:
        return [m for m in self._mirrors.values() if m.thread == thread]

    def projects(self) -> list[Project]:
        return list(self._projects.values())

    def key(self, scope: str, key: str) -> KeyRow | None:
        return self._keys.get((scope, key))

    def matches(self, words: Sequence[str]) -> Iterator[tuple[str, int]]:
        for thread in reversed(self._threads):
            for ordinal in sorted(self._items.get(thread, {}), reverse=True):
                body = item_of(self._items[thread][ordinal]).body
                held = words_of(text_of(body), most=None) if not isinstance(body, Damaged) else []
                if all(any(h.startswith(w) for h in held) for w in words):
                    yield thread, ordinal

    # --- changing ------------------------------------------------------------------------------------------------
    def set_marks(self, *, pruned_through: int, signals_through: int) -> None:
        self._put(self._marks, "pruned", pruned_through)
        self._put(self._marks, "signals", signals_through)

    def insert_events(self, rows: Sequence[EventRow]) -> None:
        for row in rows:
            if row.turn and row.turn not in self._turns:
                raise NotFound(f"There is no turn {row.turn}.", turn=row.turn)
            self._put(self._events, row.seq, row)
            self._order.append(row.seq)

    def insert_unknown(self, seq: int, thread: str) -> None:
        self._put(self._unknown, seq, thread)

    def insert_audit(self, event: Unbound) -> None:
        last = self._audit.get(next(reversed(self._audit), 0))  # they come in their order
        (row,) = bound(last, (event,))
        self._put(self._audit, row.number, row)

    def insert_checkpoint(self, seq: int, thread: str) -> None:
        self._put(self._checkpoints, seq, thread)

    def _of(self, durability: Durability) -> list[EventRow]:
        return [row for _, row in sorted(self._events.items()) if _is(row, durability)]

    def drop_deltas(self, after: int, through: int) -> tuple[int, int]:
        doomed = [r for r in self._of(Durability.DELTA) if after < r.seq <= through]
        for row in doomed:
            self._drop(self._events, row.seq)
        return len(doomed), sum(len(r.body) for r in doomed)

    def drop_signals(self, before_ms: int, keep: int) -> tuple[int, int]:
        signals = self._of(Durability.SIGNAL)
        beyond = len(signals) - keep
        doomed = [r for n, r in enumerate(signals) if n < beyond or r.at_ms < before_ms]
        for row in doomed:
            self._drop(self._events, row.seq)
        return len(doomed), max((r.seq for r in doomed), default=0)

    def insert_thread(self, thread: Thread) -> None:
        self._put(self._threads, thread.id, thread)

    def save_thread(self, thread: Thread) -> None:
        self._put(self._threads, thread.id, thread)

    def insert_item(self, row: ItemRow, text: str) -> None:
        self._put(self._items.setdefault(row.thread, {}), row.ordinal, row)

    def insert_turn(self, row: TurnRow) -> None:
        self._put(self._turns, row.turn.id, row)

    def save_turn(self, row: TurnRow) -> None:
        self._put(self._turns, row.turn.id, row)

    def put_interaction(self, interaction: Interaction) -> None:
        self._put(self._interactions, interaction.id, interaction)

    def put_command(self, command: Command) -> None:
        self._put(self._commands, command.id, command)

    def put_grant(self, grant: Grant) -> None:
        self._put(self._grants, grant.id, grant)

    def insert_handle(self, handle: Handle) -> None:
        self._put(self._handles, len(self._handles), handle)

    def drop_handles(self, thread: str, at_ms: int) -> None:
        for key, handle in list(self._handles.items()):
            if handle.thread == thread and not handle.deleted_ms:
                self._put(self._handles, key, replace(handle, deleted_ms=at_ms))

    def drop_handle(self, handle: Handle, at_ms: int) -> None:
        name = (handle.protocol, handle.scope, handle.external_id)
        for key, kept in list(self._handles.items()):
            if (kept.protocol, kept.scope, kept.external_id) == name and not kept.deleted_ms:
                self._put(self._handles, key, replace(kept, deleted_ms=at_ms))

    def put_mirror(self, mirror: Mirror) -> None:
        self._put(self._mirrors, mirror.path, mirror)

    def insert_project(self, project: Project) -> None:
        self._put(self._projects, project.id, project)

    def put_key(self, row: KeyRow) -> None:
        self._put(self._keys, (row.scope, row.key), row)

    def drop_keys(self, before_ms: int) -> None:
        for key, row in list(self._keys.items()):
            if row.at_ms < before_ms:
                self._drop(self._keys, key)

    def erase_some(self, thread: str, limit: int) -> int:
        doomed = [s for s, r in self._events.items() if r.thread == thread and r.kind != "thread.deleted"][:limit]
        for seq in doomed:
            self._drop(self._events, seq)
            self._drop(self._unknown, seq)
            self._drop(self._checkpoints, seq)
        if doomed:
            return len(doomed)
        items = list(self._items.get(thread, {}))[:limit]
        for ordinal in items:
            self._drop(self._items[thread], ordinal)
        return len(items)

    def erase_rest(self, thread: str) -> None:
        tables: tuple[dict[Any, Any], ...] = (
            self._interactions,
            self._commands,
            self._grants,
            self._keys,
            self._mirrors,
        )
        for table in tables:
            for key, row in list(table.items()):
                if row.thread == thread:
                    self._drop(table, key)
        for turn in [r.turn.id for r in self._turns.values() if r.turn.thread == thread]:
            self._drop(self._turns, turn)
        self._put(self._erased, thread, True)


def _is(row: EventRow, durability: Durability) -> bool:
    return KIND_BY_NAME[row.kind].durability is durability
