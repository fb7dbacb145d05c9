"""Sending: an answer whole, or as a stream in pieces. Knows ASGI's messages and the headers every answer has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from quintet.rpc.http.sse import HEADERS

Send = Callable[[Any], Awaitable[None]]
_EVERY = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
_JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), *_EVERY]
_CLOSE = (b"connection", b"close")
_PAGES_MAY_SEND = ("authorization", "content-type", "idempotency-key", "last-event-id", "prefer")


class Sender:
    """`status` is 0 until the answer has begun. `origin` is one that was allowed, and is told so."""

    __slots__ = ("_send", "origin", "status")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.origin = ""

    async def json(self, status: int, body: bytes, headers: Mapping[str, str] = {}, *, close: bool = False) -> None:
        sent = [*_JSON, (b"content-length", b"%d" % len(body)), *_encoded(headers), *self._cors()]
        if close:
            sent.append(_CLOSE)
        await self._start(status, sent)
        await self._send({"type": "http.response.body", "body": body})

    async def begin_stream(self, headers: Mapping[str, str]) -> None:
        await self._start(200, [*_encoded(HEADERS), *_EVERY, *_encoded(headers), *self._cors(), _CLOSE])

    async def piece(self, chunk: bytes) -> None:
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})

    async def preflight(self, verbs: Iterable[str], headers: Iterable[str]) -> None:
        """What a browser asks before it lets a page of an allowed origin call."""
        allowed = {
            "access-control-allow-methods": ", ".join(sorted(verbs)),
            "access-control-allow-headers": ", ".join((*_PAGES_MAY_SEND, *headers)),
            "access-control-max-age": "600",
        }
        await self._start(204, [*_EVERY, *_encoded(allowed), *self._cors()])
        await self._send({"type": "http.response.body", "body": b""})

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    def _cors(self) -> list[tuple[bytes, bytes]]:
        if not self.origin:
            return []
        return [
            (b"access-control-allow-origin", self.origin.encode("latin-1")),
            (b"access-control-expose-headers", b"x-run-id"),
            (b"vary", b"origin"),
        ]


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
