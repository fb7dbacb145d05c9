"""Ports: whether the server could listen where it usually does. Tried by really listening there, for a moment."""

from __future__ import annotations

import errno
from collections.abc import Collection, Mapping

from quintet.domain.checkup import Row, ok, warn
from quintet.rpc.http import bind

HOST = "127.0.0.1"


def look_at_ports(ports: Mapping[str, int], ours: Collection[int] = ()) -> list[Row]:
    """By protocol, as `quintet serve` names them in its flags; `ours` are those of the server that runs."""
    return [_look(name, port, ours) for name, port in ports.items()]


def _look(name: str, port: int, ours: Collection[int]) -> Row:
    title = f"port {port}"
    if port in ours:
        return ok(title, f"{name}: this home's own server listens there")
    try:
        bind(HOST, port).close()
    except OSError as error:
        why = "another program listens there" if error.errno == errno.EADDRINUSE else str(error.strerror)
        return warn(title, f"{name}: {why}", f"quintet serve --{name}-port 0")
    return ok(title, f"{name}: free")
