"""The one way out for a command with an allow-list: an HTTP proxy on a Unix socket, which the sandbox shows inside.

A name is looked up once and stays with what was found, so it cannot be made to mean another machine later. Of very many
names the one asked for longest ago is forgotten; asked for again, it is looked up and checked like a new one. Addresses
of this machine and its network are refused, unless the person listed that very address.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from quintet.domain.errors import Invalid
from quintet.workspace.sandbox.allowed_hosts import AllowedHost, parse_allowed
from quintet.workspace.sandbox.relaying import leave, relay_request, splice
from quintet.workspace.web.addresses import Address, Refusing, why_not_public
from quintet.workspace.web.connecting import READ_LIMIT, Streams, close, connect
from quintet.workspace.web.hosts import Host
from quintet.workspace.web.resolving import Resolve, Unreachable, resolved, system_resolve
from quintet.workspace.web.urls import WebUrl, parse_url

SOCKET = "net.sock"
CONNECTIONS = 128
PINNED = 1_024  # names remembered; only an entry with a star can stand for so many
HEAD_S = 15.0
LARGEST_HEAD = 32 * 1024
Told = Callable[[str], None]


class _Refused(Exception):
    """The list, or an address, says no. Its text is for whoever runs the command."""


@asynccontextmanager
async def allowing(
    hosts: Sequence[str],
    directory: str,
    *,
    resolve: Resolve = system_resolve,
    refuse: Refusing = why_not_public,
    refused: Told = lambda line: None,
) -> AsyncIterator[str]:
    """The proxy's socket in `directory`, which must be private, until the way out; then every connection is cut.
    `refused` hears of each request that was not let through."""
    proxy = Proxy(parse_allowed(hosts), resolve, refuse, refused)
    path = os.path.join(directory, SOCKET)
    listener = await asyncio.start_unix_server(proxy.serve, path, limit=READ_LIMIT)
    try:
        os.chmod(path, 0o600)
        yield path
    finally:
        # First what needs no waiting: a second cancel must not leave the way open.
        listener.close()
        ending = proxy.cut()
        with suppress(FileNotFoundError):
            os.unlink(path)
        await asyncio.gather(*ending, return_exceptions=True)


class Proxy:
    def __init__(self, allowed: Sequence[AllowedHost], resolve: Resolve, refuse: Refusing, refused: Told) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._refuse = refuse
        self._told = refused
        self._pinned: dict[Host, asyncio.Task[list[Address]]] = {}
        self._serving: set[asyncio.Task[Any]] = set()

    def cut(self) -> list[asyncio.Task[Any]]:
        """Begin to end everything; what is left to wait for."""
        ending = [*self._serving, *self._pinned.values()]
        for task in ending:
            task.cancel()
        return ending

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        writer.transport.set_write_buffer_limits(0)  # drained is then sent
        try:
            if len(self._serving) > CONNECTIONS:
                await _answer(writer, 503, f"More than {CONNECTIONS} connections at once.")
            else:
                await self._serve((reader, writer))
            await leave((reader, writer))
        except OSError:
            pass  # one of the two sides is gone, and with it whoever could be told
        except asyncio.CancelledError:
            pass  # by `cut`, which is all there is to know; asyncio itself stumbles over a handler that was cancelled
        finally:
            self._serving.discard(task)
            writer.transport.abort()

    async def _serve(self, client: Streams) -> None:
        import h11

        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=LARGEST_HEAD)
        try:
            async with asyncio.timeout(HEAD_S):
                request = await _head(connection, client[0])
            if request is None:
                return
            if request.method == b"CONNECT":
                await self._tunnel(client, connection, _authority(request.target))
            else:
                await self._relay(client, connection, request)
        except h11.ProtocolError:
            await _answer(client[1], 400, "This is a proxy for HTTP.")
        except TimeoutError:
            await _answer(client[1], 408, "No request came.")
        except Invalid as error:
            await _answer(client[1], 400, error.message)
        except _Refused as error:
            self._told(str(error))
            await _answer(client[1], 403, str(error))
        except Unreachable as error:
            await _answer(client[1], 502, str(error))

    async def _tunnel(self, client: Streams, connection: Any, url: WebUrl) -> None:
        server = await self._connect(url)
        try:
            client[1].write(b"HTTP/1.1 200 Connected\r\n\r\n")
            early = connection.trailing_data[0]
            await splice(client, server, early)
        finally:
            await close(server[1])

    async def _relay(self, client: Streams, connection: Any, request: Any) -> None:
        url = parse_url(request.target.decode("ascii", "replace"))
        if url.scheme != "http":
            raise Invalid("An https address is asked for with CONNECT.")
        server = await self._connect(url)
        try:
            await relay_request(client, connection, server, url, request)
        finally:
            await close(server[1])

    async def _connect(self, url: WebUrl) -> Streams:
        """To an allowed host at the addresses it had when it was first asked for."""
        listed = [entry for entry in self._allowed if entry.covers(url.host, url.port)]
        if not listed:
            raise _Refused(f"{url.host.text}:{url.port} is not in [sandbox] network.")
        return await connect(await self._addresses(url.host), url.port, shown=f"{url.host.text}:{url.port}")

    def _addresses(self, host: Host) -> Awaitable[list[Address]]:
        task = self._pinned.pop(host, None) or asyncio.create_task(self._look_up(host))
        self._pinned[host] = task  # last, as the one asked for latest
        self._forget_oldest()
        return asyncio.shield(task)

    def _forget_oldest(self) -> None:
        """Those still being looked up stay, so that the end finds them; they are as many as connections at most."""
        over = len(self._pinned) - PINNED
        done = [host for host, task in self._pinned.items() if task.done()] if over > 0 else []
        for host in done[:over]:
            del self._pinned[host]

    async def _look_up(self, host: Host) -> list[Address]:
        if host.address is not None:
            return [host.address]  # it is on the list as it stands, so the person named it
        try:
            addresses = await resolved(host, self._resolve)
        except Unreachable:
            self._pinned.pop(host, None)  # nothing was found that could be pinned
            raise
        for address in addresses:
            if why := self._refuse(address):
                raise _Refused(f"{host.text} leads to {address}, which is refused: {why}.")
        return addresses


async def _answer(writer: asyncio.StreamWriter, status: int, words: str) -> None:
    body = f"Quintet: {words}\n".encode()
    head = f"HTTP/1.1 {status} Refused\r\nContent-Type: text/plain; charset=utf-8\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    await writer.drain()


async def _head(connection: Any, reader: asyncio.StreamReader) -> Any:
    """The request's head, or None when the other side left without one."""
    import h11

    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(READ_LIMIT))
        else:
            return event if isinstance(event, h11.Request) else None


def _authority(target: bytes) -> WebUrl:
    """The host and port a CONNECT names, read as strictly as in any URL; the port must be there."""
    text = target.decode("ascii", "replace")
    if not text.rpartition(":")[2].isdecimal() or any(letter in text for letter in "/?#"):
        raise Invalid("CONNECT needs a host and a port.")
    return parse_url(f"https://{text}/")
