"""One client's connection: bounds on its head and its silence, and whose it is. Below ASGI, on uvicorn's own protocol.

Imported only where something is served: uvicorn and httptools cost every start.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from quintet.rpc.http.faults import BadRequest, Errors, HttpFault, TooLarge, TooMany
from quintet.rpc.http.sse import LINK
from quintet.rpc.unix_path import peer_uid

LARGEST_HEAD = 16 * 1024
MOST_HEADERS = 100
HEAD_WITHIN_S = 10.0
MOST_CONNECTIONS = 4_096


class HeadTooLarge(TooLarge):
    status = 431


class Full(TooMany):
    status = 503


class Connection(HttpToolsProtocol):
    """Its head is bounded in size and time; whoever is too many, or another user on the socket, is turned away."""

    errors: Errors
    most = MOST_CONNECTIONS
    head_within_s = HEAD_WITHIN_S
    dead_after_s = 30.0

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._early = 0  # bytes of a head that came while an answer was under way
        self._head_bytes = 0  # that have come
        self._head_parsed = 0  # that were read as a head
        self._head_timer: asyncio.TimerHandle | None = None
        self._when_lost: list[Callable[[], object]] = []

    # --- what a stream needs of its connection ---------------------------------------------------------------------
    def on_lost(self, callback: Callable[[], object]) -> Callable[[], None]:
        """At once where it is lost already. What is returned takes it back."""
        self._when_lost.append(callback)
        if self.transport.is_closing():
            callback()

        def take_back() -> None:
            if callback in self._when_lost:
                self._when_lost.remove(callback)

        return take_back

    def write_at_once(self, chunk: bytes) -> bool:
        """A piece of the answer that is under way, if the client keeps up; what ASGI's `send` would do, without a task
        to do it."""
        cycle = self.cycle
        if self.flow.write_paused or not cycle.chunked_encoding or cycle.response_complete or cycle.disconnected:
            return False
        self.transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        return True

    def abort(self) -> None:
        """At once; what was not taken is dropped."""
        self.transport.abort()

    # --- asyncio's side --------------------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer: socket.socket = transport.get_extra_info("socket")
        if peer.family == socket.AF_UNIX:
            if peer_uid(peer) != os.geteuid():
                transport.abort()
                return
        elif hasattr(socket, "TCP_USER_TIMEOUT"):  # where there is none, TCP gives up in its own time
            # A peer that vanished without a word is gone when it has not taken a heartbeat for so long.
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(self.dead_after_s * 1000))
        if len(self.connections) > self.most:
            self._refuse(Full("Too many connections.", retry_after="5"))
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)
        for callback in tuple(self._when_lost):
            callback()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._head_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._await_head()  # the next request on the same connection
        if self._head_timer is not None:
            self._head_bytes += len(data)
        answering = self._head_timer is None and self.cycle is not None and not self.cycle.more_body
        super().data_received(data)
        # While an answer is under way, a stream's above all, nobody waits for the next head: one that does not become
        # whole (uvicorn stops reading at that) is bounded all the same.
        self._early = self._early + len(data) if answering and not self.pipeline else 0
        if self._early > LARGEST_HEAD:
            self.abort()
        if self._head_timer is not None and self._head_bytes > LARGEST_HEAD:
            self._refuse(_too_large())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_parsed = 0
        self.scope["extensions"] = {LINK: self}  # type: ignore[dict-item]

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value) + 4)

    def on_headers_complete(self) -> None:
        self._head_came()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        if self._head_parsed > LARGEST_HEAD or len(self.headers or ()) > MOST_HEADERS:
            self._refuse(_too_large())
        else:
            self._refuse(BadRequest("This is not an HTTP request that can be understood."))

    # --- the head --------------------------------------------------------------------------------------------------
    def _await_head(self) -> None:
        self._head_bytes = self._early = 0
        self._head_timer = self.loop.call_later(self.head_within_s, self._too_slow)

    def _head_came(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _count(self, size: int) -> None:
        """A head that came in one piece is measured as it is read; what is raised here ends the parsing."""
        self._head_parsed += size
        if self._head_parsed > LARGEST_HEAD or len(self.headers) > MOST_HEADERS:
            raise _too_large()

    def _too_slow(self) -> None:
        self._head_timer = None
        self.transport.close()  # it may have said nothing at all, so nothing is answered

    def _refuse(self, fault: HttpFault) -> None:
        """An answer where no request came far enough to be dispatched; then the connection ends."""
        self._head_came()
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete and not self._is_about_its_request():
            self.transport.abort()  # in the middle of another answer: nothing can be said
            return
        error = type(self).errors(fault, "-")
        body = msgspec.json.encode(error.body)
        head = [STATUS_LINE[error.status], b"content-type: application/json\r\n", b"connection: close\r\n"]
        head += [f"{name}: {value}\r\n".encode("latin-1") for name, value in error.headers.items()]
        self.transport.write(b"".join([*head, b"content-length: %d\r\n\r\n" % len(body), body]))
        self.transport.close()

    def _is_about_its_request(self) -> bool:
        """Whether what cannot be understood is the request that is being read, and nothing was answered to it yet."""
        return self.cycle.more_body and not self.cycle.response_started and not self.pipeline


def _too_large() -> HeadTooLarge:
    return HeadTooLarge(f"A request's head may have {LARGEST_HEAD} bytes and {MOST_HEADERS} headers at most.")
