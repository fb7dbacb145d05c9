"""Models a test holds in its hand: they say what they were given, stop at gates and remember what they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from quintet.domain.model import Chunk, Finish, FinishChunk, ModelInfo, ModelRequest, TextChunk, ToolInput, ToolStart
from quintet.domain.ports import Provider
from tests.fakes.waiting import soon


class Gate:
    """A place where the model stops until the test lets it go on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    async def stopped(self) -> None:
        """The model stands here."""
        await soon(self.reached.wait())

    async def pass_through(self) -> None:
        self.reached.set()
        await self._open.wait()


Line = Chunk | Gate | BaseException


class GatedProvider:
    """Plays one list of lines per model call; after the last it says "over"."""

    def __init__(self, *steps: Sequence[Line]) -> None:
        self._steps = steps
        self.requests: list[ModelRequest] = []
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        self.requests.append(request)
        number = len(self.requests) - 1
        lines: Sequence[Line] = self._steps[number] if number < len(self._steps) else [TextChunk("over")]
        try:
            for line in lines:
                if isinstance(line, Gate):
                    await line.pass_through()
                elif isinstance(line, BaseException):
                    raise line
                else:
                    yield line
            yield FinishChunk(Finish.STOP)
        finally:
            self.closed += 1


class OneModel:
    """A provider table with one row; any name means it."""

    def __init__(self, provider: Provider, **known: Any) -> None:
        self._provider = provider
        self._known = known  # what is known of it

    def info(self, reference: str) -> ModelInfo:
        """A provider that knows something of its model says it."""
        known: ModelInfo = getattr(self._provider, "info", ModelInfo)(reference)
        return msgspec.structs.replace(known, **self._known)

    def resolve(self, reference: str) -> tuple[str, Provider]:
        return reference or "fake/model", self._provider


def text(*words: str) -> list[Line]:
    return [TextChunk(word) for word in words]


def call(name: str, given: str = "{}", call_id: str = "c1") -> list[Line]:
    return [ToolStart(call_id, name, fed=True), ToolInput(call_id, given)]
