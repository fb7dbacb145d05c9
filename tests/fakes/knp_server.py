"""A real server in this process, on a loop and a thread of its own, and a plain client that sends what it is told."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from quintet.app import App, open_app
from quintet.serving.server import Serving, Wish, serving

T = TypeVar("T")
WITHIN_S = 30.0


class Reply:
    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def __repr__(self) -> str:
        return f"{self.status} {dict(self.headers)} {self.body[:500]!r}"


class Sse:
    """An open stream, read frame by frame as a browser would."""

    def __init__(self, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> None:
        self._connection, self.answer = connection, answer
        self.frames: list[dict[str, Any]] = []

    def next(self) -> dict[str, Any] | None:
        """The next frame: its JSON, with `sse_id` where it had one and the other fields' names; None at the end."""
        fields: dict[str, str] = {}
        while True:
            line = self.answer.readline()
            if not line:
                return None
            text = line.decode().rstrip("\r\n")
            if text:
                name, _, value = text.partition(": ")
                fields[name] = value
            elif fields:
                frame: dict[str, Any] = json.loads(fields.pop("data"))
                frame["sse_id"] = int(fields.pop("id")) if "id" in fields else None
                frame["sse_fields"] = sorted(fields)
                self.frames.append(frame)
                return frame

    def until(self, kind: str) -> dict[str, Any]:
        while frame := self.next():
            if frame["kind"] == kind:
                return frame
        raise AssertionError(f"the stream ended before {kind}: {[f['kind'] for f in self.frames]}")

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


class Running:
    """A server that runs, and how to reach it."""

    def __init__(self, app: App, server: Serving, loop: asyncio.AbstractEventLoop) -> None:
        self.app, self.server, self._loop = app, server, loop
        self.port = int(server.url.rpartition(":")[2]) if server.url else 0

    @property
    def token(self) -> str:
        return self.server.token

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Something done where the server is."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WITHIN_S)

    def do(self, deed: Any) -> None:
        self._loop.call_soon_threadsafe(deed)

    def headers(self, more: Mapping[str, str | None], *, auth: bool = True) -> dict[str, str]:
        sent: dict[str, str | None] = {"Host": f"127.0.0.1:{self.port}"}
        if auth:
            sent["Authorization"] = f"Bearer {self.token}"
        return {name: value for name, value in (sent | dict(more)).items() if value is not None}

    def ask(
        self,
        verb: str,
        path: str,
        body: Any = None,
        *,
        auth: bool = True,
        raw: bytes | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WITHIN_S)
        sent = self.headers(headers or {}, auth=auth)
        if body is not None:
            raw = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.putrequest(verb, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            if raw is not None:
                connection.putheader("Content-Length", str(len(raw)))
            connection.endheaders(raw)
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    @contextmanager
    def stream(self, path: str = "/events", **headers: str) -> Iterator[Sse]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WITHIN_S)
        connection.putrequest("GET", path, skip_host=True)
        for name, value in self.headers({k.replace("_", "-"): v for k, v in headers.items()}).items():
            connection.putheader(name, value)
        connection.endheaders()
        stream = Sse(connection, connection.getresponse())
        try:
            yield stream
        finally:
            stream.close()

    def send(self, raw: bytes) -> bytes:
        """Raw bytes, and everything that is answered until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=WITHIN_S) as peer:
            peer.sendall(raw)
            answer = b""
            while chunk := peer.recv(65536):
                answer += chunk
            return answer


@contextmanager
def knp_server(home: Path, wish: Wish | None = None, **environment: str) -> Iterator[Running]:
    """Started and stopped with the block; whatever it raises comes out here. Its project is what lies around the home,
    unless a wish says otherwise."""
    wish = wish or Wish(knp_port=0, roots=(str(home.parent),))
    ready: list[Running] = []
    failed: list[BaseException] = []
    news, stop = threading.Event(), threading.Event()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        async with (
            open_app(str(home), "serve") as app,
            serving(app, wish, environment) as server,
        ):
            ready.append(Running(app, server, loop))
            news.set()
            await loop.run_in_executor(None, stop.wait)

    def thread() -> None:
        try:
            asyncio.run(run())
        except BaseException as failure:
            failed.append(failure)
        finally:
            news.set()

    running = threading.Thread(target=thread, daemon=True)
    running.start()
    assert news.wait(WITHIN_S)
    try:
        if failed:
            raise failed[0]
        yield ready[0]
    finally:
        stop.set()
        running.join(WITHIN_S)
        assert not running.is_alive(), "the server did not stop"
    if failed:
        raise failed[0]


def wait_for(check: Any, within_s: float = WITHIN_S) -> None:
    deadline = time.monotonic() + within_s
    while not check():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.005)
