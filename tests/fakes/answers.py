"""A small HTTP server of fixed answers: what it says stands in a table; what is not there is a 404."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

HANG = object()  # accepts the request and never answers


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Answers:
    """`answers` maps paths, or "METHOD path", to a JSON value, to (status, value), to bytes, or to HANG."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.asked: list[Asked] = []
        self.port = 0

    async def __aenter__(self) -> Answers:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._answer(await _read(reader), writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        self.asked.append(asked)
        found = self._answers.get(f"{asked.method} {asked.path}", self._answers.get(asked.path, (404, "no such path")))
        if found is HANG:
            await asyncio.Event().wait()
        status, value = found if isinstance(found, tuple) else (200, found)
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        head = f"HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        writer.write(head.encode() + b"connection: close\r\n\r\n" + body)
        await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Asked:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = first.split()
    return Asked(method, path, headers, json.loads(body) if body else None)
