"""Whether a journal is whole: SQLite's own check, every checksum, every body, the search words. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw
import msgspec

from quintet.domain.command import Command
from quintet.domain.decoding import decode
from quintet.domain.grant import Grant
from quintet.domain.interaction import Interaction
from quintet.domain.item import Damaged, text_of
from quintet.domain.thread import Thread
from quintet.journal import reading
from quintet.journal.codec import item_of
from quintet.journal.packing import unpacked
from quintet.journal.rows import TurnRow
from quintet.journal.searching import words_of
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
_SINCE = {"checkpoints": 2, "audit": 3, "mirrors": 4}  # tables that later schemas brought
_PAGE = 2_000
Progress = Callable[[str, int, int], None]  # what is being done, how far, of how much


class Found(msgspec.Struct):
    """What a look at every row gave. `wrong` says in words what SQLite or a missing row is wrong about."""

    rows: dict[str, int] = {}
    damaged_events: int = 0
    damaged_items: int = 0
    undecoded: int = 0
    unfound: int = 0  # items with words that searching does not find
    leftover: int = 0  # items that are gone and still found
    wrong: str = ""

    @property
    def whole(self) -> bool:
        return not (self.wrong or self.damaged_events or self.damaged_items or self.undecoded or self.misfits)

    @property
    def misfits(self) -> int:
        return self.unfound + self.leftover


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
        _look_at_items(connection, found, progress)
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


def _look_at_items(connection: apsw.Connection, found: Found, progress: Progress) -> None:
    """Each item, and whether its words are among those that searching stands on."""
    rows, searchable = SqliteRows(connection), _searchable(connection)
    threads: dict[Any, Any] = {row[0]: row[1] for row in connection.execute("SELECT key, id FROM threads NOT INDEXED")}
    sql = "SELECT key, id, turn, at_ms, origin, sum, body FROM items"
    for place, row in enumerate(connection.execute(sql)):
        body = item_of(rows._item_row(threads.get(row[0] >> ORDINAL_BITS, ""), row)).body
        if isinstance(body, Damaged):
            found.damaged_items += 1
        elif row[0] not in searchable and words_of(text_of(body), most=1):
            found.unfound += 1
        searchable.discard(row[0])
        if place % _PAGE == 0:
            progress("checking items", place, found.rows["items"])
    found.leftover = len(searchable)


def _searchable(connection: apsw.Connection) -> set[Any]:
    """The keys of all items that some word leads to."""
    connection.execute("CREATE VIRTUAL TABLE temp.said USING fts5vocab(main, words, instance)").fetchall()
    try:
        return {row[0] for row in connection.execute("SELECT DISTINCT doc FROM temp.said")}
    finally:
        connection.execute("DROP TABLE temp.said").fetchall()


def _look_at_bodies(connection: apsw.Connection, found: Found) -> None:
    for table, kind in BODIES.items():
        for (body,) in connection.execute(f"SELECT body FROM {table} NOT INDEXED"):  # noqa: S608
            try:
                decode(unpacked(body), kind)
            except msgspec.MsgspecError:
                found.undecoded += 1
