"""The server: faces on bound sockets in one process. It listens only when it can answer, and ends streams first."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Sequence
from typing import Any

from quintet.rpc.http.face import Face
from quintet.rpc.http.faults import Errors

STOP_WITHIN_S = 2


class HttpServer:
    """One face on its sockets."""

    def __init__(self, face: Face[Any], errors: Errors, sockets: Sequence[socket.socket]) -> None:
        import uvicorn  # heavy, and only a server needs it

        from quintet.rpc.http.connections import Connection

        self.face = face
        self._sockets = list(sockets)
        own = type("FaceConnection", (Connection,), {"errors": staticmethod(errors)})
        config = uvicorn.Config(
            face,
            interface="asgi3",
            http=own,
            ws="none",
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=STOP_WITHIN_S,
            backlog=1024,
        )
        self._server = uvicorn.Server(config)
        # It has nothing to say that a person should read: what goes wrong in a request is in our own log.
        logging.getLogger("uvicorn").disabled = logging.getLogger("uvicorn.error").disabled = True
        self._server.capture_signals = contextlib.nullcontext  # type: ignore[assignment]  # signals are the caller's
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns once requests are answered."""
        self._serving = asyncio.get_running_loop().create_task(self._server.serve(sockets=self._sockets))
        # uvicorn tells that it is ready only by this attribute.
        while not self._server.started and not self._serving.done():  # noqa: ASYNC110
            await asyncio.sleep(0)
        if self._serving.done():
            self._serving.result()

    async def stop(self) -> None:
        """The streams first: clients that wait for the next event would use up the whole time to stop."""
        self.face.end_streams()
        self._server.should_exit = True
        if self._serving is not None:
            await asyncio.wait([self._serving])
