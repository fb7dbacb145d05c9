"""History: what was typed, kept in the home for its owner alone; known secrets are masked before it is stored."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

KEPT = 1_000
LONGEST = 20_000  # characters of an entry; a longer one is a paste, which nobody looks for here


class History:
    """One JSON string per line, oldest first. A file that cannot be read or written costs the history, not the talk."""

    def __init__(self, path: Path, mask: Callable[[str], str]) -> None:
        self._path = path
        self._mask = mask
        self.problem = ""

    def entries(self) -> list[str]:
        try:
            lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            self.problem = f"{self._path} cannot be read: {error.strerror}"
            return []
        if len(lines) > 2 * KEPT:
            self._shorten(lines[-KEPT:])
        return [entry for line in lines[-KEPT:] if (entry := _decoded(line))]

    def add(self, text: str) -> str:
        """Keep it; returns it as it is kept. Nothing where it begins with a blank, as shells have it."""
        entry = self._mask(text)
        if not entry.strip() or entry.startswith(" ") or len(entry) > LONGEST:
            return ""
        try:
            descriptor = os.open(
                self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
            )
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(json.dumps(entry).encode() + b"\n")
        except OSError as error:
            self.problem = f"{self._path} cannot be written: {error.strerror}"
        return entry

    def _shorten(self, lines: list[str]) -> None:
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
            os.replace(new, self._path)
        except OSError as error:
            self.problem = f"{self._path} cannot be shortened: {error.strerror}"


def _decoded(line: str) -> str:
    try:
        entry = json.loads(line)
    except ValueError:
        return ""  # torn by a full disk or a hand: only this one is lost
    return entry if isinstance(entry, str) else ""
