"""A Wire client in memory, on a real connection to a real engine with a model the test holds in its hand."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from quintet.domain.hook import HookSubscription
from quintet.domain.ports import Models, Provider, Tool
from quintet.domain.thread import Thread, ThreadSettings
from quintet.domain.tool import ToolSpec
from quintet.domain.turn import Mode
from quintet.engine.starter import Starter
from quintet.protocols.wire.client import Client
from quintet.protocols.wire.gate import Gate
from quintet.protocols.wire.house import ME, House
from quintet.protocols.wire.server import connect
from quintet.providers.scripted import ScriptedProvider
from quintet.rpc.connection import Connection
from quintet.rpc.descriptor import socket_sink, socket_source
from tests.fakes.engine import Process
from tests.fakes.providers import OneModel
from tests.fakes.waiting import LIMIT_S, soon

Message = dict[str, Any]
Answer = Callable[[Message], Message | None]


def no_answer(request: Message) -> None:
    return None


class Peer:
    """One client of one engine. `models` may be a script, a provider or a table of models."""

    def __init__(
        self,
        process: Process,
        models: str | Provider | Models = "text: hello",
        tools: Sequence[Tool] = (),
        *,
        mode: Mode = Mode.ASK,
        thread: str = "",
        gated: bool = True,
        known: Mapping[str, Any] | None = None,
        house: Mapping[str, Any] | None = None,
        **starter: Any,
    ) -> None:
        self.process = process
        self.thread = thread
        self.log: list[str] = []
        table = models if hasattr(models, "resolve") else self._one(models, known or {})

        async def open_thread() -> Thread:
            if not self.thread:
                self.thread = (await process.threads.create(ThreadSettings("/project/here"))).id
            return (await process.threads.get(self.thread)).thread

        def make(
            tools: Sequence[Tool],
            *,
            external_tools: Sequence[ToolSpec],
            hooks: Sequence[HookSubscription],
            withheld: Mapping[str, str],
        ) -> Starter:
            given = {
                "external_tools": external_tools,
                "hooks": hooks,
                "withheld": withheld,
                "restarts": True,
                "keeps_steers": False,
                **starter,
            }
            return Starter(ME, table, tools, mode=mode, **given)  # type: ignore[arg-type]

        made = House(
            process.feed,
            lambda: process,
            starter=make,
            tools=lambda: tools,
            version="0",
            configured_hooks=Counter(hook.event.value for hook in process.hooks.configured),
            window=lambda model: table.info(model).context_window,  # type: ignore[union-attr]
            log=self.log.append,
            **({"open_thread": open_thread} | dict(house or {})),
        )
        self._connect(made, gated=gated)

    @classmethod
    def at(cls, house: House) -> Peer:
        """A client of an engine that was put together elsewhere."""
        peer = cls.__new__(cls)
        peer._connect(house, gated=True)
        return peer

    def _connect(self, house: House, *, gated: bool) -> None:
        self.seen: list[Message] = []
        self.lines: list[bytes] = []
        self._buffer = bytearray()
        ours, self._socket = socket.socketpair()
        for end in (ours, self._socket):
            end.setblocking(False)
        self.connection: Connection[Client] = connect(
            socket_source(ours), socket_sink(ours, owned=True), house, gate=Gate(shut=gated)
        )
        self.serving = asyncio.get_running_loop().create_task(self.connection.serve())

    @staticmethod
    def _one(model: Any, known: Mapping[str, Any]) -> OneModel:
        return OneModel(ScriptedProvider(model) if isinstance(model, str) else model, **known)

    # --- speaking ------------------------------------------------------------------------------------------------
    async def raw(self, data: bytes) -> None:
        await soon(asyncio.get_running_loop().sock_sendall(self._socket, data))

    async def send(self, **message: Any) -> None:
        await self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def answer(self, request: Message, **result: Any) -> None:
        await self.send(id=request["id"], result={"request_id": request["id"], **result})

    # --- hearing -------------------------------------------------------------------------------------------------
    async def next(self) -> Message | None:
        """The next message; None at the end."""
        while b"\n" not in self._buffer:
            data = await soon(asyncio.get_running_loop().sock_recv(self._socket, 1 << 20))
            if not data:
                return None
            self._buffer += data
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = rest
        assert line[:1] + line[-1:] == b"{}", line  # no blank, mark or return around it, which a parser would forgive
        message: Message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        self.seen.append(message)
        self.lines.append(bytes(line))
        return message

    async def until(self, match: Callable[[Message], bool], answers: Answer = no_answer) -> list[Message]:
        """All messages up to the first that matches; requests on the way are answered with what `answers` gives."""
        heard: list[Message] = []
        while True:
            message = await self.next()
            assert message is not None, f"the stream ended after {heard[-5:]}"
            heard.append(message)
            if message.get("method") == "request" and (result := answers(message)) is not None:
                await self.answer(message, **result)
            if match(message):
                return heard

    async def hears(self, kind: str, answers: Answer = no_answer) -> list[Message]:
        return await self.until(lambda m: "params" in m and m["params"]["type"] == kind, answers)

    async def reply(self, id: Any, answers: Answer = no_answer) -> list[Message]:
        return await self.until(lambda m: m.get("id") == id and "method" not in m, answers)

    async def call(self, method: str, id: Any = "c", answers: Answer = no_answer, **params: Any) -> list[Message]:
        await self.send(id=id, method=method, params=params)
        return await self.reply(id, answers)

    async def ask(self, method: str, **params: Any) -> Message:
        """Only the reply."""
        return (await self.call(method, **params))[-1]

    async def begin(self, words: Any = "go") -> None:
        await self.send(id="p", method="prompt", params={"user_input": words})

    async def prompt(self, words: Any = "go", answers: Answer = no_answer) -> list[Message]:
        await self.begin(words)
        return await self.reply("p", answers)

    async def initialize(self, version: str = "1.10", **more: Any) -> Message:
        return await self.ask("initialize", protocol_version=version, client={"name": "test"}, **more)

    async def quiet(self) -> bool:
        """Nothing waits to be heard: whatever was sent before the reply to a call that fails at once has been heard."""
        await self.send(id="quiet", method="no such method")
        return [m.get("id") for m in await self.reply("quiet")] == ["quiet"]

    # --- ending --------------------------------------------------------------------------------------------------
    def hang_up(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def vanish(self) -> None:
        """As a client that is killed."""
        self._socket.close()

    async def rest(self) -> list[Message]:
        heard = []
        while (message := await self.next()) is not None:
            heard.append(message)
        return heard

    async def close(self) -> None:
        self.connection.end()
        await asyncio.wait([self.serving], timeout=LIMIT_S)
        self._socket.close()
