"""A Unix socket server for one user: safe to create, to find in place, to remove. Knows bytes and peers.

What is done with an accepted peer is the handler's business; it gets a source and a sink and ends when it
likes.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from quintet.rpc.descriptor import PolledSink, PolledSource, readable, socket_sink, socket_source
from quintet.rpc.unix_path import UnixPath, peer_uid

Handle = Callable[[PolledSource, PolledSink], Awaitable[None]]


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
        self._place = UnixPath(path, named_by_user=named_by_user)
        self._handle, self._log = handle, log
        self._max = max_connections
        self._uid = os.geteuid() if uid is None else uid
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._peers: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._socket = await self._place.listen()
        self._accepting = asyncio.get_running_loop().create_task(self._accept(self._socket))

    async def close(self, timeout_s: float = 2.0) -> None:
        """No new peers, the file gone (if it is still ours), every connection ended within the bound."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait([self._accepting])
        if self._socket is not None:
            self._place.remove()
            self._socket.close()
            self._socket = None
        for task in self._peers:
            task.cancel()
        if self._peers:
            await asyncio.wait(self._peers, timeout=timeout_s)

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
