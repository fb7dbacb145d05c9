"""Binding: an address taken, but not answered at yet."""

from __future__ import annotations

import socket


def bind(host: str, port: int) -> socket.socket:
    """A bound socket; OSError if the address is taken. SO_REUSEADDR only skips the wait after a stop.

    It does not listen yet: whoever connects before the server can answer is refused, not kept waiting.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named: asyncio sends small pieces at once only on sockets that say they are TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener
