"""A connection to exactly one of the given addresses. Names are not looked up here: that happened before, once."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address

from quintet.workspace.web.addresses import Address
from quintet.workspace.web.resolving import Unreachable

CONNECT_S = 10.0
TRIED = 4
READ_LIMIT = 64 * 1024
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(
    addresses: Sequence[Address], port: int, *, shown: str, tls: ssl.SSLContext | None = None, name: str = ""
) -> Streams:
    """Streams to the first address that answers; with `tls`, to whoever proves to be `name`."""
    problem = "no answer"
    for address in addresses[:TRIED]:
        try:
            async with asyncio.timeout(CONNECT_S):
                return await _connect(address, port, tls, name)
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(f"{shown} does not prove who it is: {error.verify_message}.") from None
        except TimeoutError:
            problem = f"no answer within {CONNECT_S:g} s"
        except OSError as error:
            problem = error.strerror or type(error).__name__
    raise Unreachable(f"{shown} cannot be reached: {problem}.")


async def _connect(address: Address, port: int, tls: ssl.SSLContext | None, name: str) -> Streams:
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, (str(address), port))
        if ip_address(connection.getpeername()[0]) != address:
            raise OSError("connected to another address")
        return await asyncio.open_connection(
            sock=connection, ssl=tls, server_hostname=name if tls else None, limit=READ_LIMIT
        )
    except BaseException:
        connection.close()
        raise


async def close(writer: asyncio.StreamWriter) -> None:
    """Let go without waiting for the other side."""
    writer.transport.abort()
    try:
        await writer.wait_closed()
    except (OSError, ssl.SSLError):
        return
