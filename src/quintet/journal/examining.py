"""Examining: the journal's part of a check-up. Blocking; changes nothing, also while others write.

A quick look is SQLite's own check, up to a size that takes no time worth telling; `deep` looks at every row and at the
words that searching stands on.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import apsw

from quintet.domain.checkpoint import FileChange
from quintet.domain.checkup import Row, fail, ok, warn
from quintet.domain.errors import Busy, QuintetError
from quintet.domain.event import CheckpointSettled, FilesRestored
from quintet.journal import audit, reading, wal
from quintet.journal.checking import Found, Progress, look_at
from quintet.journal.faults import as_storage_error
from quintet.journal.home import Home
from quintet.journal.migration import CURRENT
from quintet.journal.peeking import living, looked
from quintet.journal.sqlite_rows import SqliteRows
from quintet.journal.statements import number

QUICK_BYTES = 64 * 1024 * 1024
FORMAT_WITH_CHECKPOINTS = 2
FORMAT_WITH_AUDIT = 3
AHEAD_MS = 5 * 60 * 1000
_NAME = "journal"
_DEEP = "every row is checked by `quintet doctor --deep`"
_REPAIR = "quintet repair"


def _silent(_: str, __: int, ___: int) -> None:
    pass


def examine(home: Path, *, deep: bool = False, progress: Progress = _silent) -> list[Row]:
    """The rows about the journal. What is wrong is a row, never an error."""
    place = Home(home)
    if not os.path.exists(place.database):
        return [ok(_NAME, "none yet; the first turn makes it")]
    try:
        return _examined(place, progress, deep=deep)
    except Busy as error:
        return [warn(_NAME, error.message, "quintet doctor")]
    except QuintetError as error:
        return [fail(_NAME, error.message, error.step)]
    except (apsw.Error, OSError) as error:
        known = as_storage_error(error)
        return [fail(_NAME, known.message, known.step)]


def changes_since(home: Path, since_ms: int) -> list[FileChange]:
    """What calls and undos changed in files since then, by the checkpoints of a journal that was found whole."""
    place = Home(home)
    if not os.path.exists(place.database):
        return []
    return looked(place, lambda connection: _changes(connection, since_ms))


def _changes(connection: apsw.Connection, since_ms: int) -> list[FileChange]:
    if number(connection, "PRAGMA user_version") < FORMAT_WITH_CHECKPOINTS:
        return []
    told = reading.checkpoints(SqliteRows(connection), "", 0)
    payloads = [event.payload for event in told if event.at_ms >= since_ms]
    return [c for p in payloads if isinstance(p, CheckpointSettled | FilesRestored) for c in p.changes]


def _examined(place: Home, progress: Progress, *, deep: bool) -> list[Row]:
    lost = _lost_frames(place)
    if lost:
        return [fail(_NAME, f"its log has {lost} whole pages behind a bad one, which SQLite will drop", _REPAIR)]
    size = os.path.getsize(place.database)
    return looked(place, lambda connection: _rows(connection, size, progress, deep=deep))


def _rows(connection: apsw.Connection, size: int, progress: Progress, *, deep: bool) -> list[Row]:
    connection.execute("BEGIN").fetchall()  # one picture, whatever others write meanwhile
    if deep:
        return [*_deeply(connection, size, progress), *_clock(connection)]
    if wrong := _quickly(connection, size):
        return [fail(_NAME, wrong, _REPAIR)]
    threads = number(connection, "SELECT count(*) FROM threads WHERE parent = '' AND deleted_ms = 0")
    older = number(connection, "PRAGMA user_version") < CURRENT.version
    upgrade = "; of an older format, brought up to date by the next command that writes" if older else ""
    looked_at = "" if size <= QUICK_BYTES else f"; too large for a quick look: {_DEEP}"
    return [ok(_NAME, f"opens, {threads} threads, {_mib(size)}{looked_at}{upgrade}"), *_clock(connection)]


def _lost_frames(place: Home) -> int:
    """Only where nobody writes, nor has begun to meanwhile: a log that grows cannot be read from outside."""
    if living(place) or not os.path.exists(place.log) or os.path.getsize(place.log) > QUICK_BYTES:
        return 0
    before = os.stat(place.log)
    lost = wal.walk(place.log).lost
    if not lost or living(place) or not os.path.exists(place.log):
        return 0
    after = os.stat(place.log)
    return lost if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns) else 0


def _quickly(connection: apsw.Connection, size: int) -> str:
    """What is wrong, in words."""
    if not _tables(connection):
        return "its tables are not there"
    if not number(connection, "SELECT count(*) FROM counter"):
        return "its counter is missing"
    if size > QUICK_BYTES:
        return ""
    said = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
    return "" if said == ["ok"] else f"SQLite finds it damaged: {' '.join(said[0].split())}"


def _tables(connection: apsw.Connection) -> bool:
    found = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return {"counter", "threads", "events", "items", "turns", "interactions", "words"} <= found


def _deeply(connection: apsw.Connection, size: int, progress: Progress) -> list[Row]:
    found = look_at(connection, progress)
    if not found.whole:
        return [fail(_NAME, _damage(found), _REPAIR)]
    rows = f"{found.rows['events']} events, {found.rows['items']} items"
    whole = ok(_NAME, f"whole: {rows}; every checksum, SQLite's own check and the search words agree, {_mib(size)}")
    return [whole, *_audit(connection, progress)]


def _audit(connection: apsw.Connection, progress: Progress) -> list[Row]:
    if number(connection, "PRAGMA user_version") < FORMAT_WITH_AUDIT:
        return []
    found = audit.verify(SqliteRows(connection), "", progress)
    if not found.flaws:
        return [ok("audit chain", f"whole: {found.rows} rows, each bound to the one before it")]
    words = f"broken in {len(found.flaws) + found.more_flaws} places, first: {found.flaws[0].words}"
    return [fail("audit chain", words, "quintet audit verify")]


def _damage(found: Found) -> str:
    counts = (
        (found.damaged_events, "events do not match their checksums"),
        (found.damaged_items, "items do not match their checksums"),
        (found.undecoded, "rows cannot be decoded"),
        (found.unfound, "items are not found by searching"),
        (found.leftover, "items that are gone are still found by searching"),
    )
    said = [f"{count} {words}" for count, words in counts if count]
    return "; ".join([*([found.wrong.rstrip(".")] if found.wrong else []), *said])


def _clock(connection: apsw.Connection) -> list[Row]:
    """Events dated in the future: the clock was ahead when they were written, or is behind now."""
    latest = number(connection, "SELECT at_ms FROM events ORDER BY seq DESC LIMIT 1")
    ahead_ms = latest - time.time_ns() // 1_000_000
    if ahead_ms <= AHEAD_MS:
        return []
    minutes = ahead_ms // 60_000
    return [
        warn(
            "journal's times",
            f"the newest event is dated {minutes} minutes ahead of this machine's clock",
            "Set the clock: `sudo timedatectl set-ntp true`",
        )
    ]


def _mib(size: int) -> str:
    return f"{size / 1024 / 1024:.1f} MiB"
