"""Small and unwritable places, where this machine lets a test make them."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

WITHOUT_ROOT_POWERS = (
    "setpriv",
    "--bounding-set=-dac_override,-dac_read_search",
    "--inh-caps=-dac_override,-dac_read_search",
)


@contextmanager
def small_disk(at: Path, megabytes: int = 16) -> Iterator[Path]:
    """A file system of its own, gone afterwards. Needs root."""
    at.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(at)]
    try:
        made = subprocess.run(words, capture_output=True, check=False, timeout=10)
    except FileNotFoundError:
        pytest.skip("no `mount` here")
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.decode().strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True, timeout=10)


def fill(disk: Path, leave: int = 0) -> Path:
    """One file that takes all space but this many bytes."""
    filler = disk / "filler"
    free = os.statvfs(disk)
    with filler.open("ab", buffering=0) as file:
        try:
            if leave:
                os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - leave))
                return filler
            while True:
                file.write(b"\0" * 65536)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    return filler


def as_an_ordinary_user() -> tuple[str, ...]:
    """Words before a command that take away root's right to ignore permissions; none for other users."""
    if os.geteuid():
        return ()
    try:
        probe = subprocess.run([*WITHOUT_ROOT_POWERS, "true"], capture_output=True, check=False, timeout=10)
    except FileNotFoundError:
        pytest.skip("root ignores permissions, and there is no `setpriv` to take that away")
    if probe.returncode:
        pytest.skip("root ignores permissions, and `setpriv` cannot take that away here")
    return WITHOUT_ROOT_POWERS
