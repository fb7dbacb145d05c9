"""A file of settings in JSON that people and other programs write, too: read when it has changed, replaced in one move,
private. Knows nothing of what the settings mean.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from quintet.domain.errors import Invalid
from quintet.domain.ports import MirrorFiles

Stamp = tuple[int, int, int]


def stamp_of(path: str) -> Stamp | None:
    """Other than before whenever the file was written or replaced; None when there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


class SettingsFile:
    """Plays domain.ports.SettingsStore."""

    def __init__(self, path: str, files: MirrorFiles) -> None:
        self.path = path
        self._files = files
        self._read: tuple[Stamp | None, dict[str, Any]] | None = None

    async def read(self) -> dict[str, Any]:
        return self.now()

    def now(self) -> dict[str, Any]:
        """A look at the file, and its few bytes where that has changed."""
        stamp = stamp_of(self.path)
        if self._read is None or self._read[0] != stamp:
            try:
                with open(self.path, "rb") as file:
                    data = file.read()
            except FileNotFoundError:
                data = b""
            self._read = stamp, self._parsed(data)
        return dict(self._read[1])

    async def change(self, work: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Nothing is written where `work` raises."""
        import json  # where there is something to write or to read, and not for every start

        async with self._files.hold(self.path):
            now = work(self._parsed(await self._files.read(self.path)))
            data = json.dumps(now, ensure_ascii=False, indent=2) + "\n"
            await self._files.write(self.path, data.encode("utf-8", "surrogatepass"))
            self._read = None
        return now

    async def remove(self) -> None:
        """Also while somebody is about to change it: what they saw is no longer there when their turn comes."""
        async with self._files.hold(self.path):
            await self._files.remove(self.path)
            self._read = None

    def _parsed(self, data: bytes | None) -> dict[str, Any]:
        if data is None or not data.strip():
            return {}
        import json

        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise Invalid(f"{self.path} is not valid JSON: {error}.", next_step="Correct that place.") from None
        if not isinstance(found, dict):
            raise Invalid(f"{self.path} must hold a JSON object.", next_step="Write it as { … }.")
        return found
