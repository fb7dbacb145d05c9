"""A connection over a real socket pair, with a client that speaks raw bytes; every wait is bounded."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quintet.rpc.connection import Connection
from quintet.rpc.descriptor import socket_sink, socket_source
from quintet.rpc.dialect import Dialect
from quintet.rpc.dispatch import Dispatcher
from quintet.rpc.faults import BadParams, Overloaded, Refused, UnknownMethod
from quintet.rpc.framing import BadFrame, LineDecoder, encode_line
from quintet.rpc.messages import BadMessage, ErrorResponse, WireError
from quintet.rpc.rows import Family, Table

WAIT_S = 5.0
CODES: list[tuple[type[BaseException], int]] = [
    (UnknownMethod, -32601),
    (BadParams, -32602),
    (Refused, -32001),
    (Overloaded, -32005),
    (asyncio.CancelledError, -32800),
    (Exception, -32603),
]


def errors(failure: BaseException, method: str) -> WireError:
    code = next(code for kind, code in CODES if isinstance(failure, kind))
    return WireError(code, f"{method}: {failure}")


def bad(problem: BadFrame | BadMessage) -> ErrorResponse | None:
    if isinstance(problem, BadFrame):
        return ErrorResponse(None, WireError(-32700, problem.reason))
    code = -32700 if problem.reason == "parse" else -32600
    return ErrorResponse(problem.id, WireError(code, problem.reason))


class Client:
    """The other end: writes what it is told, reads JSON lines."""

    def __init__(self, sock: socket.socket, connection: Connection[Any], serving: asyncio.Task[None]) -> None:
        self.sock, self.connection, self.serving = sock, connection, serving
        self._buffer = bytearray()

    async def raw(self, data: bytes) -> None:
        async with asyncio.timeout(WAIT_S):
            await asyncio.get_running_loop().sock_sendall(self.sock, data)

    async def send(self, **message: Any) -> None:
        await self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def receive(self) -> Any:
        async with asyncio.timeout(WAIT_S):
            while b"\n" not in self._buffer:
                data = await asyncio.get_running_loop().sock_recv(self.sock, 65536)
                if not data:
                    return None
                self._buffer += data
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return json.loads(line)

    async def ask(self, **message: Any) -> Any:
        await self.send(**message)
        return await self.receive()

    def hang_up(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    async def ended(self) -> None:
        async with asyncio.timeout(WAIT_S):
            await self.serving


Connect = Callable[..., Any]


@asynccontextmanager
async def connected(
    family: Family, *, role: str = "", max_calls: int = 16, state: Any = None, **dialect: Any
) -> AsyncIterator[Client]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    words = {"decoder": LineDecoder, "encode": encode_line, "bad": bad, "grace_s": 0.5, **dialect}
    dispatcher = Dispatcher(Table(family), errors, max_calls=max_calls)
    connection = Connection(
        socket_source(ours),
        socket_sink(ours, owned=True),
        dispatcher,
        Dialect(**words),
        state=state,
        role=role,
    )
    serving = asyncio.get_running_loop().create_task(connection.serve())
    try:
        yield Client(theirs, connection, serving)
    finally:
        connection.end()
        theirs.close()
        async with asyncio.timeout(WAIT_S):
            await asyncio.wait([serving])


@pytest.fixture
def family() -> Family:
    return Family("test")


async def within(work: Awaitable[Any], seconds: float = WAIT_S) -> Any:
    async with asyncio.timeout(seconds):
        return await work
