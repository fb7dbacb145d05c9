"""Bodies: JSON only, bounded in size, depth and time; path and query as a route's params."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from quintet.rpc.depth import too_deep
from quintet.rpc.http.faults import BadRequest, TooLarge, TooSlow, WrongType
from quintet.rpc.http.routes import Route

Receive = Callable[[], Awaitable[Any]]
MOST_DEPTH = 64
MOST_FIELDS = 100
BODY_WITHIN_S = 30.0


def has_body(headers: Mapping[str, str]) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


async def read_body(headers: Mapping[str, str], receive: Receive, limit: int) -> bytes:
    """The body, if it may be read at all."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise WrongType("A body must be JSON and say so: Content-Type: application/json.")
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        raise TooLarge(f"A body may have {limit} bytes at most.")
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise BadRequest("The body was not sent to its end.")
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                if size > limit:
                    raise TooLarge(f"A body may have {limit} bytes at most.")
                if not message.get("more_body", False):
                    return b"".join(chunks)
    except TimeoutError:
        raise TooSlow("The body did not come in time.") from None


class Decoders:
    """Made at a route's first call: building all of them would cost every start."""

    def __init__(self) -> None:
        self._bodies: dict[str, msgspec.json.Decoder[Any]] = {}

    def body(self, route: Route, raw: bytes) -> Any:
        if route.body is None:
            return None
        if not raw:
            if not route.optional_body:
                raise BadRequest("This needs a JSON body.")
            raw = b"{}"
        decoder = self._bodies.get(route.name)
        if decoder is None:
            decoder = self._bodies[route.name] = msgspec.json.Decoder(route.body)
        try:
            if not raw.isascii():
                raw.decode()  # msgspec skips over bytes in unread strings without looking at their encoding
            if too_deep(raw, MOST_DEPTH):
                raise BadRequest(f"The body nests deeper than {MOST_DEPTH} levels.")
            return decoder.decode(raw)
        except RecursionError:
            raise BadRequest(f"The body nests deeper than {MOST_DEPTH} levels.") from None
        except UnicodeDecodeError:
            raise BadRequest("The body is not UTF-8.") from None
        except ValueError as why:
            raise BadRequest(f"The body does not fit: {why}.") from None

    def params(self, route: Route, in_path: Mapping[str, str], query: bytes) -> Any:
        values: dict[str, str] = {}
        if query:
            try:
                pairs = parse_qsl(
                    query.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"
                )
            except ValueError:
                raise BadRequest("The query cannot be read.") from None
            for name, value in pairs:
                if name in values:
                    raise BadRequest("The query says the same thing twice.")
                values[name] = value
        values.update(in_path)
        try:
            return msgspec.convert(values, type=route.params, strict=False)
        except msgspec.ValidationError as why:
            raise BadRequest(f"The query does not fit: {why}.") from None
