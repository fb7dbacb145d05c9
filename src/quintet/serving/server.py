"""The server as a whole: the faces that were asked for, on their sockets, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from quintet.app import App
from quintet.domain.errors import Busy, Invalid
from quintet.protocols.knp.errors import errors as knp_errors
from quintet.protocols.knp.server import face as knp_face
from quintet.rpc.http.binding import bind
from quintet.rpc.http.face import Face
from quintet.rpc.http.guards import in_url
from quintet.rpc.http.health import LoopLag
from quintet.rpc.http.server import HttpServer
from quintet.rpc.unix_path import SocketTrouble, UnixPath
from quintet.serving.door import Door
from quintet.serving.knp import knp_house

MOST_DESCRIPTORS = 16_384
HEARD_WITHIN_S = 1.0  # how runs ended, by whoever watches, when the server stops


class Wish(msgspec.Struct, frozen=True):
    """What was asked to be served, and where."""

    host: str = "127.0.0.1"
    knp_port: int | None = 4096  # None: not on TCP
    socket: str = ""
    auth: bool = True
    roots: tuple[str, ...] = ()  # of projects whose files may be touched; the first also answers to `default`


@asynccontextmanager
async def serving(app: App, wish: Wish, environment: dict[str, str]) -> AsyncIterator[Serving]:
    """Everything answers inside the block; behind it nothing is left."""
    with contextlib.ExitStack() as left:
        sockets: list[socket.socket] = []
        if wish.knp_port is not None:
            # Taken before anything is done to the journal: a port that cannot be had should change nothing.
            sockets.append(left.enter_context(_bound(wish.host, wish.knp_port, "--knp-port")))
        await app.journal.recover()
        if wish.socket:
            place = UnixPath(wish.socket, named_by_user=True)
            try:
                sockets.append(left.enter_context(await place.listen()))
            except SocketTrouble as why:
                raise Busy(f"The socket cannot be served: {why}.", next_step="Choose another with --socket.") from None
            left.callback(place.remove)
        _allow_descriptors()
        door = Door(app.home, app.config.server, environment, auth=wish.auth)
        server = Serving(app, wish, door, sockets)
        try:
            await server.start()
            yield server
        finally:
            await server.stop()


class Serving:
    def __init__(self, app: App, wish: Wish, door: Door, sockets: list[socket.socket]) -> None:
        self._door, self._wish, self._sockets = door, wish, sockets
        self._lag = LoopLag()
        self._house = knp_house(app, wish.roots, self._lag)
        face = knp_face(self._house, on_defect=app.log.error, **door.for_face(sockets))
        self._knp = HttpServer(face, knp_errors, sockets)
        self._housekeeping, self._turns = app.housekeeping, app.turns
        self._tidying: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._lag.start()
        try:
            await self._knp.start()
        except OSError as error:
            # Somebody was quicker: an address can be bound twice while nobody listens on it.
            raise _taken(error, self._wish.host, self._wish.knp_port, "--knp-port") from None
        self._tidying = asyncio.get_running_loop().create_task(self._housekeeping.run())

    async def stop(self) -> None:
        """Turns first, so that whoever waits for one still hears how it ended; then streams; then everybody."""
        if self._tidying is not None:
            self._tidying.cancel()
        await self._turns.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEARD_WITHIN_S):
                await self._house.fanout.told_all()
        await self._knp.stop()
        await self._house.fanout.close()
        await self._lag.stop()
        self._door.access.flush()

    @property
    def faces(self) -> dict[str, Face[Any]]:
        """By protocol."""
        return {"knp": self._knp.face}

    @property
    def token(self) -> str:
        return self._door.token

    @property
    def url(self) -> str:
        for listener in self._sockets:
            if listener.family != socket.AF_UNIX:
                host, port = listener.getsockname()[:2]
                return f"http://{in_url(host)}:{port}"
        return ""

    def facts(self) -> dict[str, Any]:
        """What server.json says: how local clients find the server."""
        knp = {key: value for key, value in (("url", self.url), ("socket", self._wish.socket)) if value}
        return {"pid": os.getpid(), "token": self._door.token, "knp": knp}

    def rotate(self) -> None:
        """Another token from now on. Streams that the old one opened end."""
        self._door.rotate()
        self._knp.face.end_streams(of_old_credentials=True)


def _bound(host: str, port: int, flag: str) -> socket.socket:
    try:
        return bind(host, port)
    except OSError as error:
        raise _taken(error, host, port, flag) from None


def _taken(error: OSError, host: str, port: int | None, flag: str) -> Busy | Invalid:
    if error.errno == errno.EADDRINUSE:
        next_step = f"Stop what listens there, or choose another with {flag}."
        return Busy(f"Port {port} on {host} is taken.", next_step=next_step)
    return Invalid(
        f"{host} port {port} cannot be listened on: {error.strerror}.",
        next_step=f"Choose another with --host or {flag}.",
    )


def _allow_descriptors() -> None:
    """A thousand streams are a thousand descriptors; the usual soft limit is lower than that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
