"""A private directory to make a file in, gone afterwards; what makers that were killed left behind goes with the next
one. Blocking. Knows nothing of what is made.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator

_PREFIX = ".making-"
_PASSING = re.compile(r"\.quintet-[0-9a-f]{12}\.tmp")  # a file that has no name yet


@contextlib.contextmanager
def making_in(directory: str) -> Iterator[str]:
    """Whoever makes something shares the directory's lock; whoever has it alone knows that nobody does."""
    clear_unfinished(directory)
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: then nothing is cleared there either
            fcntl.flock(handle, fcntl.LOCK_SH)
        with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=directory) as scratch:
            yield scratch
    finally:
        os.close(handle)


def clear_unfinished(directory: str) -> list[str]:
    """Remove what nobody finishes any more, unless somebody makes something there now; the names that are gone."""
    gone: list[str] = []
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return gone
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for name in sorted(os.listdir(directory)):
            with contextlib.suppress(OSError):  # not ours to remove, or a link, which is nobody's scratch
                if _remove(directory, name):
                    gone.append(name)
    except OSError:
        return gone  # locked by somebody at work, or nothing can be locked here
    finally:
        os.close(handle)
    return gone


def _remove(directory: str, name: str) -> bool:
    path = os.path.join(directory, name)
    if name.startswith(_PREFIX):
        shutil.rmtree(path)
    elif _PASSING.fullmatch(name):
        os.unlink(path)
    else:
        return False
    return True
