"""A directory in memory, where the machine has one: for what syncs much and is not about the disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PLACE = "/dev/shm"


@contextmanager
def in_memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=_PLACE if os.access(_PLACE, os.W_OK) else None) as made:
        yield Path(made)
