"""A Tree: single files below a directory, reached name by name without ever following a link. Blocking.

Knows what stands where and how to make something else stand there; not why, nor where the bytes are kept.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

from quintet.domain.errors import Invalid
from quintet.workspace.handles import open_below, open_file, replace, write_new

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
_PIECE = 1024 * 1024


class Seen(NamedTuple):
    """What tells whether a file was touched. ctime cannot be set by anybody, and moves with mode and owner too."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Seen:
        return cls(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class Tree:
    """Keeps a handle of the directory it was last in: neighbours are asked for one after the other."""

    def __init__(self, root: str) -> None:
        self._root = open_below(root, ())
        self._at: tuple[str, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()
        os.close(self._root)

    def look(self, path: str) -> os.stat_result | None:
        """What stands there; None when nothing does, or when it could only be reached through a link."""
        with contextlib.suppress(OSError), self._above(path) as (handle, name):
            return os.stat(name, dir_fd=handle, follow_symlinks=False)
        return None

    def missing_above(self, path: str) -> int:
        """How many of the directories above a path are not there."""
        names = path.split("/")[:-1]
        for depth in range(len(names), 0, -1):
            found = self.look("/".join(names[:depth]))
            if found is not None and stat.S_ISDIR(found.st_mode):
                return len(names) - depth
        return len(names)

    def link(self, path: str) -> bytes:
        with self._above(path) as (handle, name):
            return os.fsencode(os.readlink(name, dir_fd=handle))

    def read(self, path: str, limit: int) -> tuple[bytes | None, os.stat_result]:
        """The bytes of a regular file and what it was when they were read; None for the bytes beyond the limit."""
        with self._opened(path) as handle:
            found = os.fstat(handle)
            if found.st_size > limit:
                return None, found
            pieces: list[bytes] = []
            while piece := os.read(handle, min(_PIECE, limit + 1)):
                pieces.append(piece)
                if sum(map(len, pieces)) > limit:
                    return None, found
            return b"".join(pieces), found

    def hash(self, path: str, limit: int) -> str:
        """The digest of a large file without holding it; nothing beyond the limit."""
        digest, size = hashlib.sha256(), 0
        with self._opened(path) as handle:
            while piece := os.read(handle, _PIECE):
                digest.update(piece)
                size += len(piece)
                if size > limit:
                    return ""
        return digest.hexdigest()

    def place_file(self, path: str, data: bytes, mode: int) -> None:
        """Put a file there in one move; directories above it are made."""
        self._place(path, lambda handle, passing: write_new(handle, passing, data, mode & 0o7777))

    def place_link(self, path: str, target: bytes) -> None:
        self._place(path, lambda handle, passing: os.symlink(target, os.fsencode(passing), dir_fd=handle))

    def set_mode(self, path: str, mode: int) -> None:
        with self._opened(path) as handle:
            os.fchmod(handle, mode & 0o7777)

    def remove(self, path: str, *, directories: int = 0) -> None:
        """Take a file or link away, then as many directories above it as are named and empty."""
        self._leave()
        try:
            with self._above(path) as (handle, name):
                os.unlink(name, dir_fd=handle)
        except IsADirectoryError as error:
            raise Invalid(f"{path} is a directory now and was left as it is.") from error
        except OSError as error:
            if error.errno not in _NOT_THERE:
                raise
        for _ in range(directories):
            path = path.rpartition("/")[0]
            self._leave()
            try:
                with self._above(path) as (handle, name):
                    os.rmdir(name, dir_fd=handle)
            except OSError:
                return  # not empty, or gone: both are as it should be

    def _place(self, path: str, make: Callable[[int, str], None]) -> None:
        self._leave()
        try:
            with self._above(path, make=True) as (handle, name):

                def made(passing: str) -> None:
                    make(handle, passing)
                    self._clear(path, handle, name)

                replace(handle, name, made)
        except OSError as error:
            if error.errno not in (*_NOT_THERE, errno.EEXIST):
                raise
            raise Invalid(f"{path} cannot be put back: something that is no directory stands above it.") from error

    def _clear(self, path: str, handle: int, name: str) -> None:
        """A directory cannot be replaced by a file in one move; an empty one holds nothing and goes first."""
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
                try:
                    os.rmdir(name, dir_fd=handle)
                except OSError as error:
                    raise Invalid(f"{path} is a directory now, with files in it, and was left as it is.") from error

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        with self._above(path) as (directory, name):
            handle = open_file(directory, name)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            yield handle
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def _above(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        directory, _, name = path.rpartition("/")
        if self._at is None or self._at[0] != directory:
            self._leave()
            self._at = (directory, open_below(self._root, directory.split("/") if directory else (), make=make))
        yield self._at[1], name

    def _leave(self) -> None:
        if self._at is not None:
            os.close(self._at[1])
            self._at = None


def inner_path(root: str, path: str) -> str:
    """A path below the root, from the root, by its names alone; Invalid for one that leads elsewhere."""
    inner = os.path.relpath(os.path.join(root, path), root) if os.path.isabs(path) else path
    names = inner.split("/")
    if "\0" in inner or any(name in ("", os.curdir, os.pardir) for name in names):
        raise Invalid(f"{path[:200]!r} does not lie in the directory.")
    return inner
