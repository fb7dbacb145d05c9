"""Names that were lost with their rows, found again: a checksum covers the names, so it proves a guess right."""

from __future__ import annotations

import re
from typing import Any

import apsw
import msgspec
from msgspec.structs import replace

from quintet.domain import event as ev
from quintet.domain.decoding import decode
from quintet.domain.event import KIND_BY_NAME
from quintet.domain.ids import new_id
from quintet.domain.thread import Thread, ThreadSettings
from quintet.journal.codec import encode, event_sum, item_sum
from quintet.journal.packing import unpacked
from quintet.journal.sqlite_rows import ORDINAL_BITS

TITLE = "(recovered)"
_SAMPLES = 24
_ID = re.compile(rb"thr_[0-9a-z]{26}")
_EVENTS = (
    "SELECT e.seq, coalesce(k.name, ''), e.at_ms, coalesce(u.id, ''), e.sum, e.body, coalesce(t.id, '') "
    "FROM events e LEFT JOIN kinds k ON k.code = e.kind LEFT JOIN turns u ON u.key = e.turn "
    "LEFT JOIN threads t ON t.key = coalesce(e.thread, e.root) "
)
_LOST_THREADS = (
    "SELECT DISTINCT key FROM (SELECT root AS key FROM events UNION SELECT thread FROM events "
    "UNION SELECT key >> 24 FROM items) WHERE key > 0 AND key NOT IN (SELECT key FROM threads) ORDER BY key"
)


def fetched(connection: apsw.Connection, sql: str, bindings: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    return connection.execute(sql, bindings).fetchall()


def name_kinds(new: apsw.Connection) -> None:
    """A code whose row is gone has the one name under which its events' checksums are right."""
    lost = fetched(new, "SELECT DISTINCT kind FROM events WHERE kind NOT IN (SELECT code FROM kinds)")
    taken = {row[0] for row in fetched(new, "SELECT name FROM kinds")}
    for (code,) in lost:
        sample = fetched(new, _EVENTS + "WHERE e.kind = ? LIMIT ?", (code, _SAMPLES))
        for name in KIND_BY_NAME.keys() - taken:
            if any(event_sum(e[0], name, e[2], e[6], e[3], unpacked(e[5])) == e[4] for e in sample):
                durability = KIND_BY_NAME[name].durability.value
                new.execute("INSERT INTO kinds VALUES (?, ?, ?)", (code, name, durability))
                taken.add(name)
                break


def name_threads(new: apsw.Connection, now_ms: int) -> tuple[int, int]:
    """(threads whose row was made anew, threads whose name nobody knows). The latter get a hidden row, so that their
    key is never given to another thread."""
    guesses = _guesses(new)
    recovered = unnamed = 0
    for key, name in fetched(new, "SELECT key, id FROM threads WHERE body = x''"):
        _put(new, _made_anew(new, key, name, now_ms), key)
        recovered += 1
    for (key,) in fetched(new, _LOST_THREADS):
        name = _name_of(new, key, guesses)
        if name:
            _put(new, _made_anew(new, key, name, now_ms), key)
            recovered += 1
            continue
        unnamed += 1
        hidden = new_id("thr")
        blank = Thread(hidden, hidden, "", "", ThreadSettings(""), now_ms, now_ms, TITLE, deleted_ms=now_ms)
        _put(new, blank, key, erased=True)  # nothing of it is known to be wanted gone
    _join_roots(new)
    return recovered, unnamed


def _guesses(new: apsw.Connection) -> list[str]:
    """Every thread that other rows speak of and that has no row."""
    found: set[str] = set()
    for table in ("interactions", "commands", "grants", "handles", "keys", "unknown_effects"):
        found |= {row[0] for row in fetched(new, f"SELECT DISTINCT thread FROM {table}")}  # noqa: S608
    bodies = "SELECT body FROM events WHERE instr(body, CAST('thr_' AS BLOB)) UNION ALL SELECT body FROM threads"
    for (body,) in fetched(new, bodies):
        found |= {name.decode() for name in _ID.findall(unpacked(body))}
    return sorted(found - {row[0] for row in fetched(new, "SELECT id FROM threads")} - {""})


def _events_of(new: apsw.Connection, key: int) -> list[Any]:
    where = "WHERE (e.root = ?1 AND e.thread IS NULL) OR e.thread = ?1 ORDER BY e.seq LIMIT ?2"
    return fetched(new, _EVENTS + where, (key, _SAMPLES))


def _name_of(new: apsw.Connection, key: int, guesses: list[str]) -> str:
    base = key << ORDINAL_BITS
    items = fetched(
        new,
        "SELECT i.key - ?1, i.id, coalesce(u.id, i.turn), i.at_ms, i.origin, i.body, i.sum FROM items i "
        "LEFT JOIN turns u ON u.key = i.turn WHERE i.key > ?1 AND i.key < ?1 + (1 << ?2) LIMIT ?3",
        (base, ORDINAL_BITS, _SAMPLES),
    )
    events = _events_of(new, key)
    for name in guesses:
        if any(event_sum(e[0], e[1], e[2], name, e[3], unpacked(e[5])) == e[4] for e in events) or any(
            item_sum(name, i[0], i[1], i[2], i[3], i[4], unpacked(i[5])) == i[6] for i in items
        ):
            guesses.remove(name)
            return name
    return ""


def _made_anew(new: apsw.Connection, key: int, name: str, now_ms: int) -> Thread:
    """As its first event tells it, if that is still there; else only its name. One that was deleted stays deleted."""
    made = Thread(name, name, "", "", ThreadSettings(""), now_ms, now_ms)
    for event in _events_of(new, key):
        if event[1] == "thread.created":
            try:
                made = decode(unpacked(event[5]), ev.ThreadCreated).thread
            except msgspec.MsgspecError:
                continue
    found = fetched(
        new,
        "SELECT max(at_ms) FROM events WHERE ((root = ?1 AND thread IS NULL) OR thread = ?1) "
        "AND kind = (SELECT code FROM kinds WHERE name = 'thread.deleted')",
        (key,),
    )
    deleted = found[0][0] or 0
    fields: dict[str, Any] = {"id": name, "title": f"{TITLE} {made.title}".strip(), "deleted_ms": deleted}
    for (turn,) in fetched(new, "SELECT id FROM turns WHERE thread = ? AND state = 'running'", (key,)):
        fields |= {"owner": new_id("own"), "active_turn": turn}  # an owner that is dead: recovery ends the turn
    return replace(made, **fields)


def _put(new: apsw.Connection, thread: Thread, key: int, *, erased: bool = False) -> None:
    at = (thread.updated_ms, thread.deleted_ms, int(erased), thread.owner, encode(thread))
    row = (key, thread.id, key, thread.project, thread.parent, thread.depth, *at)
    new.execute("INSERT OR REPLACE INTO threads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def _join_roots(new: apsw.Connection) -> None:
    """A thread made anew finds the key of its root again, once all of them have a row."""
    for key, root, body in fetched(new, "SELECT key, root, body FROM threads"):
        above = decode(body, Thread).root
        found = fetched(new, "SELECT key FROM threads WHERE id = ?", (above,))
        if found and found[0][0] != root:
            new.execute("UPDATE threads SET root = ? WHERE key = ?", (found[0][0], key))
