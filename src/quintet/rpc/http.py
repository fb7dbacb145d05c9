"""HTTP: one listener on a socket that is already bound, with /health. Routes of protocols join here."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from quintet.rpc.health import LoopLag

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
STOP_WITHIN_S = 3
LARGEST_HEAD = 16 * 1024


def bind(host: str, port: int) -> socket.socket:
    """A bound socket; OSError if the address is taken. SO_REUSEADDR only skips the wait after a stop."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


class HttpListener:
    def __init__(self, listener: socket.socket) -> None:
        import uvicorn  # heavy, and only a server needs it

        host, port = listener.getsockname()[:2]
        names = {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
        self._hosts = {f"{name}:{port}".encode() for name in names}
        self._socket = listener
        self._lag = LoopLag()
        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=LARGEST_HEAD,
            timeout_graceful_shutdown=STOP_WITHIN_S,
        )
        self._server = uvicorn.Server(config)
        self._server.capture_signals = contextlib.nullcontext  # type: ignore[assignment]  # signals are the caller's

    async def run(self, ready: Callable[[], None], stop: asyncio.Event) -> None:
        """Serve until told to stop; `ready` is called once requests are answered."""
        self._lag.start()
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        try:
            # uvicorn tells that it is ready only by this attribute.
            while not self._server.started and not serving.done():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            if not serving.done():
                ready()
            waiting = asyncio.create_task(stop.wait())
            await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        finally:
            self._server.should_exit = True
            await serving
            await self._lag.stop()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            await _reply(send, 403, b'{"error":"this Host is not served here"}')
        elif scope["path"] == "/health" and scope["method"] in ("GET", "HEAD"):
            await _reply(send, *self._lag.answer())
        else:
            await _reply(send, 401, b'{"error":"a credential is needed"}')


async def _reply(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
