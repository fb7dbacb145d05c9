"""The fake model server is a tool that other tests lean on: it plays what its first lines say it plays."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import tests.fakes.model_server as package
from quintet.domain.event import StepFinished
from quintet.domain.item import AssistantMessage, user_text
from quintet.domain.turn import TurnState
from quintet.providers.settings import ProviderKind
from tests.fakes.engine import House, Process
from tests.fakes.model_server import ModelServer
from tests.fakes.model_server.faults import FAULTS
from tests.fakes.model_server.server import Fault
from tests.fakes.requests import all_chunks, request_of, text_in
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon
from tests.fakes.wires import KEY, NAMED, WIRES, wire

ROOT = Path(__file__).parents[3]


@pytest.fixture(params=WIRES, ids=str)
def kind(request: pytest.FixtureRequest) -> ProviderKind:
    return request.param


@pytest.fixture
async def lone(tmp_path: Path) -> AsyncIterator[Process]:
    house = House("memory", tmp_path)
    yield await house.process()
    await house.close()


async def test_a_script_goes_on_where_the_thread_is(lone: Process, kind: ProviderKind) -> None:
    script = "think: hm\ntool_call: look {}\n---\ntext: one\n---\ntext: two\ntool_call: look {}\n---\ntext: three"
    thread = await lone.thread()
    for _ in range(2):
        async with ModelServer(script) as server:  # a new one each time: it remembers nothing
            provider = wire(server, kind)
            turn = await lone.run(thread, provider, [FakeTool("look")])
            await provider.close()
        assert turn.state is TurnState.DONE
        assert len(server.requests) == 2
    assert [m.text for m in await lone.bodies(thread, AssistantMessage)] == ["one", "two", "three"]


async def test_the_servers_own_name_of_an_answer_is_kept_with_its_step(lone: Process, kind: ProviderKind) -> None:
    async with ModelServer("text: one") as server:
        provider = wire(server, kind)
        thread = await lone.thread()
        await lone.run(thread, provider)
        await provider.close()
    events = await lone.journal.events(0, root=thread)
    (finished,) = [e.payload for e in events if isinstance(e.payload, StepFinished)]
    assert finished.answer_id == NAMED[kind]


async def test_a_step_that_only_fails_has_its_status_and_is_played_once(lone: Process, kind: ProviderKind) -> None:
    async with ModelServer("error: 400 no\n---\ntext: better") as server:
        provider = wire(server, kind)
        thread = await lone.thread()
        first = await lone.run(thread, provider)
        second = await lone.run(thread, provider)
        await provider.close()
    assert second.state is TurnState.DONE
    assert await lone.bodies(thread, AssistantMessage) == [AssistantMessage("better")]
    assert first.state is TurnState.FAILED
    assert first.error is not None
    assert "status 400" in first.error.message


async def test_a_script_that_is_over_ends_the_answer(kind: ProviderKind) -> None:
    async with ModelServer("text: one") as server:
        provider = wire(server, kind)
        request = request_of([user_text("a"), AssistantMessage("one"), user_text("b")])
        assert text_in(await soon(all_chunks(provider, request))) == ""
        await provider.close()


def test_every_fault_is_documented_and_every_documented_fault_exists() -> None:
    assert package.__doc__ is not None
    table = package.__doc__.partition("The words:")[2]
    words = {word.partition("=")[0] for line in table.splitlines() for word in line[4:43].split() if line.strip()}
    assert words - {w for w in words if w.isdigit()} == set(FAULTS)


def test_faults_are_read_with_their_numbers() -> None:
    assert Fault.parse("429") == Fault("429", "", 1, 1)
    assert Fault.parse(" drip=0.5 times 3 at 2") == Fault("drip", "0.5", 2, 4)
    for line in ("nonsense", "429 times", "drip 3", ""):
        with pytest.raises(ValueError, match="no such fault"):
            Fault.parse(line)


async def test_it_runs_as_a_process_that_records_what_it_was_sent(tmp_path: Path, kind: ProviderKind) -> None:
    (tmp_path / "script").write_text("fault: 503\ntext: from afar")
    command = ["-m", "tests.fakes.model_server", "--script", str(tmp_path / "script"), "--record"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, str(tmp_path / "record"), cwd=ROOT, stdin=pipe, stdout=pipe
    )
    assert process.stdout is not None
    assert process.stdin is not None
    provider = wire(json.loads(await soon(process.stdout.readline()))["url"], kind)
    assert text_in(await soon(all_chunks(provider, request_of([user_text("go")])))) == "from afar"
    await provider.close()
    process.stdin.close()
    assert await soon(process.wait()) == 0
    recorded = [json.loads(line) for line in (tmp_path / "record").read_text().splitlines()]
    assert len(recorded) == 2
    assert KEY in str(recorded[1]["headers"])
    assert recorded[1]["body"]["stream"] is True
