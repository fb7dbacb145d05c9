"""The hosts a confined command may reach, as the person listed them: `example.org`, `*.example.org`, `10.0.0.7:8080`.

Compared as parsed labels or addresses. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from quintet.domain.errors import Invalid
from quintet.workspace.web.hosts import Host, parse_host

USUAL_PORTS = frozenset({80, 443})
_ENTRY = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")


class AllowedHost(msgspec.Struct, frozen=True):
    host: Host
    below: bool = False  # any name below it, not itself
    port: int = 0  # 0: the usual ones

    def covers(self, host: Host, port: int) -> bool:
        if port != self.port if self.port else port not in USUAL_PORTS:
            return False
        if not self.below:
            return host == self.host
        ending = self.host.labels
        return len(host.labels) > len(ending) and host.labels[-len(ending) :] == ending


def parse_allowed(entries: Iterable[str]) -> tuple[AllowedHost, ...]:
    """Invalid names the first entry that cannot be right."""
    return tuple(_parse(entry) for entry in entries)


def _parse(entry: str) -> AllowedHost:
    fix = 'Write "example.org", "*.example.org" or "192.0.2.7:8080".'
    found = _ENTRY.fullmatch(entry)
    if found is None or (found["port"] and not 0 < int(found["port"]) < 65_536):
        raise Invalid(f"sandbox.network: {entry!r} is not a host.", next_step=fix)
    below = found["host"].startswith("*.")
    try:
        host = parse_host(found["host"].removeprefix("*."))
    except Invalid as error:
        raise Invalid(f"sandbox.network: {entry!r} is not a host. {error.message}", next_step=fix) from None
    if below and (host.address is not None or len(host.labels) < 2):
        raise Invalid(f"sandbox.network: {entry!r} would allow too much or nothing.", next_step=fix)
    return AllowedHost(host, below, int(found["port"] or 0))
