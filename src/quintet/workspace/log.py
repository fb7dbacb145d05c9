"""The log: one file in the home directory, for what went wrong inside. Bounded, private, free of known secrets."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

LARGEST = 5 * 1024 * 1024


class Log:
    def __init__(self, path: Path, mask: Callable[[str], str]) -> None:
        self.path = path
        self._mask = mask

    def error(self, error: BaseException) -> None:
        """With its traceback: this file is the only place where one goes."""
        self.line("".join(traceback.format_exception(error)).rstrip())

    def line(self, text: str) -> None:
        from quintet.domain.shapes import mask_shapes  # its patterns are made only where there is something to tell

        words = mask_shapes(self._mask(text))
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            self._rotate()
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, f"{stamp} pid {os.getpid()} {words}\n".encode(errors="backslashreplace"))
            finally:
                os.close(descriptor)
        except OSError:
            pass  # a full or read-only disk must not turn a noted error into a second one

    def _rotate(self) -> None:
        if self.path.exists() and self.path.stat().st_size > LARGEST:
            self.path.replace(self.path.with_suffix(".log.1"))
