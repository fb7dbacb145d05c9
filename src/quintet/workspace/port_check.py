"""Ports: whether the server could listen where it usually does. Tried by really listening there, for a moment."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Collection, Mapping

from quintet.domain.checkup import Row, ok, warn

HOST = "127.0.0.1"
Bind = Callable[[str, int], socket.socket]


def look_at_ports(ports: Mapping[str, int], bind: Bind, ours: Collection[int] = ()) -> list[Row]:
    """By protocol, as `quintet serve` names them in its flags and with the server's own `bind`; `ours` are the ports
    of the server that runs."""
    return [_look(name, port, bind, ours) for name, port in ports.items()]


def _look(name: str, port: int, bind: Bind, ours: Collection[int]) -> Row:
    title = f"port {port}"
    if port in ours:
        return ok(title, f"{name}: this home's own server listens there")
    try:
        bind(HOST, port).close()
    except OSError as error:
        why = "another program listens there" if error.errno == errno.EADDRINUSE else str(error.strerror)
        return warn(title, f"{name}: {why}", f"quintet serve --{name}-port 0")
    return ok(title, f"{name}: free")
