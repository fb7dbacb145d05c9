"""The server itself: HTTP/1.1 by hand, so that it can also be spoken badly. See the package for what it understands."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from quintet.domain.model import FinishChunk, UsageChunk
from quintet.providers.script import Delay, Fail, Say, Script, Step, Until, parse_script
from quintet.providers.scripted import next_step
from tests.fakes.model_server.faults import FAULTS, Broken, status_answer
from tests.fakes.model_server.speech import SPEECHES, Speech
from tests.fakes.model_server.told import Told, told

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
PACKED = 16_384
UNTIL_S = 60.0


Mind = Callable[[Told], str]  # makes one step of a script up


class Request(NamedTuple):
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Fault(NamedTuple):
    word: str
    value: str
    first: int  # the number of the first request it is for
    last: int

    @classmethod
    def parse(cls, line: str) -> Fault:
        found = re.fullmatch(r"([\w-]+)(?:=(\S+))?(?: times (\d+))?(?: at (\d+))?", line.strip())
        if found is None or not (found[1] in FAULTS or re.fullmatch(r"\d{3}", found[1])):
            raise ValueError(f"no such fault: {line!r}; the words are {', '.join(FAULTS)} and any status")
        first = int(found[4] or 1)
        return cls(found[1], found[2] or "", first, first + int(found[3] or 1) - 1)


class Answer:
    """One answer on its way: what faults get to work with."""

    def __init__(self, request: Request, speech: Speech, step: Step | None, writer: Any, *, packed: bool) -> None:
        self.request = request
        self.speech = speech
        self.step = step
        self.packed = packed
        self._writer = writer
        self._begun = False

    @property
    def tool(self) -> str:
        """The name of the first tool offered."""
        tools = self.request.body.get("tools") or [{"name": "none"}]
        return str(tools[0].get("name") or tools[0]["function"]["name"])

    def head(self) -> None:
        if not self._begun:
            self._begun = True
            self._writer.write(HEAD)

    def raw(self, data: bytes) -> None:
        self._writer.write(data)

    def frames(self, frame: bytes, times: int = 1) -> None:
        """Each frame an HTTP chunk of its own, as servers do that send each word when they have it; or packed."""
        if not frame:
            return
        self.head()
        if self.packed:
            most = max(1, PACKED // len(frame))
            for done in range(0, times, most):
                self._writer.write(chunked(frame * min(most, times - done)))
        else:
            self._writer.write(chunked(frame) * times)

    async def flush(self) -> None:
        await self._writer.drain()

    def close_body(self) -> None:
        self.head()
        self._writer.write(b"0\r\n\r\n")

    async def words(self, directory: str = "") -> None:
        """Everything the step says, without how it ends."""
        self.frames(self.speech.begin())
        for act in self.step.acts if self.step else ():
            match act:
                case Say(chunk=chunk, times=times, every_s=0.0):
                    first = self.speech.say(chunk)
                    self.frames(first)
                    if times > 1:  # what opens a block comes once, what repeats is made once
                        self.frames(self.speech.say(chunk), times - 1)
                case Say(chunk=chunk, times=times, every_s=every_s):
                    for _ in range(times):
                        await asyncio.sleep(every_s)
                        self.frames(self.speech.say(chunk))
                case Delay(seconds=seconds):
                    await self.flush()
                    await asyncio.sleep(seconds)
                case Until(path=path):
                    await self.flush()
                    await _until(os.path.join(directory, path))
                case Fail(code=code, message=message):
                    await self.fail(code, message)
                    raise Broken
            await self.flush()

    async def fail(self, code: str, message: str) -> None:
        self.frames(self.speech.error(code, message))
        self.close_body()
        await self.flush()

    async def end(self) -> None:
        for frame in self.speech.end():
            self.frames(frame)
        self.close_body()
        await self.flush()


class ModelServer:
    """See the package. `requests` are all requests in order, with their headers as they came."""

    def __init__(
        self,
        script: str = "text: hello",
        *,
        faults: Sequence[str] = (),
        packed: bool = False,
        directory: str = "",
        mind: Mind | None = None,
    ) -> None:
        lines = script.splitlines()
        told = [line.partition(":")[2] for line in lines if line.startswith("fault:")]
        self._script: Script = parse_script("\n".join(line for line in lines if not line.startswith("fault:")))
        self._faults = [Fault.parse(line) for line in (*told, *faults)]
        self._packed = packed
        self._mind = mind
        self._directory = directory
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.requests: list[Request] = []
        self.connections = 0  # that were ever made
        self.open_connections = 0
        self.on_request = lambda request: None

    async def start(self, port: int = 0) -> ModelServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        return self

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> ModelServer:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self.open_connections += 1
        try:
            while request := await _read(reader):
                self.requests.append(request)
                self.on_request(request)
                await self._answer(request, len(self.requests), reader, writer)
        except (Broken, ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            self.open_connections -= 1
            writer.close()

    async def _answer(
        self, request: Request, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        kind = next((made for end, made in SPEECHES.items() if request.path.endswith(end)), None)
        if kind is None:
            writer.write(status_answer(404, "no such path"))
            return
        step = self._step(told(request.body))
        answer = Answer(request, kind(str(request.body.get("model", ""))), step, writer, packed=self._packed)
        _foresee(answer)
        fault = next((f for f in self._faults if f.first <= number <= f.last), None)
        if fault is not None and fault.word.isdigit():
            writer.write(status_answer(int(fault.word), f"the server says {fault.word}"))
        elif fault is not None:
            await FAULTS[fault.word](answer, fault.value, reader, writer)
        elif step is not None and isinstance(step.acts[0], Fail) and step.acts[0].code.isdigit():
            writer.write(status_answer(int(step.acts[0].code), step.acts[0].message))
        else:
            await answer.words(self._directory)
            await answer.end()

    def _step(self, given: Told) -> Step | None:
        if self._mind is not None:
            return parse_script(self._mind(given)).steps[0]
        place = next_step(self._script, given.items)
        return self._script.steps[place] if place < len(self._script.steps) else None


def _foresee(answer: Answer) -> None:
    """Some dialects tell usage at the beginning; and how a step ends is known although it is said last."""
    for act in answer.step.acts if answer.step else ():
        if isinstance(act, Say) and isinstance(act.chunk, UsageChunk | FinishChunk):
            answer.speech.say(act.chunk)
    if answer.step is None:
        answer.speech.reason = answer.speech.REASONS[next(iter(answer.speech.REASONS))]


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _until(path: str) -> None:
    async with asyncio.timeout(UNTIL_S):
        while not os.path.exists(path):
            await asyncio.sleep(0.005)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").strip().split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        assert name.lower() not in headers, f"the header {name} came twice"
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(first.split()[1], headers, json.loads(body or b"{}"))
