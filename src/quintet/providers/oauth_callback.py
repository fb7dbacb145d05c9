"""The place on this machine where a browser comes back to after a login. Listens on loopback only, for one answer.

A wrong state is answered with 400 and ends nothing: any page can call this address, only the right one knows the state.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import suppress

from quintet.domain.errors import QuintetError
from quintet.providers.oauth import CALLBACK_PATH, code_in

LONGEST_LINE = 16_384
READ_S = 10.0
DONE = "Login complete. You can close this window."
REFUSED = "Login failed. Return to where you began it."
WRONG = "Invalid OAuth state."


class Callback:
    """`code` is the code, once it has come; or what the login was refused with."""

    def __init__(self, state: str) -> None:
        self._state = state
        self._servers: list[asyncio.Server] = []
        self.code: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.redirect_uri = ""

    async def open(self, port: int) -> None:
        """At this port, or where it is taken at a free one."""
        try:
            first = await self._listen(socket.AF_INET, "127.0.0.1", port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not port:
                raise
            first = await self._listen(socket.AF_INET, "127.0.0.1", 0)
        chosen = first.sockets[0].getsockname()[1]
        with suppress(OSError):  # browsers may take `localhost` for this one
            await self._listen(socket.AF_INET6, "::1", chosen)
        self.redirect_uri = f"http://localhost:{chosen}{CALLBACK_PATH}"

    async def close(self) -> None:
        servers, self._servers = self._servers, []
        for server in servers:
            server.close()
        if not self.code.done():
            self.code.cancel()

    async def _listen(self, family: int, host: str, port: int) -> asyncio.Server:
        server = await asyncio.start_server(self._answer, host, port, family=family, limit=LONGEST_LINE)
        self._servers.append(server)
        return server

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_S):
                line = await reader.readline()
                while (await reader.readline()).strip():
                    pass
                status, words = self._heard(line.decode("latin-1").split(" "))
                head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
                writer.write(f"{head}Content-Length: {len(words)}\r\n\r\n{words}".encode())
                await writer.drain()
        except (TimeoutError, OSError, ValueError):
            pass  # a line too long, or somebody who says nothing
        finally:
            writer.close()

    def _heard(self, line: list[str]) -> tuple[str, str]:
        if len(line) != 3 or line[0] != "GET" or line[1].partition("?")[0] != CALLBACK_PATH:
            return "404 Not Found", "There is nothing here."
        if "?" not in line[1] or "state=" not in line[1]:
            return "400 Bad Request", WRONG
        try:
            code = code_in(f"http://localhost{line[1]}", self._state)
        except QuintetError as error:
            if "mismatch" in error.message or self.code.done():
                return "400 Bad Request", WRONG
            self.code.set_exception(error)
            return "200 OK", REFUSED
        if not self.code.done():
            self.code.set_result(code)
        return "200 OK", DONE
