"""Owners: a process is alive exactly while it holds the lock on its file in `run/`. No heartbeat, no clock.

flock belongs to the open file, so a second look from the same process conflicts as one from outside does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

import msgspec

from quintet.domain.errors import Overloaded
from quintet.domain.ids import new_id

_held: set[int] = set()


def _close_in_child() -> None:
    """A forked child must not keep its parent's locks alive."""
    for fd in _held:
        with contextlib.suppress(OSError):
            os.close(fd)
    _held.clear()


os.register_at_fork(after_in_child=_close_in_child)


class Owner(msgspec.Struct, frozen=True):
    """What a lock file says about its process."""

    id: str
    pid: int
    boot_id: str
    version: str
    protocol: str


class OwnerLock:
    """This process's own lock, held until `release`."""

    def __init__(self, run: str, *, boot_id: str, version: str, protocol: str) -> None:
        self.id = new_id("own")
        self.path = os.path.join(run, f"{self.id}.lock")
        said = Owner(self.id, os.getpid(), boot_id, version, protocol)
        # Locked before it has its name, so that nobody ever finds it unlocked while we live.
        draft = f"{self.path}.new"
        self._fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        os.write(self._fd, msgspec.json.encode(said))
        os.rename(draft, self.path)
        _held.add(self._fd)

    def release(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self.path)
            _held.discard(self._fd)
            os.close(self._fd)
            self._fd = -1


def alive(run: str, owner: str) -> bool:
    """Whether that owner's lock is held. Shared, so that two who look at once do not take each other for the owner."""
    try:
        fd = os.open(os.path.join(run, f"{owner}.lock"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # cannot tell: whoever is not known to be dead keeps what it owns
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def living(run: str, *, tidy: bool = False) -> list[Owner]:
    """Every living owner; with `tidy` the files of dead ones go."""
    found = []
    for name in sorted(os.listdir(run)):
        if not name.startswith("own_"):
            continue
        path = os.path.join(run, name)
        if name.endswith(".lock") and alive(run, name[: -len(".lock")]):
            found.append(_said(path))
        elif tidy:  # under the gate nobody else is making one
            with contextlib.suppress(OSError):
                os.unlink(path)
    return found


def _said(path: str) -> Owner:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(4096), type=Owner)
    except (OSError, msgspec.MsgspecError):
        return Owner(os.path.basename(path).removesuffix(".lock"), 0, "", "", "")


class Gate:
    """The lock under which stores are opened one process at a time."""

    def __init__(self, run: str, wait_s: float = 10.0) -> None:
        self._fd = os.open(os.path.join(run, "open.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        end = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    os.close(self._fd)
                    raise Overloaded("Another process has been opening the journal for too long.") from None
                time.sleep(0.002)
        _held.add(self._fd)

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        _held.discard(self._fd)
        os.close(self._fd)
