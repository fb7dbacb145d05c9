"""A Unix socket server for one user: safe to create, to find in place, to remove. Knows bytes and peers.

What is done with an accepted peer is the handler's business; it gets a source and a sink and ends when it
likes.
"""

import asyncio
import errno
import fcntl
import os
import socket
import stat
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from quintet.rpc.descriptor import PolledSink, PolledSource, readable, socket_sink, socket_source

Handle = Callable[[PolledSource, PolledSink], Awaitable[None]]
# sun_path is 108 bytes with its closing zero.
MAX_PATH = 107
_CREDENTIALS = struct.Struct("3i")


class SocketTrouble(Exception):
    """Why the socket cannot be served, in one line for a person."""


class UnixServer:
    """`named_by_user`: the directory is left as it is; otherwise it is made 0700 and must be ours."""

    def __init__(
        self,
        path: str | Path,
        handle: Handle,
        *,
        named_by_user: bool = False,
        max_connections: int = 64,
        uid: int | None = None,
        log: Callable[[str, object], None] = lambda what, about: None,
    ) -> None:
        self.path = Path(path)
        self._handle, self._log = handle, log
        self._named_by_user, self._max = named_by_user, max_connections
        self._uid = os.geteuid() if uid is None else uid
        self._socket: socket.socket | None = None
        self._identity: tuple[int, int] | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._peers: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        if len(os.fsencode(self.path)) > MAX_PATH:
            raise SocketTrouble(f"socket path is longer than {MAX_PATH} bytes: {self.path}")
        directory = self.path.parent
        try:
            if not self._named_by_user:
                _secure_directory(directory)
            # Two servers that find the same stale file must not remove each other's new one.
            async with _locked(directory):
                self._socket = self._bind()
        except OSError as why:
            raise SocketTrouble(f"cannot serve {self.path}: {why.strerror or why}") from why
        self._accepting = asyncio.get_running_loop().create_task(self._accept(self._socket))

    async def close(self, timeout_s: float = 2.0) -> None:
        """No new peers, the file gone (if it is still ours), every connection ended within the bound."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait([self._accepting])
        if self._socket is not None:
            self._remove()
            self._socket.close()
            self._socket = None
        for task in self._peers:
            task.cancel()
        if self._peers:
            await asyncio.wait(self._peers, timeout=timeout_s)

    def _bind(self) -> socket.socket:
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
            listener.listen(128)
        except BaseException:
            listener.close()
            raise
        return listener

    def _remove(self) -> None:
        try:
            found = os.lstat(self.path)
        except OSError:
            return
        if (found.st_dev, found.st_ino) == self._identity:
            self.path.unlink(missing_ok=True)

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except (BlockingIOError, InterruptedError):
                # Not loop.sock_accept: cancelled at the wrong moment, it loses the peer it has just accepted.
                await readable(listener.fileno())
                continue
            except OSError as why:
                # Out of descriptors, or a peer gone between connect and accept: the next one may fare better.
                self._log("accept failed", why)
                await asyncio.sleep(0.05)
                continue
            if (uid := peer_uid(peer)) != self._uid:
                self._log("peer of another user refused", uid)
                peer.close()
            elif len(self._peers) >= self._max:
                self._log("too many connections", len(self._peers))
                peer.close()
            else:
                self._serve(peer)
            await asyncio.sleep(0)  # a rush of peers must not keep those already here waiting

    def _serve(self, peer: socket.socket) -> None:
        def done(task: asyncio.Task[None]) -> None:
            # Here and not in the task: one that is cancelled before its first step runs no `finally`.
            peer.close()
            self._peers.discard(task)

        task = asyncio.get_running_loop().create_task(self._run(peer))
        self._peers.add(task)
        task.add_done_callback(done)

    async def _run(self, peer: socket.socket) -> None:
        try:
            await self._handle(socket_source(peer), socket_sink(peer))
        except Exception as why:
            self._log("connection failed", why)


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
