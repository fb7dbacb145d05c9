"""Compaction with models behind real HTTP, in each wire: what the model is really sent before, for and after it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.event import CompactionFinished, CompactionStarted, StepFinished
from quintet.domain.item import ToolCall
from quintet.domain.surroundings import Instructions, Surroundings
from quintet.domain.tool import ToolOutcome
from quintet.domain.turn import TurnState
from quintet.engine.retelling import INSTRUCTIONS
from quintet.providers.settings import ProviderKind
from tests.fakes.engine import House, Process
from tests.fakes.model_server import ModelServer
from tests.fakes.model_server.told import Told, told
from tests.fakes.tools import FakeTool
from tests.fakes.wires import WIRES, wire

CALLS = 12
RESULT = "word " * 80
MOST = 4_000  # characters of conversation that the model takes
# In the words of the vendor whose wire it is: as the status of the answer, and inside a stream that began well.
REFUSALS = {
    ProviderKind.OPENAI_CHAT: (
        "400 This model's maximum context length is 1000 tokens. However, your messages resulted in 1234 tokens.",
        "context_length_exceeded This endpoint's maximum context length is 1000 tokens.",
    ),
    ProviderKind.OPENAI_RESPONSES: (
        "400 Your input exceeds the context window of this model. Please adjust your input and try again.",
        "context_length_exceeded Your input exceeds the context window of this model.",
    ),
    ProviderKind.ANTHROPIC: (
        "400 prompt is too long: 1234 tokens > 1000 maximum",
        "invalid_request_error prompt is too long: 1234 tokens > 1000 maximum",
    ),
}


class Rules:
    """Surroundings in which the person has rules."""

    async def look(self, cwd: str) -> Surroundings:
        return Surroundings(instructions=(Instructions("AGENTS.md", "Mind the fox.", of_person=True),))


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[Process]:
    (tmp_path / "home").mkdir(mode=0o700)
    house = House("sqlite", tmp_path / "home")
    yield await house.process(surroundings=Rules())
    await house.close()


def looking() -> FakeTool:
    async def run(prepared: Any, context: Any) -> ToolOutcome:
        return ToolOutcome(RESULT)

    return FakeTool("look", run)


def mind(refusal: str = "") -> Callable[[Told], str]:
    """Calls a tool again and again; refuses what is too long; knows a request for a summary when it sees one. How far
    it is, it reads off its own calls, of which it still sees the newest."""

    def answer(given: Told) -> str:
        size = len(given.instructions) + sum(len(getattr(i.body, "text", "")) for i in given.items)
        usage = f"\nusage: in={size // 4} out=5"
        if given.instructions.startswith(INSTRUCTIONS):
            return "text: in short" + usage
        if refusal and size > MOST:
            return f"error: {refusal}"
        calls = [json.loads(i.body.input)["number"] for i in given.items if isinstance(i.body, ToolCall)]
        number = max(calls, default=0) + 1
        return f'tool_call: look {{"number": {number}}}{usage}' if number <= CALLS else f"text: over{usage}"

    return answer


def size_of(body: dict[str, Any]) -> int:
    return len(json.dumps(body.get("messages", body.get("input"))))


@pytest.mark.req("models:C1", "models:C3")
@pytest.mark.parametrize("inside", [False, True], ids=["as a status", "inside the stream"])
@pytest.mark.parametrize("kind", WIRES, ids=str)
async def test_a_request_refused_for_its_length_is_made_shorter_and_the_turn_ends_well(
    one: Process, kind: ProviderKind, inside: bool
) -> None:
    tool = looking()
    async with ModelServer(mind=mind(REFUSALS[kind][inside])) as server:
        provider = wire(server, kind)
        thread = await one.thread()
        turn = await one.run(thread, provider, [tool], say="find the fox")
        await provider.close()
    assert turn.state is TurnState.DONE, turn.error
    assert [ran["number"] for ran in tool.ran] == list(range(1, CALLS + 1))  # nothing twice, nothing left out
    started = await one.payloads(thread, CompactionStarted)
    finished = await one.payloads(thread, CompactionFinished)
    assert {s.reason for s in started} == {"too_long"}
    assert len(started) == len(finished)
    assert not any(f.error for f in finished)
    refused = [s for s in await one.payloads(thread, StepFinished) if s.error]
    assert len(refused) == len([f for f in finished if f.summary_item])
    assert {s.error.data["reason"] for s in refused} == {"too_long"}
    _check_requests([request.body for request in server.requests], "find the fox")


@pytest.mark.req("models:C1", "models:C3", "models:C13")
@pytest.mark.parametrize("kind", WIRES, ids=str)
async def test_a_known_window_is_never_filled(one: Process, kind: ProviderKind) -> None:
    window = MOST // 4
    async with ModelServer(mind=mind("500 it should never have come to this")) as server:
        provider = wire(server, kind)
        thread = await one.thread()
        known = {"context_window": window}
        turn = await one.run(thread, provider, [looking()], say="find the fox", known=known)
        await provider.close()
    assert turn.state is TurnState.DONE, turn.error
    assert {s.reason for s in await one.payloads(thread, CompactionStarted)} == {"threshold"}
    summaries = [s for s in await one.payloads(thread, StepFinished) if s.number == 0]
    assert summaries
    assert all(s.usage and s.usage.input_tokens for s in summaries)
    _check_requests([request.body for request in server.requests], "find the fox")


def _check_requests(bodies: list[dict[str, Any]], asked: str) -> None:
    """A request for a summary stands between one that was too long and a shorter one with the same instructions."""
    places = [n for n, body in enumerate(bodies) if told(body).instructions.startswith(INSTRUCTIONS)]
    assert places
    first = told(bodies[0]).instructions
    assert "Mind the fox." in first
    for place in places:
        before, summary, after = bodies[place - 1 : place + 2]
        assert not summary.get("tools")
        assert "Mind the fox." not in json.dumps(summary)
        assert size_of(after) < size_of(before)
        assert "in short" in json.dumps(after)
    for body in (b for n, b in enumerate(bodies) if n not in places):
        assert told(body).instructions == first
        assert json.dumps(body.get("messages", body.get("input"))).count(asked) == 1
