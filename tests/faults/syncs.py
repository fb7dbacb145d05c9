"""What of the journal's write-ahead log is surely on the disk: noted at each sync, and cut back to when power is lost.

kill -9 loses nothing that was written, since the system's cache outlives the process; only this takes unsynced bytes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import apsw

NAME = "noting-syncs"
_HEADER = 32
_SALTS = slice(16, 24)


def syncs_path(home: Path) -> Path:
    return home.parent / f"{home.name}.syncs"


class NotingSyncs(apsw.VFS):
    """A file layer of SQLite that writes down, after each sync of the log, how far the log was written before it."""

    def __init__(self, home: Path) -> None:
        syncs_path(home).unlink(missing_ok=True)
        self._notes = os.open(syncs_path(home), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.end, self.salts = 0, ""  # of the log, by whichever connection it was written
        super().__init__(NAME, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        return _Log(name, flags, self) if path.endswith("-wal") else apsw.VFSFile("", name, flags)

    def note(self, end: int, salts: str) -> None:
        os.write(self._notes, json.dumps([end, salts]).encode() + b"\n")


class _Log(apsw.VFSFile):
    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int], disk: NotingSyncs) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        if offset == 0:  # the log begins anew
            self._disk.end, self._disk.salts = len(data), bytes(data[_SALTS]).hex()
        else:
            self._disk.end = max(self._disk.end, offset + len(data))

    def xSync(self, flags: int) -> None:
        end, salts = self._disk.end, self._disk.salts
        super().xSync(flags)
        self._disk.note(end, salts)


def lose_unsynced(home: Path) -> int:
    """Power loss: of the log nothing is left but what was synced. How many bytes are gone."""
    log = home / "quintet.db-wal"
    notes = syncs_path(home).read_bytes().splitlines() if syncs_path(home).exists() else []
    if not notes or not log.exists():
        return 0  # killed before it wrote anything
    (home / "quintet.db-shm").unlink(missing_ok=True)
    head, before = log.read_bytes()[:_HEADER], log.stat().st_size
    synced = [end for end, salts in map(json.loads, notes) if salts == head[_SALTS].hex()]
    # One that begins anew does so when all of the old one is in the database, and synced there.
    keep = max(synced, default=min(len(head), _HEADER))
    if keep < before:
        os.truncate(log, keep)
    return max(0, before - keep)
