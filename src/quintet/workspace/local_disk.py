"""What a client on this machine may know of directories and files: where they are, whether they can be written, since
when they are as they are. Reads names and times, never contents."""

from __future__ import annotations

import asyncio
import os
import stat

import msgspec

from quintet.workspace.handles import open_plain


class File(msgspec.Struct, frozen=True):
    path: str
    size: int
    modified_ms: int


class LocalDisk:
    async def files(self, directory: str) -> list[File]:
        return await asyncio.to_thread(_files, directory)

    async def directory(self, path: str) -> str | None:
        return await asyncio.to_thread(_directory, path)

    async def writable(self, directory: str) -> bool:
        return await asyncio.to_thread(_writable, directory)

    async def text(self, path: str, most: int) -> str | None:
        """The first `most` bytes of a regular file that is the person's own; None for anything else."""
        return await asyncio.to_thread(_text, path, most)

    async def modified_ms(self, path: str) -> int | None:
        return await asyncio.to_thread(_modified_ms, path)


def _files(directory: str) -> list[File]:
    found: list[File] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    seen = entry.stat(follow_symlinks=False)
                    found.append(File(entry.path, seen.st_size, seen.st_mtime_ns // 1_000_000))
    except (OSError, ValueError):
        pass
    return found


def _text(path: str, most: int) -> str | None:
    """Not one that others could have written: its words become instructions, or are run."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            seen = os.fstat(file.fileno())
            own = seen.st_uid in (os.geteuid(), 0) and not seen.st_mode & stat.S_IWOTH
            return file.read(most).decode("utf-8", "replace") if own else None
    except (OSError, ValueError):
        return None


def _directory(path: str) -> str | None:
    try:
        real = os.path.realpath(path)
        return real if os.path.isdir(real) else None
    except (OSError, ValueError):
        return None


def _writable(directory: str) -> bool:
    """One that nobody may write to is not, also for those whom nothing stops."""
    try:
        return os.access(directory, os.W_OK) and bool(stat.S_IMODE(os.stat(directory).st_mode) & 0o222)
    except OSError:
        return False


def _modified_ms(path: str) -> int | None:
    try:
        return os.stat(path, follow_symlinks=False).st_mtime_ns // 1_000_000
    except (OSError, ValueError):
        return None
