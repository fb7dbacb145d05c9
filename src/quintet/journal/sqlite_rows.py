"""Rows in SQLite, over one connection. Ids are mapped to integer keys here; nobody above knows of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import apsw
import msgspec
from msgspec.structs import astuple, replace

from quintet.domain.audit import AuditRow
from quintet.domain.command import Command
from quintet.domain.decoding import decode
from quintet.domain.errors import NotFound
from quintet.domain.event import KINDS
from quintet.domain.grant import Grant
from quintet.domain.interaction import Interaction
from quintet.domain.item import Damaged, text_of
from quintet.domain.mirror import Mirror
from quintet.domain.project import Project
from quintet.domain.thread import Handle, Thread, ThreadQuery
from quintet.journal import columns
from quintet.journal.chain import Unbound, bound
from quintet.journal.codec import encode, item_of
from quintet.journal.packing import packed, unpacked
from quintet.journal.rows import Counter, EventRow, ItemRow, KeyRow, TurnRow
from quintet.journal.sqlite_keys import Keys
from quintet.journal.statements import SQL

T = TypeVar("T")
ORDINAL_BITS = 24
_ORDINALS = 1 << ORDINAL_BITS
_MANY = 64
_INSERT_EVENTS = SQL["insert_event"] + ", (?, ?, ?, ?, ?, ?, ?, ?)" * (_MANY - 1)
_INSERT_AUDITS = SQL["insert_audit"] + ", (?, ?, ?, ?, ?, ?, ?)" * (_MANY - 1)
_AFTER_ALL = (1 << 62, "")
_AUDITED = encode([kind.name for kind in KINDS if kind.audited]).decode()
_COUNTER = (int, int, str, int, int, str)


class SqliteRows:
    def __init__(self, connection: apsw.Connection) -> None:
        self._run = connection.execute
        self._many = connection.executemany
        keys = self._keys = Keys(connection)
        self._thread_key, self._thread_id = keys.thread_key, keys.thread_id
        self._turn_key, self._turn_id = keys.turn_key, keys.turn_id
        self._kind_code = keys.kind_code
        self.waiting: list[tuple[Any, ...]] = []  # events of this transaction that are not in the file yet
        self._unbound: list[Unbound] = []  # of the audit chain, in the same way
        self.audit_head: AuditRow | None = None  # its last row, where that is known

    def forget(self) -> None:
        """After a rollback: a key learnt from a row that never came to be would be wrong."""
        self.waiting.clear()
        self._unbound.clear()
        self.audit_head = None
        self._keys.forget()

    # --- small helpers -------------------------------------------------------------------------------------------
    def _value(self, name: str, bindings: Sequence[Any] = ()) -> Any:
        for row in self._run(SQL[name], bindings):
            return row[0]
        return None

    def _one(self, name: str, key: str, kind: type[T]) -> T | None:
        body = self._value(name, (key,))
        return None if body is None else decode(unpacked(body), kind)

    def _all(self, name: str, bindings: Sequence[Any], kind: type[T]) -> list[T]:
        """One unreadable row does not hide the others; asked for by itself it is said to be damaged."""
        out = []
        for (body,) in self._run(SQL[name], bindings):
            try:
                out.append(decode(unpacked(body), kind))
            except msgspec.MsgspecError:
                continue
        return out

    def _event_rows(self, name: str, bindings: Sequence[Any]) -> list[EventRow]:
        self.write_out()
        out = []
        last: tuple[Any, ...] | None = None  # most follow one of the same turn and kind
        for seq, kind, at_ms, root, thread, turn, total, body in self._run(SQL[name], bindings):
            keys = kind, root, thread, turn
            if keys != last:
                last = keys
                named, above, of = self._keys.kind_name(kind), self._thread_id(root), self._turn_id(turn)
                here = above if thread is None else self._thread_id(thread)
            moment, given = columns.moment(at_ms), unpacked(body)
            out.append(EventRow(seq, named, moment, here, above, of, given, columns.number(total)))
        return out

    def _item_row(self, thread: str, row: tuple[Any, ...]) -> ItemRow:
        key, item, turn, at_ms, origin, total, body = row
        above = turn if isinstance(turn, str) else self._turn_id(turn)
        given = columns.text(item), above, columns.moment(at_ms), columns.text(origin)
        return ItemRow(thread, key & (_ORDINALS - 1), *given, unpacked(body), columns.number(total))

    def _turn_rows(self, name: str, bindings: Sequence[Any]) -> list[TurnRow]:
        """A turn's id and thread are columns and not repeated in its body."""
        out = []
        for turn, thread, body in self._run(SQL[name], bindings):
            try:
                row = decode(unpacked(body), TurnRow)
            except msgspec.MsgspecError:
                if name == "turn":
                    raise
                continue  # as in `_all`
            out.append(replace(row, turn=replace(row.turn, id=columns.text(turn), thread=self._thread_id(thread))))
        return out

    # --- reading -------------------------------------------------------------------------------------------------
    def counter(self) -> Counter:
        for row in self._run(SQL["counter"]):
            if tuple(map(type, row)) != _COUNTER:
                raise apsw.CorruptError("the counter row is damaged")
            return Counter(*row)
        raise apsw.CorruptError("the counter row is missing")

    def events(self, after: int, root: str, limit: int) -> list[EventRow]:
        if not root:
            return self._event_rows("events", (after, limit))
        key = self._value("thread_key", (root,))
        return [] if key is None else self._event_rows("root_events", (key, after, limit))

    def project_events(self, after: int, through: int, project: str, limit: int) -> list[EventRow]:
        return self._event_rows("project_events", (after, through, project, limit))

    def facts(self, after: int, root: str, limit: int) -> list[EventRow]:
        key = self._value("thread_key", (root,))
        return [] if key is None else self._event_rows("root_facts", (key, after, limit))

    def turn_events(self, thread: str, turn: str, after: int) -> list[EventRow]:
        here = self.thread(thread)
        root = self._thread_key(here.root if here else thread)
        return self._event_rows("turn_events", (root, self._turn_key(turn), after))

    def event(self, seq: int) -> EventRow | None:
        return next(iter(self._event_rows("event", (seq,))), None)

    def unknown_effects(self, thread: str) -> list[int]:
        found = self._run(SQL["unknown_effects_of"], (thread,)) if thread else self._run(SQL["unknown_effects"])
        return [row[0] for row in found]

    def usage(self, after: int, root: str, limit: int) -> list[EventRow]:
        if not root:
            return self._event_rows("usage", (after, limit))
        key = self._value("thread_key", (root,))
        return [] if key is None else self._event_rows("usage_of", (key, after, limit))

    def first_begun(self, since_ms: int) -> int | None:
        begun = self._value("first_begun", (since_ms,))
        return None if begun is None else columns.number(begun)

    def checkpoints(self, thread: str, after: int) -> list[EventRow]:
        if self._value("has_checkpoints") is None:
            return []  # a file of schema 1 that could only be opened for reading
        if not thread:
            return self._event_rows("checkpoints", (after,))
        return self._event_rows("checkpoints_of", (self._value("thread_key", (thread,)), after))

    def audit(self, after: int, limit: int) -> list[AuditRow]:
        if self._value("has_audit") is None:
            raise NotFound(
                "This journal has no audit chain yet: it is of an older format, and here it can only be read.",
                next_step="Begin one where the home can be written: every command that writes does.",
            )
        self.write_out()
        return self._audit_rows("audit", (after, limit))

    def _audit_rows(self, name: str, bindings: Sequence[Any]) -> list[AuditRow]:
        out = []
        for number, seq, kind, at_ms, thread, digest, link in self._run(SQL[name], bindings):
            given = columns.number(seq), columns.text(kind), columns.moment(at_ms), columns.text(thread)
            out.append(AuditRow(number, *given, columns.blob(digest), columns.blob(link)))
        return out

    def unaudited_events(self, after: int, through: int) -> Iterator[int]:
        return (row[0] for row in self._run(SQL["unaudited_events"], (after, through, _AUDITED)))

    def thread(self, thread: str) -> Thread | None:
        return self._one("thread", thread, Thread)

    def threads(self, query: ThreadQuery) -> list[Thread]:
        at, before = query.before or _AFTER_ALL
        if query.children or query.deleted:
            given = (query.project, query.children, query.deleted, at, before, query.limit)
            return self._all("threads_any", given, Thread)
        if query.project:
            return self._all("threads_project", (query.project, at, before, query.limit), Thread)
        return self._all("threads_recent", (at, before, query.limit), Thread)

    def tree(self, root: str) -> list[Thread]:
        return self._all("tree", (root,), Thread)

    def busy(self, root: str) -> list[Thread]:
        return self._all("busy", (root,), Thread)

    def owned(self) -> list[Thread]:
        return self._all("owned", (), Thread)

    def unerased(self) -> list[str]:
        return [row[0] for row in self._run(SQL["unerased"]) if columns.text(row[0])]

    def items(self, thread: str, after: int, limit: int, *, newest: bool = False) -> list[ItemRow]:
        base = (self._thread_key(thread) or 0) << ORDINAL_BITS
        name = "items_newest" if newest else "items"
        found = self._run(SQL[name], (base + after, base + _ORDINALS, limit))
        rows = [self._item_row(thread, row) for row in found]
        return rows[::-1] if newest else rows

    def item_range(self, thread: str, first: int, last: int) -> list[ItemRow]:
        base = (self._thread_key(thread) or 0) << ORDINAL_BITS
        found = self._run(SQL["items"], (base + first - 1, base + last + 1, -1))
        return [self._item_row(thread, row) for row in found]

    def turn(self, turn: str) -> TurnRow | None:
        return next(iter(self._turn_rows("turn", (turn,))), None)

    def turns(self, thread: str, *, live: bool) -> list[TurnRow]:
        key = self._value("thread_key", (thread,))
        return self._turn_rows("live_turns" if live else "turns", (key,))

    def queued(self) -> list[TurnRow]:
        return self._turn_rows("queued", ())

    def first_kept(self, since_ms: int) -> int | None:
        found = self._value("first_kept", (since_ms,))
        return None if found is None else columns.number(found)

    def interaction(self, interaction: str) -> Interaction | None:
        return self._one("interaction", interaction, Interaction)

    def interactions(self, root: str, *, pending: bool) -> list[Interaction]:
        return self._all("pending_interactions" if pending else "interactions", (root,), Interaction)

    def turn_interactions(self, turn: str) -> list[Interaction]:
        return self._all("turn_interactions", (turn,), Interaction)

    def command(self, command: str) -> Command | None:
        return self._one("command", command, Command)

    def commands(self, thread: str) -> list[Command]:
        return self._all("commands", (thread,), Command)

    def grant(self, grant: str) -> Grant | None:
        return self._one("grant", grant, Grant)

    def grants(self) -> list[Grant]:
        return self._all("grants", (), Grant)

    def handle(self, protocol: str, scope: str, external_id: str) -> Handle | None:
        for thread, deleted_ms in self._run(SQL["handle"], (protocol, scope, external_id)):
            return Handle(protocol, scope, external_id, columns.text(thread), columns.moment(deleted_ms))
        return None

    def handles(self, thread: str) -> list[Handle]:
        found = self._run(SQL["handles_of"], (thread,))
        return [
            Handle(columns.text(protocol), columns.text(scope), columns.text(name), columns.text(here))
            for protocol, scope, name, here in found
        ]

    def mirror(self, path: str) -> Mirror | None:
        for kind, thread, through, size, digest in self._run(SQL["mirror"], (path,)):
            told = columns.number(through), columns.number(size)
            return Mirror(path, columns.text(kind), columns.text(thread), *told, columns.text(digest))
        return None

    def mirrors(self, thread: str) -> list[Mirror]:
        found = [columns.text(row[0]) for row in self._run(SQL["mirrors_of"], (thread,))]
        return [row for path in found if (row := self.mirror(path)) is not None]

    def projects(self) -> list[Project]:
        return [Project(*map(columns.text, row)) for row in self._run(SQL["projects"])]

    def key(self, scope: str, key: str) -> KeyRow | None:
        for row in self._run(SQL["key"], (scope, key)):
            digest, turn, thread = map(columns.text, row[:3])
            return KeyRow(scope, key, digest, turn, thread, columns.moment(row[3]))
        return None

    def matches(self, words: Sequence[str]) -> Iterator[tuple[str, int]]:
        # Every word is a quoted string, so nothing a person types can be syntax; the star makes it a prefix.
        query = " AND ".join(f'"{word}"*' for word in words)
        for (key,) in self._run(SQL["matches"], (query,)):
            yield self._thread_id(key >> ORDINAL_BITS), key & (_ORDINALS - 1)

    # --- changing ------------------------------------------------------------------------------------------------
    def set_marks(self, *, pruned_through: int, signals_through: int) -> None:
        self._run(SQL["set_marks"], (pruned_through, signals_through))

    def insert_events(self, rows: Sequence[EventRow]) -> None:
        """Kept until they are read or the transaction ends, so that many jobs share one statement. Their keys are
        looked up now: an event that names what is not there fails its own job."""
        keep = self.waiting.append
        threads, turns, kinds = self._keys.threads, self._keys.turns, self._keys.kinds
        last: tuple[str, str, str] | None = None
        for row in rows:
            if last is None or row.turn is not last[0] or row.thread is not last[1] or row.kind is not last[2]:
                last = row.turn, row.thread, row.kind
                root = threads.get(row.root) or self._thread_key(row.root)
                thread = None if row.thread == row.root else self._thread_key(row.thread)
                turn = turns.get(row.turn) or self._turn_key(row.turn)
                kind = kinds.get(row.kind) or self._kind_code(row.kind)
            keep((row.seq, kind, row.at_ms, root, thread, turn, row.sum, row.body))

    def write_out(self) -> None:
        """Many rows per statement: each statement gives the interpreter lock away once, not once per row."""
        self._write_many("insert_event", _INSERT_EVENTS, self.waiting)
        links = self._bound() if self._unbound else []
        self._write_many("insert_audit", _INSERT_AUDITS, [astuple(row) for row in links])
        # Not before all are written: whoever fails in between must not lose what others wrote.
        self.waiting.clear()
        self._unbound.clear()
        if links:
            self.audit_head = links[-1]

    def _bound(self) -> list[AuditRow]:
        last = self.audit_head or next(iter(self._audit_rows("audit_head", ())), None)
        return bound(last, self._unbound)

    def _write_many(self, one: str, many: str, rows: Sequence[tuple[Any, ...]]) -> None:
        at = 0
        while len(rows) - at >= _MANY:
            flat: list[Any] = []
            for row in rows[at : at + _MANY]:
                flat += row
            self._run(many, flat)
            at += _MANY
        if at < len(rows):
            self._many(SQL[one], rows[at:])

    def insert_unknown(self, seq: int, thread: str) -> None:
        self._run(SQL["insert_unknown"], (seq, thread))

    def insert_audit(self, event: Unbound) -> None:
        """Kept as events are."""
        self._unbound.append(event)

    def insert_checkpoint(self, seq: int, thread: str) -> None:
        self._run(SQL["insert_checkpoint"], (seq, self._thread_key(thread)))

    def drop_deltas(self, after: int, through: int) -> tuple[int, int]:
        self.write_out()
        sizes = [row[0] for row in self._run(SQL["drop_deltas"], (after, through))]
        return len(sizes), sum(sizes)

    def drop_signals(self, before_ms: int, keep: int) -> tuple[int, int]:
        if self._value("signal_kinds") is None:
            return 0, 0
        self.write_out()
        gone = [row[0] for row in self._run(SQL["drop_old_signals"], (before_ms, keep))]
        return len(gone), max(gone, default=0)

    def insert_thread(self, thread: Thread) -> None:
        root = 0 if thread.root == thread.id else self._thread_key(thread.root)
        given = (thread.id, root, thread.project, thread.parent, thread.depth)
        state = (thread.updated_ms, thread.deleted_ms, thread.owner, encode(thread))
        key = self._value("insert_thread", (*given, *state))
        if not root:
            self._run(SQL["own_root"], (key,))

    def save_thread(self, thread: Thread) -> None:
        given = (thread.project, thread.updated_ms, thread.deleted_ms, thread.owner, encode(thread), thread.id)
        self._run(SQL["save_thread"], given)

    def insert_item(self, row: ItemRow, text: str) -> None:
        if not 0 < row.ordinal < _ORDINALS:
            raise ValueError(f"ordinal out of range: {row.ordinal}")
        key = ((self._thread_key(row.thread) or 0) << ORDINAL_BITS) + row.ordinal
        own = self._value("own_turn_key", (row.turn, key >> ORDINAL_BITS)) if row.turn else None
        turn = row.turn if own is None else own
        self._run(SQL["insert_item"], (key, row.id, turn, row.at_ms, row.origin, row.sum, packed(row.body)))
        if text:
            self._run(SQL["index_item"], (key, text))

    def insert_turn(self, row: TurnRow) -> None:
        turn = row.turn
        state = (turn.state.value, row.started_seq, turn.finished_ms, _turn_body(row))
        self._run(SQL["insert_turn"], (turn.id, self._thread_key(turn.thread), *state))

    def save_turn(self, row: TurnRow) -> None:
        turn = row.turn
        state = (turn.state.value, row.started_seq, turn.finished_ms, _turn_body(row))
        self._run(SQL["save_turn"], (*state, turn.id))

    def put_interaction(self, interaction: Interaction) -> None:
        one = interaction
        given = (one.id, one.root, one.thread, one.turn, one.decision is None, one.holds, packed(encode(one)))
        self._run(SQL["put_interaction"], given)

    def put_command(self, command: Command) -> None:
        self._run(SQL["put_command"], (command.id, command.thread, command.outcome is None, packed(encode(command))))

    def put_grant(self, grant: Grant) -> None:
        self._run(SQL["put_grant"], (grant.id, grant.thread, bool(grant.revoked_ms), encode(grant)))

    def insert_handle(self, handle: Handle) -> None:
        name = (handle.protocol, handle.scope, handle.external_id)
        self._run(SQL["insert_handle"], (*name, handle.thread, handle.deleted_ms))

    def drop_handles(self, thread: str, at_ms: int) -> None:
        self._run(SQL["drop_handles"], (at_ms, thread))

    def drop_handle(self, handle: Handle, at_ms: int) -> None:
        self._run(SQL["drop_handle"], (at_ms, handle.protocol, handle.scope, handle.external_id))

    def put_mirror(self, mirror: Mirror) -> None:
        self._run(SQL["put_mirror"], astuple(mirror))

    def insert_project(self, project: Project) -> None:
        self._run(SQL["insert_project"], (project.id, project.root, project.name))

    def put_key(self, row: KeyRow) -> None:
        self._run(SQL["put_key"], (row.scope, row.key, row.digest, row.turn, row.thread, row.at_ms))

    def drop_keys(self, before_ms: int) -> None:
        self._run(SQL["drop_keys"], (before_ms,))

    def erase_some(self, thread: str, limit: int) -> int:
        self.write_out()
        here = self.thread(thread)
        root = self._thread_key(here.root if here else thread)
        deleted = self._keys.kind_code("thread.deleted")
        doomed = self._run(SQL["doomed_events"], (root, self._thread_key(thread), deleted, limit)).fetchall()
        if doomed:
            self._many(SQL["drop_event"], doomed)
            self._many(SQL["drop_unknown"], doomed)
            self._many(SQL["drop_checkpoint"], doomed)
            return len(doomed)
        items = self.items(thread, 0, limit)
        base = (self._thread_key(thread) or 0) << ORDINAL_BITS
        for row in items:
            body = item_of(row).body
            if not isinstance(body, Damaged) and (text := text_of(body)):
                self._run(SQL["unindex_item"], (base + row.ordinal, text))
            self._run(SQL["drop_item"], (base + row.ordinal,))
        return len(items)

    def erase_rest(self, thread: str) -> None:
        self._run(SQL["drop_turns"], (self._thread_key(thread),))
        for name in ("drop_interactions", "drop_commands", "drop_grants", "drop_thread_keys", "drop_mirrors"):
            self._run(SQL[name], (thread,))
        self._run(SQL["mark_erased"], (thread,))


def _turn_body(row: TurnRow) -> bytes:
    return packed(encode(replace(row, turn=replace(row.turn, id="", thread=""))))
