"""The home directory as the journal needs it: private directories, the database file, the reserve for a full disk."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

RESERVE_BYTES = 2 * 1024 * 1024
_SPARE_BYTES = 1024 * 1024  # beyond the reserve, before writing is allowed again


class Home:
    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.database = os.path.join(self.path, "quintet.db")
        self.log = f"{self.database}-wal"
        self.repairing = f"{self.database}.repairing"  # there while a repair exchanges the files
        self.run = os.path.join(self.path, "run")
        self.backups = os.path.join(self.path, "backups")
        self.reserve = os.path.join(self.path, "reserve")

    def prepare(self) -> None:
        """Make what is missing, private from the first moment, and its names lasting."""
        parent = os.path.dirname(self.path)
        missing = _missing(self.path)
        if parent:
            os.makedirs(parent, exist_ok=True)
        private_directory(self.path)
        for made in missing:
            sync_directory(os.path.dirname(made))
        private_directory(self.run)
        if not os.path.exists(self.database):
            # SQLite gives the log and its index the permissions of this file.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.database, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            sync_directory(self.path)

    def take_reserve(self) -> bool:
        """Put the reserve aside, if it is not there. False when there is no room for it."""
        try:
            fd = os.open(self.reserve, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            if os.fstat(fd).st_size < RESERVE_BYTES:
                _allocate(fd, RESERVE_BYTES)
            return True
        except OSError:
            self.free_reserve()
            return False
        finally:
            os.close(fd)

    def keep_reserve(self) -> None:
        """At opening: take it if it is missing and there is room; else the first refused write will ask again."""
        if not self.has_reserve():
            self.room_again()

    def has_reserve(self) -> bool:
        return os.path.exists(self.reserve)

    def free_reserve(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.reserve)

    def free_bytes(self) -> int:
        try:
            found = os.statvfs(self.path)
        except OSError:
            return 0
        return found.f_bavail * found.f_frsize

    def room_again(self) -> bool:
        """Whether space has returned: enough for the reserve, which is taken at once, and some more."""
        return self.free_bytes() >= RESERVE_BYTES + _SPARE_BYTES and self.take_reserve()


def private_directory(path: str) -> bool:
    """Whether it was made now."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return False
    os.chmod(path, 0o700)  # whatever the umask took away from ourselves
    return True


def _missing(path: str) -> list[str]:
    """Of this directory and those above it, the ones that are not there, the highest first."""
    found: list[str] = []
    while path and not os.path.exists(path):
        found.insert(0, path)
        path = os.path.dirname(path)
    return found


def sync_directory(path: str) -> None:
    """Make names in it last: a file that is synced may still lose its name with the power. A directory that may not
    be read cannot be synced; SQLite goes on then, and so do we."""
    try:
        fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems keep names safe by themselves and know no such request
            raise
    finally:
        os.close(fd)


def this_boot() -> str:
    """Names this run of the machine. Elsewhere than on Linux: when it was booted, to the minute."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        import time

        return f"boot-{int(time.time() - time.monotonic()) // 60}"


def _allocate(fd: int, size: int) -> None:
    """Real blocks, not a hole: a reserve that is not there when the disk is full is none."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
    else:
        os.pwrite(fd, os.urandom(size), 0)
