"""Where the sandbox keeps its own things: temporary directories of threads, an empty file, notes of names it made.

All of it lies in the home's run directory, or where there is none to be had, in a directory of this user in the
system's temporary directory. Commands see none of it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator

from quintet.domain.errors import StorageReadOnly
from quintet.workspace.sandbox.command_trees import remove

_PRIVATE = 0o700


class Rooms:
    def __init__(self, home: str = "") -> None:
        self._home = home
        self._base = ""
        self._lock = -1
        self._own = ""  # this process's part of `scratch`

    @property
    def base(self) -> str:
        if not self._base:
            self._base = self._found()
        return self._base

    def _found(self) -> str:
        if os.path.isdir(self._home):  # making it is not our business
            with contextlib.suppress(OSError):
                return self._made(os.path.join(os.path.realpath(self._home), "run", "sandbox"))
        import tempfile  # dear, and not needed where there is a home

        place = os.path.join(os.path.realpath(tempfile.gettempdir()), f"quintet-{os.getuid()}")
        try:
            made = self._made(place)
            facts = os.lstat(made)
            # Anybody can make names in a temporary directory: it must be ours and nobody else's.
            if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
                raise PermissionError(13, "it belongs to somebody else")
        except OSError as error:
            raise StorageReadOnly(f"Commands cannot be confined: {place} cannot be used: {error.strerror}.") from error
        return made

    @staticmethod
    def _made(place: str) -> str:
        os.makedirs(os.path.dirname(place), _PRIVATE, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(place, _PRIVATE)
        if not os.access(place, os.W_OK):
            raise PermissionError(13, "it cannot be written")
        return place

    def blank(self) -> str:
        """An empty file that can be laid over others."""
        place = os.path.join(self.base, "blank")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return place

    def notes(self, workspace: str) -> str:
        """The file that remembers which names were made in a workspace."""
        directory = self._made(os.path.join(self.base, "masks"))
        name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:32]
        return os.path.join(directory, name)

    def locks(self) -> str:
        """The file with the locks on those names; it stays."""
        return os.path.join(self.base, "locks")

    def all_notes(self) -> list[str]:
        directory = os.path.join(self.base, "masks")
        with contextlib.suppress(OSError):
            return [os.path.join(directory, name) for name in sorted(os.listdir(directory))]
        return []

    def scratch(self, thread: str) -> str:
        """A thread's temporary directory, the same one until this process closes."""
        if not self._own:
            directory = self._made(os.path.join(self.base, "scratch"))
            _sweep(directory)
            self._lock, self._own = _claim(directory)
        return self._made(os.path.join(self._own, hashlib.sha256(thread.encode()).hexdigest()[:24]))

    def close(self) -> None:
        if self._own:
            remove(self._own)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self._own}.lock")
            os.close(self._lock)
            self._own = ""


def _claim(directory: str) -> tuple[int, str]:
    """A name of our own. Its lock is held for our life, so that others can tell a dead owner from a living one."""
    while True:
        own = os.path.join(directory, secrets.token_hex(8))
        handle = os.open(f"{own}.lock", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:  # else somebody swept it away before we held it
            os.mkdir(own, _PRIVATE)
            return handle, own
        os.close(handle)


def _sweep(directory: str) -> None:
    """Remove what dead processes left."""
    for name in os.listdir(directory):
        if name.endswith(".lock"):
            with contextlib.suppress(OSError), _dead(os.path.join(directory, name)):
                remove(os.path.join(directory, name.removesuffix(".lock")))
                os.unlink(os.path.join(directory, name))


@contextlib.contextmanager
def _dead(lock: str) -> Iterator[None]:
    handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
