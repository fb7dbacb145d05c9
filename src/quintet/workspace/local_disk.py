"""What a client on this machine may know of directories and files: where they are, whether they can be written, since
when they are as they are. Reads names and times, never contents."""

from __future__ import annotations

import asyncio
import os
import stat


class LocalDisk:
    async def directory(self, path: str) -> str | None:
        return await asyncio.to_thread(_directory, path)

    async def writable(self, directory: str) -> bool:
        return await asyncio.to_thread(_writable, directory)

    async def modified_ms(self, path: str) -> int | None:
        return await asyncio.to_thread(_modified_ms, path)


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
