"""A look into a journal without opening it as its processes do: no lock, no log, nothing brought up to date. For the
overview and the check-up; whatever is wrong comes as one of our errors.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw
import msgspec

from quintet.domain.decoding import decode
from quintet.domain.errors import Busy, QuintetError, StorageDamaged, VersionMismatch
from quintet.domain.thread import Thread
from quintet.journal import owners
from quintet.journal.faults import as_storage_error
from quintet.journal.home import Home
from quintet.journal.migration import CURRENT
from quintet.journal.opening import connect, escaped
from quintet.journal.packing import unpacked
from quintet.journal.statements import number

LOOKS = 5  # while processes come and go; each takes as long as the journal is large
T = TypeVar("T")
_READ = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


class Glance(msgspec.Struct, frozen=True):
    """The state of things, in numbers."""

    threads: int = 0
    running: int = 0
    interrupted: int = 0  # their process is gone; whoever opens them ends what was left
    waiting: int = 0  # requests without an answer
    newest: str = ""  # title
    newest_ms: int = 0
    newest_cwd: str = ""


def glance(home: Path) -> Glance | None:
    """None where there is no journal yet."""
    place = Home(home)
    if not os.path.exists(place.database):
        return None
    return looked(place, lambda connection: _glanced(place, connection))


def _glanced(place: Home, connection: apsw.Connection) -> Glance:
    roots = "FROM threads WHERE parent = '' AND deleted_ms = 0"
    owned = [str(owner) for (owner,) in connection.execute("SELECT owner FROM threads WHERE owner != ''")]
    alive = sum(owners.alive(place.run, owner) for owner in owned)
    newest = connection.execute(f"SELECT body {roots} ORDER BY updated_ms DESC LIMIT 1").fetchall()
    last = decode(unpacked(newest[0][0]), Thread) if newest else None
    return Glance(
        number(connection, f"SELECT count(*) {roots}"),
        alive,
        len(owned) - alive,
        number(connection, "SELECT count(*) FROM interactions WHERE pending = 1"),
        last.title if last else "",
        last.updated_ms if last else 0,
        last.settings.cwd if last else "",
    )


def mirror_sizes(home: Path) -> dict[str, int]:
    """The files that clients read themselves, each with its size when it was last written."""
    place = Home(home)
    if not os.path.exists(place.database):
        return {}
    return looked(place, _mirrors)


def _mirrors(connection: apsw.Connection) -> dict[str, int]:
    if number(connection, "PRAGMA user_version") < 4:
        return {}  # older formats knew none
    found = connection.execute("SELECT path, size FROM mirrors").fetchall()
    return {path: size for path, size in found if type(path) is str and type(size) is int}


def looked(place: Home, look: Callable[[apsw.Connection], T]) -> T:
    """What a look through a connection that reads only gives.

    Where nobody has the journal open and no log lies beside it, it is read as it lies there, without a lock: SQLite
    would otherwise leave an empty log and its index behind. If a process began to write meanwhile, what was seen may be
    half of one state and half of another, and says nothing: it is looked at again.
    """
    for _ in range(LOOKS):
        before = _still(place)
        try:
            found = _look(place, look, still=before is not None)
        except QuintetError:
            if before is None or _still(place) == before:
                raise
        else:
            if before is None or _still(place) == before:
                return found
    raise Busy("Others began and ended with the journal whenever it was looked at.", next_step="Look again.")


def _look(place: Home, look: Callable[[apsw.Connection], T], *, still: bool) -> T:
    try:
        if os.path.exists(place.repairing):
            raise StorageDamaged("A repair of the journal was cut off.", next_step="Run `quintet repair` again.")
        connection = connect(f"file:{escaped(place.database)}?{'immutable=1' if still else 'mode=ro'}", _READ)
        try:
            version = number(connection, "PRAGMA user_version")
            if version > CURRENT.version:
                raise VersionMismatch(f"The journal was written by a newer Quintet (format {version}).", found=version)
            return look(connection)
        finally:
            connection.close()
    except (apsw.Error, OSError, msgspec.MsgspecError) as error:
        raise as_storage_error(error) from error


def _still(place: Home) -> tuple[int, int, int] | None:
    """How the file lies there, as far as that can be told from outside; None where it may be written."""
    if os.path.exists(place.log) or living(place):
        return None
    try:
        about = os.stat(place.database)
    except OSError:
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns


def living(place: Home) -> list[owners.Owner]:
    try:
        return owners.living(place.run)
    except OSError:
        return []
