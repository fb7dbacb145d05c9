"""Opening a home's journal: the log is looked at, the file checked and brought up to date, the owner lock taken."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import apsw

import quintet
from quintet.domain.errors import QuintetError, StorageDamaged, StorageFull, StorageReadOnly, VersionMismatch
from quintet.domain.ids import new_id
from quintet.domain.ports import Clock
from quintet.journal import owners, wal
from quintet.journal.checking import later_tables
from quintet.journal.clock import SystemClock
from quintet.journal.commit import CEILING_STEP, JUMP
from quintet.journal.faults import as_storage_error
from quintet.journal.home import Home, this_boot
from quintet.journal.migration import CURRENT, Schema, bring_up
from quintet.journal.sqlite import SqliteStore
from quintet.journal.sqlite_rows import SqliteRows
from quintet.journal.statements import SQL, number
from quintet.journal.store import OpenReport
from quintet.journal.stored import StoredJournal
from quintet.journal.writer import BUSY_MS

OLDEST_SQLITE = (3, 51, 3)  # before it, two writers could corrupt a log while it was being reset
_CUT_WAIT_MS = 200
_WRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
_READ = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


class _Opened:
    """What opening leaves behind, made in a thread so that the loop goes on."""

    def __init__(self) -> None:
        self.writing: apsw.Connection | None = None
        self.lock: owners.OwnerLock | None = None
        self.report = OpenReport()
        self.source = ""
        self.flags = _WRITE


async def open_journal(
    home: Path,
    *,
    protocol: str,
    clock: Clock | None = None,
    boot_id: str | None = None,
    read_only: bool = False,
    schema: Schema = CURRENT,
    vfs: str | None = None,
) -> StoredJournal:
    """The journal of this home. One that cannot be written is opened for reading, and says so in its report.
    `vfs` names another file layer of SQLite, through which tests watch or break its writes."""
    place = Home(home)
    try:
        boot = boot_id or this_boot()
        opened = await asyncio.to_thread(_open, place, protocol, boot, schema, vfs, read_only=read_only)
        store = SqliteStore(
            place,
            clock=clock or SystemClock(),
            report=opened.report,
            lock=opened.lock,
            owner=opened.lock.id if opened.lock else new_id("own"),
            version=schema.version,
            writing=opened.writing,
            connect=lambda: connect(opened.source, opened.flags, vfs),
        )
    except (apsw.Error, OSError, UnicodeDecodeError) as error:
        raise as_storage_error(error) from error
    journal = StoredJournal(store)
    if opened.writing is not None:
        await journal.finish_erasures()
    return journal


def _open(place: Home, protocol: str, boot: str, schema: Schema, vfs: str | None, *, read_only: bool) -> _Opened:
    if _sqlite_version() < OLDEST_SQLITE:
        raise VersionMismatch(f"SQLite {apsw.sqlite_lib_version()} is too old for several processes at one file.")
    full = False
    for last_try in (False, True) if not read_only else ():
        try:
            place.prepare()
            return _open_for_writing(place, protocol, boot, schema, vfs)
        except (OSError, apsw.Error, StorageReadOnly, UnicodeDecodeError) as error:
            known = as_storage_error(error)
            if isinstance(known, StorageFull) and not last_try:
                place.free_reserve()  # what it was kept for: a process must be able to start and say what is wrong
                continue
            if not isinstance(known, StorageReadOnly | StorageFull) or not _holds_anything(place.database):
                raise _about(known, place) from error
            full = isinstance(known, StorageFull)
            break
    return _open_for_reading(place, schema, full=full)


def _holds_anything(path: str) -> bool:
    return os.path.exists(path) and os.path.getsize(path) > 0


def _about(error: QuintetError, place: Home) -> QuintetError:
    if isinstance(error, StorageReadOnly):
        return StorageReadOnly(f"{error.message} Home: {place.path}.", home=place.path)
    return error


def _sqlite_version() -> tuple[int, ...]:
    return tuple(int(n) for n in apsw.sqlite_lib_version().split("."))


def connect(source: str, flags: int = _WRITE, vfs: str | None = None) -> apsw.Connection:
    connection = apsw.Connection(source, flags=flags, vfs=vfs, statementcachesize=200)
    connection.set_busy_timeout(BUSY_MS)
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _open_for_writing(place: Home, protocol: str, boot: str, schema: Schema, vfs: str | None) -> _Opened:
    opened = _Opened()
    opened.source = place.database
    with owners.Gate(place.run):
        _refuse_half_repaired(place)
        living = owners.living(place.run, tidy=True)
        walked, saved = wal.Walk(), ""
        opened.writing = connection = connect(place.database, _WRITE, vfs)
        try:
            # A file that is refused is left as it was found: closing it does not fold its log in.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            frames = _check_file(connection, place, alone=not living)
            if not living:
                walked = wal.walk(place.log, frames)
                saved = wal.save_aside(place.log) if walked.lost else ""
            connection.execute("PRAGMA secure_delete = ON").fetchall()
            connection.execute("PRAGMA journal_size_limit = 8388608").fetchall()
            migrated, backup = bring_up(connection, place, schema, living, boot)
            _check_tables(connection)
            if walked.dropped:
                _cut_log(connection)
            _note_boot(connection, boot, dropped=walked.dropped > 0, lost=walked.lost > 0)
            opened.lock = owners.OwnerLock(place.run, boot_id=boot, version=quintet.__version__, protocol=protocol)
            place.keep_reserve()
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        except BaseException:
            connection.close()
            raise
    opened.report = OpenReport(
        wal_frames=walked.frames,
        wal_dropped=walked.dropped,
        wal_lost=walked.lost,
        saved_as=saved,
        migrated_from=migrated,
        backup=backup,
    )
    return opened


def _refuse_half_repaired(place: Home) -> None:
    if os.path.exists(place.repairing):
        raise StorageDamaged("A repair of the journal was cut off.", next_step="Run `quintet repair` again.")


def _open_for_reading(place: Home, schema: Schema, *, full: bool) -> _Opened:
    """Without a lock and without a log of our own. A file nobody can write beside is read as it lies there."""
    _refuse_half_repaired(place)
    if not os.path.exists(place.database):
        raise StorageReadOnly(f"There is no journal in {place.path}, and none can be made.", home=place.path)
    opened = _Opened()
    opened.report = OpenReport(read_only=True, full=full)
    opened.flags = _READ
    name = f"file:{escaped(place.database)}"
    sources = [f"{name}?mode=ro"]
    if not os.path.exists(place.log) or os.path.getsize(place.log) == 0:
        sources.append(f"{name}?immutable=1")
    failure: Exception | None = None
    for opened.source in sources:
        try:
            _look_at(opened.source, schema)
            return opened
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError) as error:
            failure = error
    raise StorageReadOnly(f"The journal in {place.path} cannot even be read.", home=place.path) from failure


def _look_at(source: str, schema: Schema) -> None:
    connection = connect(source, _READ)
    try:
        version = number(connection, "PRAGMA user_version")
        if version > schema.version:
            raise VersionMismatch(f"The journal was written by a newer Quintet (format {version}).", found=version)
        _check_tables(connection)
    finally:
        connection.close()


def escaped(path: str) -> str:
    """As it stands in a file: URI."""
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _check_file(connection: apsw.Connection, place: Home, *, alone: bool) -> int:
    """Whether this can be a database at all, and is as long as it says when no log could complete it. Returns how many
    frames of its log SQLite finds good and committed; nothing is written.

    SQLite is asked for all of it: it checks a long log fifty times faster than we could, and a descriptor of our own
    would, when closed, drop the locks of every other connection of this process.
    """
    path = place.database
    try:
        pages = number(connection, "PRAGMA page_count")
        ((_, frames, _),) = connection.execute("PRAGMA wal_checkpoint(NOOP)").fetchall()
    except apsw.NotADBError:
        raise StorageDamaged(f"{path} is not a database.", path=path) from None
    except apsw.CorruptError:
        raise StorageDamaged(f"{path} is damaged or ends too early.", path=path) from None
    size, needed = os.stat(path).st_size, pages * number(connection, "PRAGMA page_size")
    good = max(0, int(frames or 0))  # -1 where there is no log
    if alone and not good and size < needed:
        raise StorageDamaged(f"{path} ends too early: {size} bytes of {needed}.", path=path)
    return good


def _check_tables(connection: apsw.Connection) -> None:
    """A glance at both ends of every table; a whole check belongs to `quintet doctor --deep`."""
    found = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()]
    version = number(connection, "PRAGMA user_version")
    missing = _TABLES.union(later_tables(version)) - set(found)
    if missing:
        raise StorageDamaged(f"The journal has lost its tables {', '.join(sorted(missing))}.")
    for table in ("events", "items", "threads", "turns"):
        connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid LIMIT 1").fetchall()  # noqa: S608
        connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid DESC LIMIT 1").fetchall()  # noqa: S608
    try:
        SqliteRows(connection).counter()
    except apsw.CorruptError:
        raise StorageDamaged("The journal has lost its counter.") from None


_TABLES = {"counter", "kinds", "threads", "events", "items", "turns", "interactions", "commands", "grants", "handles"}


def _cut_log(connection: apsw.Connection) -> None:
    """Fold the log in and empty it: stale frames behind new ones would confuse whoever opens it next. A reader that
    is in the way is not waited for; then the next one to open does this."""
    connection.set_busy_timeout(_CUT_WAIT_MS)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.set_busy_timeout(BUSY_MS)


def _note_boot(connection: apsw.Connection, boot: str, *, dropped: bool, lost: bool) -> None:
    """After a reboot, or behind a bad frame, numbers may have been used and lost: go on from the synced ceiling. Where
    commits were lost, one that raised the ceiling may be among them: go on far behind it."""
    known = connection.execute(SQL["counter"]).fetchall()[0][2]
    if known != boot or dropped:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        if lost:
            connection.execute(SQL["raise_ceiling"], (number(connection, "SELECT ceiling FROM counter") + JUMP,))
        connection.execute(SQL["new_boot"], (CEILING_STEP, boot))
        connection.execute("COMMIT")
