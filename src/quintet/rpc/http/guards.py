"""Who may even be heard: Host, Origin and fetch site, looked at before routing and whatever the credential.

A web page, or a name that was made to point here, must not be able to drive a server on this machine.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping

from msgspec import Struct

from quintet.rpc.http.faults import Forbidden

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_FORWARDED = ("forwarded", "x-forwarded-for")


class Peer(Struct, frozen=True):
    address: str  # an address, or `unix`
    local: bool  # of this machine, and not merely passed on by something that is


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class Guards:
    """Exact lists: nothing is derived from what a request says of itself, nothing is trusted by its beginning."""

    def __init__(
        self,
        *,
        bound: Iterable[tuple[str, int]],
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        proxies: Iterable[str] = (),
    ) -> None:
        addresses = list(bound)
        names = {(name, port) for name in LOOPBACK_NAMES for _, port in addresses}
        names |= {(in_url(host), port) for host, port in addresses if host not in ("0.0.0.0", "::")}  # noqa: S104
        own = {f"{name}:{port}" for name, port in names}
        # A browser leaves out the port that its scheme implies.
        own |= {name for name, port in names if port in (80, 443)}
        self.hosts = frozenset(own | {host.lower() for host in hosts})
        self.origins = frozenset({f"http://{host}" for host in own} | {origin.lower() for origin in origins})
        self._proxies = frozenset(proxies)

    def check(self, headers: Mapping[str, str], counts: Mapping[str, int], *, unix: bool = False) -> None:
        """Raises Forbidden. `counts` says how often a header was sent: two Hosts are as bad as none."""
        host = headers.get("host", "").lower()
        known = host in self.hosts or (unix and host in ("localhost", ""))
        if not known or counts.get("host", 0) > 1:
            raise Forbidden(
                "This Host is not served here. Name it under [server] hosts in config.toml if it should be."
            )
        origin = headers.get("origin")
        if origin is not None and (origin.lower() not in self.origins or counts["origin"] > 1):
            raise Forbidden(
                "Pages of this Origin may not call this server. "
                "Name it under [server] origins in config.toml if they should."
            )
        if origin is None and headers.get("sec-fetch-site", "").lower() == "cross-site":
            raise Forbidden("Pages of another site may not call this server.")

    def peer(self, client: tuple[str, int] | None, headers: Mapping[str, str]) -> Peer:
        """Who is at the other end. What a proxy says counts only where the proxy is one that was named."""
        if client is None:
            return Peer("unix", not any(name in headers for name in _FORWARDED))
        address = client[0]
        forwarded = any(name in headers for name in _FORWARDED)
        if address in self._proxies and (told := headers.get("x-forwarded-for", "")):
            return Peer(told.rpartition(",")[2].strip()[:64], local=False)
        return Peer(address, is_loopback(address) and not forwarded)
