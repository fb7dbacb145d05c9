"""Whether a journal is whole: SQLite's own check, every checksum, every body. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw
import msgspec

from quintet.domain.command import Command
from quintet.domain.decoding import decode
from quintet.domain.grant import Grant
from quintet.domain.interaction import Interaction
from quintet.domain.item import Damaged
from quintet.domain.thread import Thread
from quintet.journal import reading
from quintet.journal.codec import item_of
from quintet.journal.packing import unpacked
from quintet.journal.rows import TurnRow
from quintet.journal.sqlite_rows import ORDINAL_BITS, SqliteRows
from quintet.journal.statements import number

BODIES = {
    "threads": Thread,
    "turns": TurnRow,
    "interactions": Interaction,
    "commands": Command,
    "grants": Grant,
}
TABLES = (*BODIES, "events", "items", "kinds", "unknown_effects", "handles", "projects", "keys", "counter")
_SINCE = {"checkpoints": 2, "audit": 3}  # tables that later schemas brought
_PAGE = 2_000
Progress = Callable[[str, int, int], None]  # what is being done, how far, of how much


class Found(msgspec.Struct):
    """What a look at every row gave. `wrong` says in words what SQLite or a missing row is wrong about."""

    rows: dict[str, int] = {}
    damaged_events: int = 0
    damaged_items: int = 0
    undecoded: int = 0
    wrong: str = ""

    @property
    def whole(self) -> bool:
        return not (self.wrong or self.damaged_events or self.damaged_items or self.undecoded)


def later_tables(version: int) -> tuple[str, ...]:
    """What a file of this schema has beside the first tables; one whose version is damaged should have all."""
    return tuple(table for table, since in _SINCE.items() if not 0 < version < since)


def look_at(connection: apsw.Connection, progress: Progress = lambda _, __, ___: None) -> Found:
    """Every row of it. Raises nothing for damage: that is what it is to find."""
    found = Found()
    try:
        said = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
        if said != ["ok"]:
            found.wrong = " ".join(said[0].split())
            return found
        version = number(connection, "PRAGMA user_version")
        for table in (*TABLES, *later_tables(version)):
            found.rows[table] = number(connection, f"SELECT count(*) FROM {table} NOT INDEXED")  # noqa: S608
        if found.rows["counter"] != 1:
            found.wrong = "The counter is missing."
        _look_at_events(connection, found, progress)
        _look_at_items(connection, found)
        _look_at_bodies(connection, found)
    except (apsw.Error, msgspec.MsgspecError, ValueError, TypeError) as error:
        found.wrong = str(error) or type(error).__name__
    return found


def _look_at_events(connection: apsw.Connection, found: Found, progress: Progress) -> None:
    rows, after = SqliteRows(connection), 0
    last = rows.counter().next
    while page := reading.decoded(rows, rows.events(after, "", _PAGE)):
        found.damaged_events += sum(event.damaged for event in page)
        after = page[-1].seq
        progress("checking events", after, last)


def _look_at_items(connection: apsw.Connection, found: Found) -> None:
    rows = SqliteRows(connection)
    threads: dict[Any, Any] = {row[0]: row[1] for row in connection.execute("SELECT key, id FROM threads NOT INDEXED")}
    sql = "SELECT key, id, turn, at_ms, origin, sum, body FROM items"
    for row in connection.execute(sql):
        item = rows._item_row(threads.get(row[0] >> ORDINAL_BITS, ""), row)
        found.damaged_items += isinstance(item_of(item).body, Damaged)


def _look_at_bodies(connection: apsw.Connection, found: Found) -> None:
    for table, kind in BODIES.items():
        for (body,) in connection.execute(f"SELECT body FROM {table} NOT INDEXED"):  # noqa: S608
            try:
                decode(unpacked(body), kind)
            except msgspec.MsgspecError:
                found.undecoded += 1
