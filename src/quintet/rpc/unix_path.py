"""A path for a Unix socket of one user: safe to make, to find in place, to remove. Knows files, no peers' words."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import socket
import stat
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

# sun_path is 108 bytes with its closing zero.
MAX_PATH = 107
_CREDENTIALS = struct.Struct("3i")


class SocketTrouble(Exception):
    """Why the socket cannot be served, in one line for a person."""


class UnixPath:
    """`named_by_user`: the directory is left as it is; otherwise it is made 0700 and must be ours."""

    def __init__(self, path: str | Path, *, named_by_user: bool = False) -> None:
        self.path = Path(path)
        self._named_by_user = named_by_user
        self._identity: tuple[int, int] | None = None

    async def listen(self, backlog: int = 128) -> socket.socket:
        if len(os.fsencode(self.path)) > MAX_PATH:
            raise SocketTrouble(f"socket path is longer than {MAX_PATH} bytes: {self.path}")
        directory = self.path.parent
        try:
            if not self._named_by_user:
                _secure_directory(directory)
            # Two servers that find the same stale file must not remove each other's new one.
            async with _locked(directory):
                return self._bind(backlog)
        except OSError as why:
            raise SocketTrouble(f"cannot serve {self.path}: {why.strerror or why}") from why

    def remove(self) -> None:
        """Take the file away, if it is still ours."""
        try:
            found = os.lstat(self.path)
        except OSError:
            return
        if (found.st_dev, found.st_ino) == self._identity:
            self.path.unlink(missing_ok=True)

    def _bind(self, backlog: int) -> socket.socket:
        _clear(self.path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.setblocking(False)
            # Linux gives the file the mode of the unbound socket, less the umask: it is 0600 or tighter from
            # its first moment.
            os.fchmod(listener.fileno(), 0o600)
            listener.bind(os.fsencode(self.path))
            found = os.lstat(self.path)
            self._identity = (found.st_dev, found.st_ino)
            os.chmod(self.path, 0o600)  # a strict umask may have taken the owner's own bits
            listener.listen(backlog)
        except BaseException:
            listener.close()
            raise
        return listener


def peer_uid(peer: socket.socket) -> int:
    """Who is at the other end, by the kernel's word at the time of connect."""
    raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int = _CREDENTIALS.unpack(raw)[1]
    return uid


def _secure_directory(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = os.lstat(directory)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise SocketTrouble(f"socket directory is not a directory of this user: {directory}")
    if stat.S_IMODE(found.st_mode) != 0o700:
        os.chmod(directory, 0o700)


def _clear(path: Path) -> None:
    """Make room at the path: nothing there, or a socket that nobody listens on any more."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise SocketTrouble(f"not a socket, left alone: {path}")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.setblocking(False)
        answer = probe.connect_ex(os.fsencode(path))
    finally:
        probe.close()
    # A full backlog answers EAGAIN: somebody lives there. Only a refusal says that nobody does.
    if answer != errno.ECONNREFUSED:
        raise SocketTrouble(f"another server is listening on {path}")
    path.unlink(missing_ok=True)


@asynccontextmanager
async def _locked(directory: Path, timeout_s: float = 2.0) -> AsyncIterator[None]:
    """Alone in making sockets here. The lock is on the directory itself and leaves no file behind."""
    held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(0.02)
        yield
    except TimeoutError:
        raise SocketTrouble(f"another process holds the lock on {directory}") from None
    finally:
        os.close(held)
