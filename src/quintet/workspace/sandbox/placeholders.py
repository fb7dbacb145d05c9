"""Empty directories made on disk so that something can be laid over an absent name, and taken away again.

Removing a directory takes away whatever any command, of any process, has laid over it. So every command holds a shared
lock on each name it covers, and a directory is removed only by who holds it alone. The locks are in a file of the home
that no command can reach; the directory itself is locked too, for processes of other homes, but nobody waits for that:
a command could hold it. Names are written down before they are made: what a killed process left, the next one removes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator

from quintet.domain.errors import Busy
from quintet.workspace.sandbox.name_locks import NameLocks

_TRIES = 100
_PAUSE_S = 0.01
WITHIN_S = 2.0  # for a lock that others hold for a few system calls
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Moved(Exception):
    """Something that was looked at is no longer there, or no longer what it was: look again. Mostly it was another
    command's, which has just ended."""


class Placeholders:
    """Of one command in one workspace. `notes` is the file that remembers, `locks` the home's file of locks."""

    def __init__(self, notes: str, locks: str) -> None:
        self._notes = notes
        self._locks = NameLocks(locks)
        self._held: list[int] = []

    def make(self, absent: Iterable[str], covered: Iterable[str]) -> set[str]:
        """Make the absent ones, and hold every directory that is going to be covered. Gives those that cannot be made:
        a command, which may do less than we, cannot make them either."""
        absent, covered = list(absent), list(covered)
        refused: set[str] = set()
        try:
            # Held before they are noted: nobody else drops the note of a name that is held.
            for place in dict.fromkeys([*absent, *covered]):
                _within(lambda place=place: self._locks.shared(place), place)  # type: ignore[misc]
            with _notes(self._notes) as (names, write):
                if not set(absent) <= names:
                    write(names | set(absent))
            for place in dict.fromkeys([*absent, *covered]):
                if not self._hold(place, make=place in absent):
                    refused.add(place)
        except BaseException:
            self.release()
            raise
        return refused

    def _hold(self, place: str, *, make: bool) -> bool:
        for _ in range(_TRIES):
            if make and not _made(place):
                return False
            try:
                handle = os.open(place, _DIRECTORY)
            except OSError as error:
                if error.errno == errno.ENOENT and make:
                    continue
                raise Moved(place) from error  # it was there as something else, or went away
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if _still(handle, place):
                self._held.append(handle)
                return True
            os.close(handle)
        raise Moved(place)

    def release(self) -> None:
        for handle in self._held:
            os.close(handle)
        self._held.clear()
        self._locks.close()


def tidy(notes: str, locks: str) -> None:
    """Remove the directories named in the notes that are empty and that nobody covers; the rest stays noted. Raises
    Busy where somebody else is at the notes for long."""
    with contextlib.suppress(FileNotFoundError), _notes(notes, create=False) as (names, write):
        ours = NameLocks(locks)
        try:
            left = {name for name in sorted(names, key=len, reverse=True) if not (ours.alone(name) and _gone(name))}
            if left != names:
                write(left)
            if not left:
                os.unlink(notes)
        finally:
            ours.close()


def _gone(place: str) -> bool:
    """Whether there is nothing left to do about this name."""
    try:
        handle = os.open(place, _DIRECTORY)
    except OSError:
        return True  # somebody made something else of it, or it is gone
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return False  # in use, or on a file system without such locks: then it is not ours to remove
    try:
        if _still(handle, place):
            os.rmdir(place)
        return True
    except OSError:
        return True  # not empty: it became somebody's own
    finally:
        os.close(handle)


def _made(place: str) -> bool:
    try:
        os.mkdir(place)
    except FileExistsError:
        return True
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return False
        raise
    return True


def _still(handle: int, place: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(place))
    except OSError:
        return False


def _within(take: Callable[[], bool], place: str) -> None:
    """Take a lock that is free again soon, or say that it is not."""
    until = time.monotonic() + WITHIN_S
    while not take():
        if time.monotonic() > until:
            raise Busy(f"{place} is in use by another process of Quintet's.", next_step="Try again.")
        time.sleep(_PAUSE_S)


def _alone(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _Writer:
    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __call__(self, names: set[str]) -> None:
        data = b"\0".join(sorted(os.fsencode(name) for name in names))
        os.pwrite(self._handle, data, 0)  # before it is cut, so that a full disk loses no name
        os.ftruncate(self._handle, len(data))


@contextlib.contextmanager
def _notes(path: str, *, create: bool = True) -> Iterator[tuple[set[str], _Writer]]:
    """The names noted, held alone."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
        try:
            _within(lambda handle=handle: _alone(handle), path)  # type: ignore[misc]
            if not _still(handle, path):
                continue  # removed while we waited
            text = os.pread(handle, os.fstat(handle).st_size, 0)
            yield {os.fsdecode(name) for name in text.split(b"\0") if name}, _Writer(handle)
            return
        finally:
            os.close(handle)
