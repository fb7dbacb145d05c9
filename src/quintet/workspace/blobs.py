"""Blobs: contents kept under the hash of their bytes, `<home>/blobs/ab/<sha256>`. Blocking.

Several processes share the store. A blob is whole and on disk before its name is there; what is put again becomes young
again, and only what has been old for an hour is ever swept. Knows nothing of files, calls or who names a blob.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import zlib
from collections.abc import Collection, Iterator, Sequence

from quintet.domain.errors import StorageDamaged, StorageFull, StorageReadOnly
from quintet.domain.ports import Clock

YOUNG_S = 3600.0
SIZE_LIMIT = 512 * 1024 * 1024  # of one blob when it is unpacked: nothing larger is ever put in
_MANY = 16  # files that are worth one request for all of them
_FAST = 1  # zlib's level: these are small texts, kept for days
_PIECE = 256 * 1024  # packed at a time: half as dear as to make room for all of a large blob at once
_PASSING = ".passing-"  # a blob that has no name yet; one that is old was left by a process that died


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Blobs:
    def __init__(self, home: str, clock: Clock) -> None:
        self._root = os.path.join(home, "blobs")
        self._clock = clock

    def put(self, data: bytes, *, packed: bool = True) -> str:
        """Keep these bytes; their digest. On disk when this returns."""
        return self.put_all([data], packed=packed)[0]

    def put_all(self, contents: Sequence[bytes], *, packed: bool = True) -> list[str]:
        """Keep many at once: one wait for the disk instead of one for each."""
        digests = [digest_of(data) for data in contents]
        new: dict[str, str] = {}  # digest -> where it lies until it gets its name
        try:
            missing = dict(zip(digests, contents, strict=True))
            with self._lock(fcntl.LOCK_SH):
                missing = {digest: data for digest, data in missing.items() if not self._touch(digest)}
            self._make_room(missing)
            for digest, data in missing.items():
                new[digest] = self._write(digest, data, _FAST if packed else 0)
            if new:
                self._name(new)
        except BaseException as error:
            for path in new.values():
                with contextlib.suppress(OSError):
                    os.unlink(path)
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StorageFull("There is no space left to put files aside before they are changed.") from error
            if isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise StorageReadOnly("Files cannot be put aside: Quintet's directory is not writable.") from error
            raise
        return digests

    def get(self, digest: str) -> bytes | None:
        """The bytes; None when they are not kept. A damaged blob is told, never served."""
        try:
            with open(self._path(digest), "rb") as file:
                packed = file.read()
        except FileNotFoundError:
            return None
        unpacker = zlib.decompressobj()
        try:
            data = unpacker.decompress(packed, SIZE_LIMIT)
        except zlib.error:
            data = b""
        if digest_of(data) != digest:
            raise StorageDamaged(
                f"The kept content {digest[:12]} is damaged on disk and was not used.",
                next_step=f"Keep the file blobs/{digest[:2]}/{digest} for a look at it; files it stood for cannot be"
                " brought back from here.",
            )
        return data

    def refresh(self, digest: str) -> bool:
        """Make a blob young again, so that no process sweeps it within the hour. False when it is not there."""
        with self._lock(fcntl.LOCK_SH):
            return self._touch(digest)

    def refreshed_ns(self, digest: str) -> int:
        """When it was last put or refreshed; 0 when it is not there."""
        try:
            return os.stat(self._path(digest)).st_mtime_ns
        except FileNotFoundError:
            return 0

    def sweep(self, keep: Collection[str]) -> tuple[int, int]:
        """Remove what nobody keeps and has been old for an hour. (how many, bytes)"""
        wanted = keep if isinstance(keep, set | frozenset) else set(keep)
        count = size = 0
        for path in self._old():
            if os.path.basename(path) in wanted:
                continue
            # Looked at again under the lock: it may have been put again since it was listed.
            with self._lock(fcntl.LOCK_EX), contextlib.suppress(FileNotFoundError):
                found = os.lstat(path)
                if self._is_old(found):
                    os.unlink(path)
                    count, size = count + 1, size + found.st_size
        return count, size

    def _old(self) -> Iterator[str]:
        for directory in self._directories():
            with os.scandir(directory) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        if entry.is_file(follow_symlinks=False) and self._is_old(entry.stat(follow_symlinks=False)):
                            yield entry.path

    def _directories(self) -> list[str]:
        try:
            with os.scandir(self._root) as entries:
                return sorted(entry.path for entry in entries if len(entry.name) == 2)
        except FileNotFoundError:
            return []

    def _is_old(self, found: os.stat_result) -> bool:
        return found.st_mtime < self._clock.now_ms() / 1000 - YOUNG_S

    def _path(self, digest: str) -> str:
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise ValueError(f"{digest[:80]!r} is not a digest")
        return os.path.join(self._root, digest[:2], digest)

    def _touch(self, digest: str) -> bool:
        now = self._clock.now_ms() * 1_000_000
        try:
            os.utime(self._path(digest), ns=(now, now))
        except FileNotFoundError:
            return False
        return True

    def _make_room(self, digests: Collection[str]) -> None:
        made = [_private(os.path.join(self._root, name)) for name in {digest[:2] for digest in digests}]
        if any(made):
            _sync(self._root)

    def _write(self, digest: str, data: bytes, level: int) -> str:
        directory = os.path.dirname(self._path(digest))
        path = os.path.join(directory, _PASSING + os.urandom(8).hex())
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            packer = zlib.compressobj(level)
            for first in range(0, len(data), _PIECE):
                file.write(packer.compress(memoryview(data)[first : first + _PIECE]))
            file.write(packer.flush())
            now = self._clock.now_ms() * 1_000_000
            file.flush()
            os.utime(handle, ns=(now, now))
        return path

    def _name(self, new: dict[str, str]) -> None:
        """Bytes first, then names, then the directories that hold the names."""
        _sync_all(list(new.values()))
        for digest, path in new.items():
            os.replace(path, self._path(digest))
        _sync_all(list({os.path.dirname(path) for path in new.values()}))

    @contextlib.contextmanager
    def _lock(self, kind: int) -> Iterator[None]:
        """Those who add share it; a sweep has it alone for each blob it takes."""
        _private(self._root)
        handle = os.open(os.path.join(self._root, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, kind)
            yield
        finally:
            os.close(handle)


def _private(path: str) -> bool:
    """Whether it was made now."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return False
    return True


def _sync_all(paths: Sequence[str]) -> None:
    """One request for the whole file system where there are many files and the system knows it."""
    if len(paths) < _MANY or not _sync_file_system(paths[0]):
        for path in paths:
            _sync(path)


def _sync_file_system(path: str) -> bool:
    import ctypes  # only here, and late: few calls need it

    request = getattr(ctypes.CDLL(None), "syncfs", None)
    if request is None:
        return False
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return bool(request(handle) == 0)
    finally:
        os.close(handle)


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
