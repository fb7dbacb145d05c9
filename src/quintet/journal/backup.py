"""Whole copies of the journal: one beside it before its format changes, and snapshots for backups, checked row by row.

A copy is made from one reading transaction, so others may go on writing meanwhile.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import apsw

from quintet.domain.errors import StorageDamaged
from quintet.journal.checking import Found, Progress, look_at
from quintet.journal.faults import as_storage_error
from quintet.journal.home import Home, private_directory, sync_directory

_READ = apsw.SQLITE_OPEN_READONLY


def back_up(connection: apsw.Connection, home: Home, label: str) -> str:
    """A whole copy, private, complete on disk before its name is there."""
    if private_directory(home.backups):
        sync_directory(home.path)
    path = os.path.join(home.backups, f"quintet-{stamp()}-{label}.db")
    draft = f"{path}.part"
    _copy(connection, draft)
    os.rename(draft, path)
    sync_directory(home.backups)
    return path


def snapshot(home: Path, target: str, progress: Progress = lambda _, __, ___: None) -> Found:
    """The journal as it stands, at a path of the caller's; every row of the copy is looked at. Blocking."""
    place = Home(home)
    try:
        connection = apsw.Connection(place.database, flags=_READ)
        try:
            _copy(connection, target)
        finally:
            connection.close()
        copy = apsw.Connection(target, flags=_READ)
        try:
            return look_at(copy, progress)
        finally:
            copy.close()
    except apsw.CantOpenError:
        raise StorageDamaged(
            f"There is no journal in {place.path}.", next_step="Name its home with `--home`."
        ) from None
    except (apsw.Error, OSError) as error:
        raise as_storage_error(error) from error


def stamp() -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


def _copy(connection: apsw.Connection, target: str) -> None:
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
    connection.execute("VACUUM INTO ?", (target,))
    fd = os.open(target, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
