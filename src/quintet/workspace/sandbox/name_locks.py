"""Locks on names, all in one file: a byte for each name, wherever its digest says. Never waits.

The file is Quintet's own, so that no command can hold one of these; what the names are for is known elsewhere.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct


class NameLocks:
    """Of one holder: two of these exclude each other in one process too. Given up by closing, or by dying."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle = -1

    def shared(self, name: str) -> bool:
        return self._take(fcntl.F_RDLCK, name)

    def alone(self, name: str) -> bool:
        return self._take(fcntl.F_WRLCK, name)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _take(self, kind: int, name: str) -> bool:
        if self._handle < 0:
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        at = int.from_bytes(hashlib.sha256(os.fsencode(name)).digest()[:7], "big")
        try:
            # struct flock: kind, from the beginning, where, one byte, no process
            fcntl.fcntl(self._handle, fcntl.F_OFD_SETLK, struct.pack("hhqqi0q", kind, os.SEEK_SET, at, 1, 0))
        except (BlockingIOError, PermissionError):
            return False
        return True
