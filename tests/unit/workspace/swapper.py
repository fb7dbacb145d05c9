"""A hostile neighbour: puts a symlink in the place of a directory or file and back, as fast as it can, until its
standard input ends. `python -m tests.unit.workspace.swapper NAME SPARE TARGET`
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
from contextlib import suppress

_CWD = -100
_EXCHANGE = 2


def exchange(one: str, other: str) -> None:
    """Both names keep existing throughout; only what they stand for changes."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_CWD, one.encode(), _CWD, other.encode(), _EXCHANGE):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), one)


def main(name: str, spare: str, target: str) -> None:
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(20):
            with suppress(FileNotFoundError):
                exchange(name, spare)
            if not os.path.islink(name) and not os.path.islink(spare):  # a write has replaced the link: a new one
                os.symlink(target, spare + ".new")
                os.replace(spare + ".new", spare)


if __name__ == "__main__":
    main(*sys.argv[1:])
