"""Requests to the kernel that Python has no words for. Blocking; None or False where the system does not know them.

Knows nothing of why anybody asks. ctypes is loaded late: few calls need it.
"""

from __future__ import annotations

import errno
import functools
import os
import struct
from typing import Any

_AT_FDCWD, _AT_SYMLINK_NOFOLLOW = -100, 0x100
_NO_REPLACE, _EXCHANGE = 1, 2
_BIRTH, _INODE = 0x800, 0x100
_SIZE, _INODE_AT, _BIRTH_AT = 256, 32, 80  # of struct statx, which is the same on every machine


@functools.cache
def _request(name: str) -> Any:
    import ctypes

    try:
        return getattr(ctypes.CDLL(None, use_errno=True), name, None)
    except OSError:
        return None


def born_ns(path: str, seen: os.stat_result) -> int | None:
    """When the inode was made; None where that is not known. 0 when another file stands there than was seen."""
    if (born := getattr(seen, "st_birthtime", None)) is not None:  # not on Linux
        return int(born * 1_000_000_000)
    statx = _request("statx")
    if statx is None:
        return None
    import ctypes

    about = ctypes.create_string_buffer(_SIZE)
    if statx(_AT_FDCWD, os.fsencode(path), _AT_SYMLINK_NOFOLLOW, _BIRTH | _INODE, about) != 0:
        return None
    (known,) = struct.unpack_from("=I", about.raw)
    (inode,) = struct.unpack_from("=Q", about.raw, _INODE_AT)
    seconds, nanoseconds = struct.unpack_from("=qI", about.raw, _BIRTH_AT)
    if inode != seen.st_ino:
        return 0
    return int(seconds) * 1_000_000_000 + int(nanoseconds) if known & _BIRTH else None


def exchange(directory: int, one: str, other: str) -> bool:
    """Let two names in a directory change places in one move. False where that cannot be done."""
    return _rename(directory, one, other, _EXCHANGE)


def rename_new(directory: int, old: str, new: str) -> bool:
    """Rename, FileExistsError when something stands at the new name. False where that cannot be done."""
    return _rename(directory, old, new, _NO_REPLACE)


def _rename(directory: int, old: str, new: str, flags: int) -> bool:
    renameat2 = _request("renameat2")
    if renameat2 is None:
        return False
    import ctypes

    if renameat2(directory, os.fsencode(old), directory, os.fsencode(new), flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM):
        return False
    raise OSError(code, os.strerror(code), old)
