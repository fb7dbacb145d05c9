"""From a host to the addresses that may be connected to: looked up once, all of them checked, none looked up again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

from quintet.domain.errors import Invalid
from quintet.workspace.web.addresses import Address, Refusing
from quintet.workspace.web.hosts import Host

RESOLVE_S = 10.0
MOST_ADDRESSES = 64
Resolve = Callable[[str], Awaitable[Sequence[str]]]  # a name's addresses as text; OSError when it has none


class Unreachable(Exception):
    """The other side cannot be reached or does not speak as it should. Its text is for people."""


async def system_resolve(name: str) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def resolved(host: Host, resolve: Resolve) -> list[Address]:
    """The host's addresses, in the resolver's order. An address that cannot be read is never skipped."""
    if host.address is not None:
        return [host.address]
    try:
        async with asyncio.timeout(RESOLVE_S):
            texts = list(await resolve(host.bare))
    except TimeoutError:
        raise Unreachable(f"Looking up {host.text} took longer than {RESOLVE_S:g} s.") from None
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", "") or "it has no address"
        raise Unreachable(f"{host.text} cannot be found: {why}.") from None
    if not texts or len(texts) > MOST_ADDRESSES:
        raise Unreachable(f"{host.text} has {len(texts) or 'no'} addresses.")
    try:
        return [ip_address(text) for text in texts]
    except ValueError:
        raise Unreachable(f"{host.text} has an address that cannot be read.") from None


async def resolved_public(host: Host, resolve: Resolve, refuse: Refusing) -> list[Address]:
    """The same, for hosts that nobody but a model or a page named. One address that is not public refuses the host:
    whoever answers for the name could otherwise mix them and wait for the right one to be tried."""
    if why := host.why_local():
        raise Invalid(f"{host.text} is not fetched: {why}.", next_step="Only public addresses are.")
    addresses = await resolved(host, resolve)
    for address in addresses:
        if why := refuse(address):
            shown = f"{host.text} leads to {address}" if host.address is None else str(address)
            raise Invalid(f"{shown}, which is not fetched: {why}.", next_step="Only public addresses are.")
    return addresses
