"""One HTTP/1.1 request and its answer over streams that are already connected; bounded in size, before and after
unpacking. Knows nothing of redirects, hosts or why anybody asks.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import Any

import msgspec

from quintet import __version__
from quintet.workspace.web.connecting import Streams
from quintet.workspace.web.resolving import Unreachable
from quintet.workspace.web.urls import WebUrl

LARGEST = 10 * 1024 * 1024  # bytes as they come
LARGEST_UNPACKED = 20 * 1024 * 1024
RATIO = 100
SMALL = 1024 * 1024  # below this a high ratio is no bomb
LARGEST_HEAD = 64 * 1024
READ_SIZE = 65_536
_ENCODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 15}  # zlib's names for them


class Request(msgspec.Struct, frozen=True):
    url: WebUrl
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def __repr__(self) -> str:
        # A header may hold a key, which must not reach a log by way of a printed struct.
        return f"Request({self.method} {self.url.origin})"


class Answer(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]  # lower-case names; the first of equal ones
    body: bytes


async def exchange(streams: Streams, request: Request) -> Answer:
    import h11

    reader, writer = streams
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_HEAD)
    try:
        _send(connection, writer, request)
        await writer.drain()
        return await _receive(connection, reader)
    except h11.ProtocolError:
        raise Unreachable(f"{request.url.authority} does not speak HTTP as it should.") from None
    except OSError as error:
        raise Unreachable(f"{request.url.authority} broke off: {error.strerror or type(error).__name__}.") from None


def _send(connection: Any, writer: asyncio.StreamWriter, request: Request) -> None:
    import h11

    headers = [
        ("Host", request.url.authority),
        ("User-Agent", f"quintet/{__version__}"),
        ("Accept-Encoding", "gzip, deflate"),
        ("Connection", "close"),
        *request.headers,
    ]
    if request.body:
        headers.append(("Content-Length", str(len(request.body))))
    head = h11.Request(method=request.method, target=request.url.target, headers=headers)
    parts = [head, h11.Data(data=request.body), h11.EndOfMessage()] if request.body else [head, h11.EndOfMessage()]
    for part in parts:
        writer.write(connection.send(part) or b"")


async def _receive(connection: Any, reader: asyncio.StreamReader) -> Answer:
    import h11

    status, body = 0, bytearray()
    headers: dict[str, str] = {}
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(READ_SIZE))
        elif isinstance(event, h11.Response):
            status = event.status_code
            for name, value in event.headers:
                headers.setdefault(name.decode("ascii"), value.decode("utf-8", "replace"))
            if int(headers.get("content-length", "0")) > LARGEST:
                raise _too_large(LARGEST)
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > LARGEST:
                raise _too_large(LARGEST)
        elif isinstance(event, h11.EndOfMessage):
            return Answer(status, headers, unpacked(bytes(body), headers.get("content-encoding", "")))
        elif not isinstance(event, h11.InformationalResponse):
            raise Unreachable("The other side closed the connection without an answer.")


def unpacked(body: bytes, encoding: str) -> bytes:
    """The body as it was before it was packed for the way. Never more than the limits, whatever is in it."""
    for name in reversed([part.strip().lower() for part in encoding.split(",")]):
        if name in ("", "identity"):
            continue
        if name not in _ENCODINGS:
            raise Unreachable(f"The answer is packed as {name[:20]!r}, which was not asked for.")
        body = _inflated(body, _ENCODINGS[name])
    return body


def _inflated(body: bytes, kind: int) -> bytes:
    limit = min(LARGEST_UNPACKED, max(SMALL, RATIO * len(body)))
    try:
        try:
            return _inflated_within(body, kind, limit)
        except zlib.error:
            if kind != _ENCODINGS["deflate"]:
                raise
            return _inflated_within(body, -15, limit)  # some servers leave zlib's frame out
    except zlib.error:
        raise Unreachable("The answer is packed and cannot be unpacked.") from None


def _inflated_within(body: bytes, kind: int, limit: int) -> bytes:
    made = b""
    while body:  # gzip may come in several parts
        machine = zlib.decompressobj(kind)
        made += machine.decompress(body, limit + 1 - len(made))
        if len(made) > limit:
            raise _too_large(limit)
        if not machine.eof:
            raise zlib.error
        body = machine.unused_data.lstrip(b"\0") if kind == _ENCODINGS["gzip"] else b""  # padding is allowed
    return made


def _too_large(limit: int) -> Unreachable:
    return Unreachable(f"The answer is larger than {limit // 1024 // 1024} MiB.")
