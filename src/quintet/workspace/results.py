"""Results of calls that were too long for the model, whole: `<home>/results/<thread>/<id>`, plain text, 0600.

A result goes with its thread. Its id is drawn from its content, so that one text is kept once and nobody who has not
been given an id can guess it. Knows no journal: who still lives is told when it is swept.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import re

from quintet.domain.errors import StorageFull, StorageReadOnly
from quintet.domain.excerpt import excerpt
from quintet.domain.ids import has_prefix

LARGEST = 16_000_000  # characters of one result
_ID = re.compile(r"res_[0-9a-f]{32}")


class KeptResults:
    """Plays domain.ports.Results."""

    def __init__(self, home: str) -> None:
        self._root = os.path.join(home, "results")

    async def keep(self, thread: str, text: str) -> str:
        return await asyncio.to_thread(self._keep, thread, text)

    async def read(self, thread: str, result: str) -> str | None:
        return await asyncio.to_thread(self._read, thread, result)

    async def owners(self) -> list[str]:
        return await asyncio.to_thread(self._owners)

    async def forget(self, thread: str) -> tuple[int, int]:
        return await asyncio.to_thread(self._forget, thread)

    def _keep(self, thread: str, text: str) -> str:
        data = excerpt(text, LARGEST, "nobody keeps more").encode("utf-8", "replace")
        name = f"res_{hashlib.sha256(data).hexdigest()[:32]}"
        directory = os.path.join(self._root, thread)
        try:
            for private in (self._root, directory):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(private, 0o700)
            path = os.path.join(directory, name)
            if not os.path.exists(path):
                _write(path, data)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StorageFull("There is no space left to keep a long result.") from error
            raise StorageReadOnly(f"A long result cannot be kept: {error.strerror}.") from error
        return name

    def _read(self, thread: str, result: str) -> str | None:
        if not _ID.fullmatch(result):
            return None
        # A fork or a subagent's parent knows results of another thread by their ids.
        others = [name for name in self._owners() if name != thread]
        for owner in (thread, *others):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                handle = os.open(os.path.join(self._root, owner, result), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                with os.fdopen(handle, "rb") as file:
                    return file.read().decode("utf-8", "replace")
        return None

    def _forget(self, thread: str) -> tuple[int, int]:
        import shutil  # only for the few who tidy up

        directory = os.path.join(self._root, thread)
        with os.scandir(directory) as entries:
            sizes = [entry.stat(follow_symlinks=False).st_size for entry in entries]
        shutil.rmtree(directory)
        return len(sizes), sum(sizes)

    def _owners(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._root) if has_prefix(name, "thr"))
        except FileNotFoundError:
            return []


def _write(path: str, data: bytes) -> None:
    """Whole under its name or not at all."""
    passing = f"{path}.{os.urandom(6).hex()}"
    handle = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.replace(passing, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(passing)
        raise
