"""The files of a repair: whether there is room, the copy of the old ones, the exchange, and the way back."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import time

from quintet.domain.errors import StorageFull
from quintet.journal.home import Home, private_directory, sync_directory

_SPARE = 1024 * 1024


def old_files(place: Home) -> list[str]:
    there = [path for path in (place.database, place.log) if os.path.exists(path)]
    return [*there, *sorted(glob.glob(f"{glob.escape(place.log)}.damaged*"))]


def check_room(place: Home) -> None:
    """For the copy of everything, and for a new file as large as file and log together."""
    sizes = {path: os.path.getsize(path) for path in old_files(place)}
    need(place, sum(sizes.values()) + sizes.get(place.database, 0) + sizes.get(place.log, 0))


def need(place: Home, size: int) -> None:
    free = place.free_bytes()
    if free < size + _SPARE:
        raise StorageFull(
            f"Repair needs {(size + _SPARE) >> 20} MiB in {place.path}, and {free >> 20} MiB are free.",
            next_step="Free disk space and run `quintet repair` again; nothing was changed.",
        )


def private_file(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)


def sync(path: str) -> None:
    if os.path.isdir(path):
        return sync_directory(path)
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def keep_copy(place: Home) -> str:
    """All the old files, on disk under their own names before this returns."""
    private_directory(place.backups)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    names = (os.path.join(place.backups, f"damaged-{stamp}{end}") for end in ("", *(f"-{n}" for n in range(2, 1000))))
    folder = next(name for name in names if not os.path.exists(name))
    private_directory(folder)
    for path in old_files(place):
        target = os.path.join(folder, os.path.basename(path))
        with open(path, "rb") as source, open(private_file(target), "wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
            copy.flush()
            os.fsync(copy.fileno())
    for directory in (folder, place.backups, place.path):
        sync(directory)
    return folder


def exchange(place: Home, new: str, folder: str) -> None:
    """Old file and log out, the new file in. Cut off anywhere, the marker keeps everybody from opening what is left,
    and the next repair begins with putting back what was copied."""
    with open(private_file(place.repairing), "wb") as marker:
        marker.write(os.path.basename(folder).encode())
        marker.flush()
        os.fsync(marker.fileno())
    sync(place.path)
    try:
        _clear(place)  # the log goes first: SQLite would play an old log over a new file
        if new:
            os.rename(new, place.database)
        sync(place.path)
    except OSError:
        finish_exchange(place)
        raise
    _unmark(place)


def finish_exchange(place: Home) -> bool:
    """Put the old files back where an exchange was cut off; whether there was one."""
    try:
        with open(place.repairing, encoding="utf-8") as marker:
            folder = os.path.join(place.backups, os.path.basename(marker.read()))
    except FileNotFoundError:
        return False
    drafts = []
    for path in (place.database, place.log):
        kept = os.path.join(folder, os.path.basename(path))
        if os.path.exists(kept):
            drafts.append((f"{path}.back", path))
            with open(kept, "rb") as source, open(private_file(f"{path}.back"), "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
                target.flush()
                os.fsync(target.fileno())
    _clear(place)
    for draft, path in drafts:
        os.rename(draft, path)
    sync(place.path)
    _unmark(place)
    return True


def _clear(place: Home) -> None:
    for path in (place.log, f"{place.database}-shm", place.database):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    sync(place.path)


def _unmark(place: Home) -> None:
    os.unlink(place.repairing)
    sync(place.path)


class Scratch:
    """The files repair makes for itself, gone when it ends."""

    def __init__(self, place: Home) -> None:
        self.new = f"{place.database}.repair"
        self.image = f"{place.database}.image"

    def __enter__(self) -> Scratch:
        self.__exit__()
        return self

    def __exit__(self, *_: object) -> None:
        for path in (self.new, self.image):
            for end in ("", "-wal", "-shm", "-journal"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path + end)
