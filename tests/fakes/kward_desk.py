"""A Kward client in memory on the whole app, as `quintet kward` puts it together, with Kward's files in the test's
directory."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from quintet.app import App
from quintet.config import load_config
from quintet.config.kward import Addresses
from quintet.journal.opening import open_journal
from quintet.protocols.kward.server import connect
from quintet.providers.oauth import OAuthClient
from quintet.rpc.descriptor import socket_sink, socket_source
from quintet.serving.kward import kward_house
from quintet.serving.kward_keeping import kward_keeping, opening
from tests.fakes.waiting import soon
from tests.faults.processes import write_home

Message = dict[str, Any]
NOBODY = "http://127.0.0.1:9"  # where nobody listens


class Failed(AssertionError):
    def __init__(self, error: Message) -> None:
        super().__init__(str(error))
        self.code, self.message = error["code"], error["message"]


class Desk:
    def __init__(self, app: App, kward: Path, work: Path, theirs: socket.socket) -> None:
        self.app, self.kward, self.work = app, kward, work
        self.notes: list[Message] = []  # notifications, in order
        self.frames: list[bytes] = []
        self._socket = theirs
        self._buffer = bytearray()
        self._ids = 0

    async def call(self, method: str, **params: Any) -> Any:
        self._ids += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}).encode()
        frame = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        await soon(asyncio.get_running_loop().sock_sendall(self._socket, frame))
        while (message := await self._next()).get("id") != self._ids:
            self.notes.append(message)
        if "error" in message:
            raise Failed(message["error"])
        return message["result"]

    async def refused(self, method: str, **params: Any) -> tuple[int, str]:
        with pytest.raises(Failed) as told:
            await self.call(method, **params)
        return told.value.code, told.value.message

    async def note(self, match: Callable[[Message], bool]) -> Message:
        """The params of the first such notification, heard or to come."""
        for message in self.notes:
            if match(message):
                return message["params"]
        while not match(message := await self._next()):
            self.notes.append(message)
        self.notes.append(message)
        return message["params"]

    async def turn(self, words: str, session: str = "") -> str:
        """A whole turn; the session's id."""
        session = session or (await self.call("sessions/create", workspaceRoot=str(self.work)))["id"]
        turn = await self.call("turns/start", sessionId=session, input=words)
        await self.note(
            lambda m: (
                m["method"] == "turn/event"
                and m["params"]["turnId"] == turn["id"]
                and m["params"]["type"] == "turnFinished"
            )
        )
        return session

    @property
    def config(self) -> Any:
        return json.loads((self.kward / "config.json").read_text())

    async def _next(self) -> Message:
        while True:
            head, found, rest = self._buffer.partition(b"\r\n\r\n")
            size = int(head.split(b":")[1]) if found else 0
            if found and len(rest) >= size:
                self._buffer = rest[size:]
                self.frames.append(bytes(rest[:size]))
                message: Message = json.loads(self.frames[-1])
                return message
            data = await soon(asyncio.get_running_loop().sock_recv(self._socket, 65_536))
            assert data, "the connection ended"
            self._buffer += data


@asynccontextmanager
async def desk(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    script: str = "scope: turn\ntext: hello",
    config: str = "",
    kward: Message | None = None,
    at: Addresses | None = None,
    oauth: str = NOBODY,
    **environment: str,
) -> AsyncIterator[Desk]:
    """`kward` is what its config.json says; `environment` are further variables."""
    home, files, work = write_home(directory / "home", script, config), directory / "kward", directory / "work"
    for name in [n for n in os.environ if n.startswith(("KWARD_", "OPENAI_", "OPENROUTER_"))]:
        monkeypatch.delenv(name)
    paths = {"KWARD_CONFIG_PATH": str(files / "config.json"), "KWARD_AUTH_PATH": str(files / "auth.json")}
    for name, value in {**paths, "KWARD_OAUTH_PORT": "0", **environment}.items():
        monkeypatch.setenv(name, value)
    work.mkdir(exist_ok=True)
    if kward is not None:
        files.mkdir(exist_ok=True)
        (files / "config.json").write_text(json.dumps(kward))
    journal = await open_journal(home, protocol="kward")
    app = App(home, load_config(str(home)), journal, **opening(os.environ))
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)
    addresses = at or Addresses(f"{NOBODY}/codex", f"{NOBODY}/api")
    try:
        async with kward_keeping(app, os.environ, at=addresses, oauth=OAuthClient(issuer=oauth)) as keeping:
            house = kward_house(app, str(work), keeping)
            connection = connect(socket_source(ours), socket_sink(ours, owned=True), house)
            serving = asyncio.get_running_loop().create_task(connection.serve())
            yield Desk(app, files, work, theirs)
            connection.end()
            await soon(serving)
    finally:
        with suppress(OSError):
            theirs.close()
        await app.close()
