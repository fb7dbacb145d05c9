"""Bytes between two sides: a tunnel as it is, or one plain HTTP request and its answer, framed anew on each side so
that nothing can ride along behind it. Knows no list and no address.
"""

from __future__ import annotations

import asyncio
from typing import Any

from quintet.workspace.web.connecting import READ_LIMIT, Streams
from quintet.workspace.web.resolving import Unreachable
from quintet.workspace.web.urls import WebUrl

LEAVE_S = 2.0
# Of one connection, not of the message; framing is made anew from what is left.
_HOP = frozenset({b"connection", b"keep-alive", b"te", b"trailer", b"upgrade", b"expect", b"host"})


async def splice(one: Streams, other: Streams, early: bytes = b"") -> None:
    """Both ways until both have said all; `early` came before the tunnel was there."""
    other[1].write(early)
    ways = [asyncio.create_task(_pump(one[0], other[1])), asyncio.create_task(_pump(other[0], one[1]))]
    try:
        await asyncio.gather(*ways)
    finally:
        for way in ways:
            way.cancel()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(READ_LIMIT):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def leave(streams: Streams) -> None:
    """Say that nothing more comes, then hear the other side out for a moment: closing on bytes nobody read would cost
    it the answer."""
    reader, writer = streams
    await writer.drain()
    writer.write_eof()
    try:
        async with asyncio.timeout(LEAVE_S):
            while await reader.read(READ_LIMIT):
                pass
    except TimeoutError:
        return


async def relay_request(client: Streams, connection: Any, server: Streams, url: WebUrl, request: Any) -> None:
    """One request to the server and its answer back; then the connection is over."""
    import h11

    asking = h11.Connection(h11.CLIENT)
    headers = [(b"Host", url.authority.encode()), *_forwarded(request.headers), (b"Connection", b"close")]
    server[1].write(asking.send(h11.Request(method=request.method, target=url.target, headers=headers)))
    body = asyncio.create_task(_send_body(client, connection, server[1], asking))
    try:
        await _send_answer(server[0], asking, client[1], connection)
        await client[1].drain()
    except h11.RemoteProtocolError:
        if connection.our_state is not h11.SEND_RESPONSE:
            raise ConnectionResetError from None  # half of it is out already
        raise Unreachable(f"{url.authority} does not speak HTTP as it should.") from None
    finally:
        body.cancel()
        await asyncio.gather(body, return_exceptions=True)


async def _send_body(client: Streams, connection: Any, writer: asyncio.StreamWriter, asking: Any) -> None:
    import h11

    if connection.they_are_waiting_for_100_continue:
        client[1].write(connection.send(h11.InformationalResponse(status_code=100, headers=[])))
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await client[0].read(READ_LIMIT))
        elif isinstance(event, h11.Data):
            writer.write(asking.send(h11.Data(data=event.data)))
            await writer.drain()
        elif isinstance(event, h11.EndOfMessage):
            writer.write(asking.send(h11.EndOfMessage()))
            return
        else:
            return


async def _send_answer(
    reader: asyncio.StreamReader, asking: Any, writer: asyncio.StreamWriter, connection: Any
) -> None:
    import h11

    while True:
        event = asking.next_event()
        if event is h11.NEED_DATA:
            asking.receive_data(await reader.read(READ_LIMIT))
        elif isinstance(event, h11.Response):
            headers = [*_forwarded(event.headers, framing=False), (b"Connection", b"close")]
            made = h11.Response(status_code=event.status_code, headers=headers, reason=event.reason)
            writer.write(connection.send(made))
        elif isinstance(event, h11.Data):
            writer.write(connection.send(h11.Data(data=event.data)))
            await writer.drain()
        elif isinstance(event, h11.EndOfMessage):
            writer.write(connection.send(h11.EndOfMessage()) or b"")
            return
        elif not isinstance(event, h11.InformationalResponse):
            raise h11.RemoteProtocolError("closed without an answer")


def _forwarded(headers: Any, *, framing: bool = True) -> list[tuple[bytes, bytes]]:
    dropped = _HOP if framing else _HOP | {b"transfer-encoding"}
    named = [(name.lower(), name, value) for name, value in headers.raw_items()]
    return [(name, value) for low, name, value in named if low not in dropped and not low.startswith(b"proxy-")]
