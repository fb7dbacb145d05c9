"""Salvage: what pages of a damaged journal still say, written into a new one. A row finds its table by its shape, so
that a lost schema or a lost page above it costs nothing. Derived things are made anew, numbers are never given twice.
"""

from __future__ import annotations

from typing import Any

import apsw
import msgspec
from msgspec.structs import replace

from quintet.domain.decoding import decode
from quintet.domain.ids import new_id
from quintet.domain.item import Damaged, text_of
from quintet.domain.thread import Thread
from quintet.journal.checking import BODIES, Progress
from quintet.journal.codec import encode, item_of
from quintet.journal.commit import CEILING_STEP, JUMP
from quintet.journal.home import this_boot
from quintet.journal.naming import fetched, name_kinds, name_threads
from quintet.journal.packing import unpacked
from quintet.journal.pages import INDEX_INNER, INDEX_LEAF, TABLE_LEAF, Leaf, Pages
from quintet.journal.sqlite_rows import ORDINAL_BITS, SqliteRows
from quintet.journal.statements import SQL, number

_PLAUSIBLE = 1 << 50
_MOST_THREADS = 1 << 32
_MOST_EVENT = (_PLAUSIBLE, _MOST_THREADS, _MOST_THREADS, _PLAUSIBLE)

# Per table: the type of each column. k the rowid, i integer, t text, b body, ? may be empty, - integer or text; and
# how an id in the second column begins, where two tables look alike.
_SHAPES: dict[str, tuple[str, str]] = {
    "counter": ("k i i t i i t", ""),
    "kinds": ("k t t", ""),
    "audit": ("k i t i t b b", ""),
    "threads": ("k t i t t i i i i t b", "thr_"),
    "events": ("k i i i? i? i? i b", ""),
    "unknown_effects": ("k t", "thr_"),
    "items": ("k t - i t i b", ""),
    "turns": ("k t i t i i b", "trn_"),
    "interactions": ("k t t t t i i b", "int_"),
    "commands": ("k t t i b", "cmd_"),
    "grants": ("k t t i b", "grt_"),
    "handles": ("k t t t t i", ""),
    "mirrors": ("k t t t i i t", ""),
    "projects": ("k t t t", "prj_"),
}
_TYPES: dict[str, tuple[type, ...]] = {
    "k": (type(None),),
    "i": (int,),
    "i?": (int, type(None)),
    "t": (str,),
    "b": (bytes, str),
    "-": (int, str),
}
_COLUMNS = {t: ([_TYPES[c] for c in shape.split()], start) for t, (shape, start) in _SHAPES.items()}
_KEYS = (str, str, str, str, str, int)


class Salvaged(msgspec.Struct):
    """What was lost or invented on the way; what was kept is counted in the new file."""

    read: int = 0
    lost: dict[str, int] = {}
    recovered_threads: int = 0
    unnamed_threads: int = 0
    unreadable_pages: int = 0
    turn_sequence: int = 0

    def lose(self, table: str, count: int = 1) -> None:
        if count > 0:
            self.lost[table] = self.lost.get(table, 0) + count


def salvage(pages: Pages, new: apsw.Connection, now_ms: int, progress: Progress) -> Salvaged:
    """Fill a new, empty journal. The caller commits nothing else beside it."""
    out = Salvaged(unreadable_pages=pages.unreadable())
    new.execute("BEGIN IMMEDIATE")
    new.execute("DELETE FROM counter; DELETE FROM audit")
    for leaf in pages.leaves((TABLE_LEAF,)):
        progress("reading pages", leaf.page, pages.count)
        _take(leaf, new, out)
    for leaf in pages.leaves((INDEX_LEAF, INDEX_INNER)):
        rows = [r for _, r in leaf.rows if len(r) == 6 and all(map(isinstance, r, _KEYS))]
        new.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?, ?, ?, ?, ?)", rows)
        out.read += len(rows)
    if out.read:
        name_kinds(new)
        out.recovered_threads, out.unnamed_threads = name_threads(new, now_ms)
        out.lose("threads", out.unnamed_threads)
        _settle(new, out)
        _index(new, progress)
        _count_on(new, out)
    new.execute("COMMIT")
    return out


def _table_of(rowid: int, values: list[Any]) -> str:
    for table, (columns, start) in _COLUMNS.items():
        if len(columns) != len(values) or not all(map(isinstance, values, columns)):
            continue
        if not start or values[1].startswith(start):
            return table if rowid > 0 else ""
    return ""


def _take(leaf: Leaf, new: apsw.Connection, out: Salvaged) -> None:
    """The rows of one page are of one table; those that do not look like it are lost to it."""
    tables = [_table_of(rowid or 0, values) for rowid, values in leaf.rows]
    known = [t for t in tables if t]
    if not known:
        for _, values in leaf.rows:
            if len(values) == 2 and values[0] == "turns" and isinstance(values[1], int):
                out.turn_sequence = max(out.turn_sequence, values[1] if values[1] < _PLAUSIBLE else 0)
        return
    table = max(set(known), key=known.count)
    out.lose(table, leaf.bad)
    for (rowid, values), own in zip(leaf.rows, tables, strict=True):
        row = [rowid, *values[1:]]
        if own != table or not _keepable(table, row):
            out.lose(table)
            continue
        marks = ", ".join("?" * len(row))
        try:
            new.execute(f"INSERT INTO {table} VALUES ({marks})", row)  # noqa: S608
            out.read += 1
        except apsw.ConstraintError:
            out.lose(table)


