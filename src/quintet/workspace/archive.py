"""Archive: a home as one tar file, in pieces, never whole in memory. The journal in it is a snapshot made before.

Left out: keys (they are asked for again), what belongs to running processes or was left by dead ones, logs, and earlier
backups.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from typing import BinaryIO

SNAPSHOT = "quintet.db"
_LEFT_OUT = frozenset({"credentials", "run", "backups", "server.json", "reserve", "quintet.db-wal", "quintet.db-shm"})
_PASSING = ("quintet.log", ".")  # files without a name yet begin with a dot: one of them holds the server's token
_PIECE = 1 << 20


def archived(home: str, snapshot: str) -> Iterator[bytes]:
    """The bytes of the tar file. What it says of a file is true of the moment that file was read."""
    for name, path in _files(home, snapshot):
        try:
            with open(path, "rb", opener=_unfollowed) as file:
                yield from _member(name, file)
        except FileNotFoundError:
            continue  # tidied away meanwhile; nothing in the snapshot needs it any more
    yield bytes(2 * tarfile.BLOCKSIZE)


def _member(name: str, file: BinaryIO) -> Iterator[bytes]:
    """Its head, as many bytes as that promises (a file that shrinks meanwhile is filled up, one that grows is cut),
    and what fills the last block."""
    found = os.fstat(file.fileno())
    head = tarfile.TarInfo(name)
    head.size, head.mtime, head.mode = found.st_size, int(found.st_mtime), 0o600
    yield head.tobuf(tarfile.PAX_FORMAT)
    left = head.size
    while left:
        piece = file.read(min(left, _PIECE)) or bytes(min(left, _PIECE))
        left -= len(piece)
        yield piece
    yield bytes(-head.size % tarfile.BLOCKSIZE)


def _unfollowed(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)


def _files(home: str, snapshot: str) -> Iterator[tuple[str, str]]:
    yield SNAPSHOT, snapshot
    for directory, names, files in os.walk(home):
        if directory == home:
            names[:] = sorted(set(names) - _LEFT_OUT)
            files = [f for f in files if f not in _LEFT_OUT and f != SNAPSHOT and not f.startswith(_PASSING)]
        for file in sorted(files):
            path = os.path.join(directory, file)
            if not os.path.islink(path) and os.path.isfile(path):
                yield os.path.relpath(path, home), path
