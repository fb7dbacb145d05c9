"""A Kward client in memory, on a real connection to a real engine with a model the test holds in its hand. Its files
are real ones in the test's directory."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from quintet.domain.model import ModelInfo
from quintet.domain.ports import Provider, Tool
from quintet.domain.turn import Mode
from quintet.engine.mirrors import Mirrors
from quintet.engine.starter import Starter
from quintet.protocols.kward.client import Client
from quintet.protocols.kward.house import ME, House, Told
from quintet.protocols.kward.models import Model, model_of
from quintet.protocols.kward.server import connect
from quintet.protocols.kward.session_files import SessionFiles
from quintet.providers.scripted import ScriptedProvider
from quintet.rpc.connection import Connection
from quintet.rpc.descriptor import socket_sink, socket_source
from quintet.tools.ask_user import AskUserTool
from quintet.tools.edit import EditTool
from quintet.tools.read import ReadTool
from quintet.tools.write import WriteTool
from quintet.workspace.exports import write_export
from quintet.workspace.local_disk import LocalDisk
from quintet.workspace.mirror_files import DiskMirrorFiles
from quintet.workspace.paths import PathGuard
from quintet.workspace.seen import Seen
from quintet.workspace.skills import given_skills
from tests.fakes.engine import Process
from tests.fakes.kward_kept import kept
from tests.fakes.providers import OneModel
from tests.fakes.waiting import LIMIT_S, soon

Message = dict[str, Any]


class Said:
    def __init__(self, printed: str, returned: Any) -> None:
        self.printed, self.returned = printed, returned


class Choice:
    """One model; what is set is remembered."""

    def __init__(self, info: ModelInfo) -> None:
        self.info = info
        self.set: list[tuple[str, str]] = []
        self.efforts: list[str] = []

    def reference(self) -> str:
        return ""

    def current(self) -> Model:
        return model_of(self.info.reference, self.info, current=True, effort=self.effort())

    def effort(self) -> str:
        return self.efforts[-1] if self.efforts else "medium"

    async def set_model(self, provider: str, model: str) -> None:
        self.set.append((provider, model))

    async def set_effort(self, effort: str) -> None:
        self.efforts.append(effort)

    async def reload(self) -> None:
        self.set.append(("", "reloaded"))


class Peer:
    def __init__(
        self,
        process: Process,
        where: Path,
        model: str | Provider = "text: hello",
        tools: Sequence[Tool] | None = None,
        *,
        mode: Mode = Mode.ALLOW,
        known: Mapping[str, Any] | None = None,
        keep_recent: int | None = None,
        house: Mapping[str, Any] | None = None,
    ) -> None:
        self.process = process
        self.where = where
        self.work = where / "work"
        self.config = where / "kward"
        self.work.mkdir(parents=True, exist_ok=True)
        self.log: list[str] = []
        self.seen: list[Message] = []
        self.choice = Choice(ModelInfo("fake/model", **(known or {})))
        self._ids = 0
        self._buffer = bytearray()
        provider = ScriptedProvider(model) if isinstance(model, str) else model
        self.provider = provider
        table = OneModel(provider, **(known or {}))

        def starter(tools: Sequence[Tool], *, model: str, told: Told | None = None) -> Starter:
            return Starter(ME, table, tools, mode=mode, model=model, keep_recent=keep_recent, told_late=told)

        self.files, seen = self._files(), Seen()
        self.house = House(
            process.feed,
            lambda: process,
            **{  # type: ignore[arg-type]
                "files": lambda: self.files,
                "disk": LocalDisk(),
                "choice": self.choice,
                "keeping": kept(process, self.config, self.choice),
                "seen": lambda: seen,
                "export": self._export,
                "skills": lambda cwd: given_skills([str(self.config / "skills")]),
                "call_plugin": self._call_plugin,
                "plugins_dir": str(where / "plugins"),
                "starter": starter,
                "tools": lambda: self._tools(seen) if tools is None else tools,
                "cwd": str(self.work),
                "config_dir": str(self.config),
                "mode": mode,
                "log": self.log.append,
                **(house or {}),
            },
        )
        ours, self._socket = socket.socketpair()
        for end in (ours, self._socket):
            end.setblocking(False)
        self.connection: Connection[Client] = connect(socket_source(ours), socket_sink(ours, owned=True), self.house)
        self.serving = asyncio.get_running_loop().create_task(self.connection.serve())

    def _files(self) -> SessionFiles:
        process = self.process
        disk = DiskMirrorFiles(str(self.where / "run"))
        files = SessionFiles(process.journal, process.threads, disk, self.log.append, str(self.where / "index.json"))
        mirrors = Mirrors(process.journal, {"kward": lambda: files}, self.log.append)
        process.feed.mirror, process.feed.unmirror = mirrors.bring_up, mirrors.remove
        return files

    def _tools(self, seen: Seen) -> tuple[Tool, ...]:
        guard = PathGuard()
        return ReadTool(guard, seen), WriteTool(guard, seen), EditTool(guard, seen), AskUserTool()

    async def _export(self, path: str, pieces: Any, *, cwd: str, root: str) -> str:
        write = partial(write_export, PathGuard(), path, pieces, cwd=cwd, root=root, force=True)
        return (await asyncio.to_thread(write)).path

    async def _call_plugin(
        self, path: str, source: str, function: str, arguments: list[Any], *, cwd: str, whose: str
    ) -> Said:
        """The test's own file, run here: how it is confined is shown elsewhere."""
        module: dict[str, Any] = {}
        exec(compile(source, path, "exec"), module)
        return Said("", module[function](*arguments))

    # --- speaking ------------------------------------------------------------------------------------------------
    async def raw(self, data: bytes) -> None:
        await soon(asyncio.get_running_loop().sock_sendall(self._socket, data))

    async def body(self, body: bytes) -> None:
        await self.raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    async def send(self, **message: Any) -> None:
        await self.body(json.dumps({"jsonrpc": "2.0", **message}).encode())

    # --- hearing -------------------------------------------------------------------------------------------------
    async def next(self) -> Message | None:
        """The next message; None at the end."""
        while (found := _block(self._buffer)) is None:
            data = await soon(asyncio.get_running_loop().sock_recv(self._socket, 1 << 20))
            if not data:
                assert not self._buffer
                return None
            self._buffer += data
        message: Message = json.loads(found)
        assert message["jsonrpc"] == "2.0"
        self.seen.append(message)
        return message

    async def until(self, match: Callable[[Message], bool]) -> list[Message]:
        heard: list[Message] = []
        while True:
            message = await self.next()
            assert message is not None, f"the stream ended after {heard[-5:]}"
            heard.append(message)
            if match(message):
                return heard

    async def begin(self, method: str, **params: Any) -> int:
        self._ids += 1
        await self.send(id=self._ids, method=method, params=params)
        return self._ids

    async def reply(self, id: Any) -> Message:
        for message in self.seen:
            if message.get("id") == id and "method" not in message:
                return message
        return (await self.until(lambda m: m.get("id") == id and "method" not in m))[-1]

    async def call(self, method: str, **params: Any) -> Message:
        return await self.reply(await self.begin(method, **params))

    async def ok(self, method: str, **params: Any) -> Any:
        reply = await self.call(method, **params)
        assert "result" in reply, reply
        return reply["result"]

    async def fails(self, method: str, **params: Any) -> tuple[int, str]:
        reply = await self.call(method, **params)
        assert "error" in reply, reply
        return reply["error"]["code"], reply["error"]["message"]

    # --- sessions and turns --------------------------------------------------------------------------------------
    async def session(self, **params: Any) -> Message:
        made: Message = await self.ok("sessions/create", **params)
        return made

    async def start(self, session: str, input: str = "go", **params: Any) -> Message:
        made: Message = await self.ok("turns/start", sessionId=session, input=input, **params)
        return made

    async def turn(self, session: str, input: str = "go", **params: Any) -> list[Message]:
        """The events of a whole turn."""
        return await self.finished((await self.start(session, input, **params))["id"])

    async def finished(self, turn: str) -> list[Message]:
        if "turnFinished" not in kinds(self.events(turn)):
            await self.until(lambda m: is_event(m, turn, "turnFinished"))
        return self.events(turn)

    async def hears(self, kind: str, turn: str = "") -> Message:
        """The payload of such an event of a turn, come already or soon."""
        for message in self.seen:
            if is_event(message, turn, kind):
                return message["params"]["payload"]  # type: ignore[no-any-return]
        found = (await self.until(lambda m: is_event(m, turn, kind)))[-1]
        return found["params"]["payload"]  # type: ignore[no-any-return]

    async def told(self, method: str) -> Message:
        """The params of the newest such notification, come already or soon."""
        for message in reversed(self.seen):
            if message.get("method") == method:
                return message["params"]  # type: ignore[no-any-return]
        return (await self.until(lambda m: m.get("method") == method))[-1]["params"]  # type: ignore[no-any-return]

    def events(self, turn: str) -> list[Message]:
        return [m["params"] for m in self.seen if m.get("method") == "turn/event" and m["params"]["turnId"] == turn]

    def records(self, session: Message) -> list[Message]:
        return [json.loads(line) for line in Path(session["path"]).read_text().splitlines()]

    # --- ending --------------------------------------------------------------------------------------------------
    def hang_up(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    async def close(self) -> None:
        self.connection.end()
        await asyncio.wait([self.serving], timeout=LIMIT_S)
        self._socket.close()


def _block(buffer: bytearray) -> bytes | None:
    head, mark, rest = bytes(buffer).partition(b"\r\n\r\n")
    if not mark:
        return None
    assert head.startswith(b"Content-Length: "), head
    assert b"\n" not in head, "one header only"
    size = int(head.removeprefix(b"Content-Length: "))
    if len(rest) < size:
        return None
    del buffer[: len(head) + 4 + size]
    return rest[:size]


def is_event(message: Message, turn: str, kind: str) -> bool:
    params = message.get("params", {})
    named = not turn or params.get("turnId") == turn
    return message.get("method") == "turn/event" and named and params.get("type") == kind


def kinds(events: list[Message]) -> list[str]:
    return [event["type"] for event in events]


def payloads(events: list[Message], kind: str) -> list[Any]:
    return [event["payload"] for event in events if event["type"] == kind]


def exists(session: Message) -> bool:
    return os.path.exists(session["path"])