def _plausible(table: str, row: list[Any]) -> bool:
    """A flipped bit in a key must not make all later keys of its kind enormous."""
    match table:
        case "counter":
            return bool(row[0] == 1)
        case "events":
            return all(0 < (n or 1) < most for n, most in zip((row[0], *row[3:6]), _MOST_EVENT, strict=True))
        case "items":
            return bool(row[0] >> ORDINAL_BITS < _MOST_THREADS)
        case "threads":
            return bool(row[0] < _MOST_THREADS)
    return bool(row[0] < _PLAUSIBLE)


def _keepable(table: str, row: list[Any]) -> bool:
    """Bodies without a checksum must at least be what they are; columns that repeat the body follow it."""
    if not _plausible(table, row):
        return False
    if table not in BODIES:
        return True
    try:
        body = decode(unpacked(row[-1]), BODIES[table])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        if table == "threads":
            row[-1] = b""  # its id is still known: a new body is made from it
            return True
        return False
    if table == "threads":
        row[3:8] = [body.project, body.parent, body.depth, body.updated_ms, body.deleted_ms]
        row[9] = body.owner
    elif table == "turns":
        row[3:6] = [body.turn.state.value, body.started_seq, body.turn.finished_ms]
    elif table == "grants":
        row[3] = int(bool(body.revoked_ms))
    else:
        row[5 if table == "interactions" else 3] = int(
            (body.decision if table == "interactions" else body.outcome) is None
        )
    return bool(table == "turns" or body.id == row[1])


def _settle(new: apsw.Connection, out: Salvaged) -> None:
    """What rows say of each other: the last ordinal of a thread, keys of turns that must not be given again."""
    for key, body in fetched(new, "SELECT key, body FROM threads WHERE deleted_ms = 0"):
        thread = decode(unpacked(body), Thread)
        base = key << ORDINAL_BITS
        inside = (base, base + (1 << ORDINAL_BITS))
        last, count = fetched(new, "SELECT max(key), count(*) FROM items WHERE key > ? AND key < ?", inside)[0]
        ordinal = max(thread.last_ordinal, (last or base) - base)
        out.lose("items", ordinal - count)
        if ordinal != thread.last_ordinal:
            new.execute(
                "UPDATE threads SET body = ? WHERE key = ?", (encode(replace(thread, last_ordinal=ordinal)), key)
            )
    lost = "SELECT count(DISTINCT turn) FROM events WHERE turn NOT IN (SELECT key FROM turns)"
    out.lose("turns", number(new, lost))
    named = number(new, "SELECT max(turn) FROM events")
    new.execute("DELETE FROM checkpoints")
    new.execute(SQL["find_checkpoints"])
    highest = max(out.turn_sequence, named, number(new, "SELECT max(key) FROM turns"))
    new.execute("DELETE FROM sqlite_sequence WHERE name = 'turns'")
    new.execute("INSERT INTO sqlite_sequence VALUES ('turns', ?)", (highest,))


def _index(new: apsw.Connection, progress: Progress) -> None:
    """The words of every good item, as they were indexed when it was written."""
    rows = SqliteRows(new)
    threads = dict(fetched(new, "SELECT key, id FROM threads"))
    total = number(new, "SELECT count(*) FROM items")
    found = new.execute("SELECT key, id, turn, at_ms, origin, sum, body FROM items")
    for n, row in enumerate(found):
        progress("indexing words", n, total)
        body = item_of(rows._item_row(threads.get(row[0] >> ORDINAL_BITS, ""), row)).body
        if not isinstance(body, Damaged) and (text := text_of(body)):
            new.execute(SQL["index_item"], (row[0], text))


def _count_on(new: apsw.Connection, out: Salvaged) -> None:
    """Behind every number that was given or may have been."""
    given = "SELECT seq FROM events UNION ALL SELECT seq FROM unknown_effects UNION ALL SELECT started_seq FROM turns"
    top = fetched(new, f"SELECT coalesce(max(seq), 0) FROM ({given}) WHERE seq < ?", (_PLAUSIBLE,))[0][0] + 1  # noqa: S608
    old = fetched(new, SQL["counter"])
    following, ceiling, _, pruned, signals, store = old[0] if old else (1, 1, "", 0, 0, "")
    counts = [n for n in (following, ceiling) if 0 < n < _PLAUSIBLE]
    # Always far behind: a log that is gone may have raised the ceiling, and numbers are plenty.
    start = -(-max(top, *counts, 1) // CEILING_STEP) * CEILING_STEP + JUMP
    if not old:
        out.lose("counter")
        store = new_id("own")
    pruned, signals = (n if 0 <= n < start else 0 for n in (pruned, signals))
    new.execute("DELETE FROM counter")
    row = (start, start + CEILING_STEP, this_boot(), pruned, signals, store)
    new.execute("INSERT INTO counter VALUES (1, ?, ?, ?, ?, ?, ?)", row)
