"""Everything a model server can do wrong, in every wire, through real turns: one end each, what was said is kept, no
attempt or wait without bound. Each seed has the model say something else, in other pieces.
"""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from quintet.domain.event import StepFinished, StepRetried, TextDelta
from quintet.domain.item import AssistantMessage, ResultStatus, ToolResult
from quintet.domain.model import Finish
from quintet.domain.turn import TurnState
from quintet.providers.settings import ProviderKind
from tests.fakes.engine import House, Process
from tests.fakes.model_server import ModelServer
from tests.fakes.tools import FakeTool
from tests.fakes.wires import RETRIES, WIRES, wire
from tests.faults import tiers

EVERY = RETRIES + 1
SAID = object()  # whatever the model says
LETTERS = 'aZ09 ._-"\\\n\tßé中🦊\u200d\u2028'
pytestmark = pytest.mark.fault
every_seed = pytest.mark.parametrize("seed", range(tiers.figure("R11")))


class Speech(NamedTuple):
    """What the model says: as a script, and as it has to arrive."""

    script: str
    said: str
    packed: bool

    @classmethod
    def of(cls, seed: int) -> Speech:
        if not seed:
            return cls("text: Höre \ntext: 🦊 there\nusage: in=10 out=5 cached=2 reasoning=1", "Höre 🦊 there", False)
        dice = random.Random(f"R11/{seed}")
        pieces = ["".join(dice.choices(LETTERS, k=dice.randint(1, 30))) for _ in range(dice.randint(1, 12))]
        lines = [f"text: {json.dumps(piece)}" for piece in ["I say: ", *pieces]]
        if dice.random() < 0.5:
            lines.insert(0, 'think: "let me see"')
        return cls("\n".join([*lines, "usage: in=10 out=5"]), "".join(["I say: ", *pieces]), dice.random() < 0.5)


class Case(NamedTuple):
    """A fault that lasts, and what has to come of a turn that meets it."""

    fault: str
    requests: int = 1
    reason: str = ""  # why the turn failed; nothing: it ended well
    said: object = None
    partial: bool = False
    finish: Finish | None = None
    settings: dict[str, Any] = {}  # noqa: RUF012


CASES = [
    Case("401", 1, "auth"),
    Case("402", 1, "credit"),
    Case("408", EVERY, "timeout"),
    Case("413", 1, "too_long"),
    Case("429", EVERY, "rate_limit"),
    Case("429-seconds=0", EVERY, "rate_limit"),
    Case("429-date=-5", EVERY, "rate_limit"),
    Case("429-date=3600", 1, "rate_limit"),
    Case("429-absurd", 1, "rate_limit"),
    Case("429-nonsense", EVERY, "rate_limit"),
    Case("500", EVERY, "server"),
    Case("502", EVERY, "server"),
    Case("503", EVERY, "server"),
    Case("529", EVERY, "overloaded"),
    Case("refusal", 1, finish=Finish.REFUSAL),
    Case("reset", 1, "broken", SAID, partial=True),
    Case("half-close", 1, "broken", SAID, partial=True),
    Case("close", 1, "broken", SAID, partial=True),
    Case("stall", 1, "timeout", SAID, partial=True, settings={"idle_timeout_s": 0.4}),
    Case("silent", EVERY, "timeout", settings={"timeout_s": 0.25}),
    Case("mute", EVERY, "timeout", settings={"timeout_s": 0.25}),
    Case("drip=0.001", 1, said=SAID, finish=Finish.STOP),
    Case("comments=0.001", 1, said=SAID, finish=Finish.STOP),
    Case("html", EVERY, "garbled"),
    Case("empty", EVERY, "broken"),
    Case("garbage", EVERY, "garbled"),
    Case("garbage-late", 1, "garbled", SAID, partial=True),
    Case("shapes", EVERY, "garbled"),
    Case("split", 1, said=SAID, finish=Finish.STOP),
    Case("endless-line", 1, "garbled"),
    Case("odd-finish", 1, said=SAID, finish=Finish.OTHER),
    Case("no-usage", 1, said=SAID, finish=Finish.STOP),
    Case("stay", 1, said=SAID, finish=Finish.STOP),
    Case("redirect=http://127.0.0.1:9/v1", 1, "address"),
]


@pytest.fixture(params=WIRES, ids=str)
def kind(request: pytest.FixtureRequest) -> ProviderKind:
    return request.param


@pytest.fixture
async def lone(tmp_path: Path) -> AsyncIterator[Process]:
    house = House("memory", tmp_path)
    yield await house.process()
    await house.close()


@pytest.mark.req("reliability:R11")
@every_seed
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault)
async def test_a_turn_that_meets_a_fault_ends_once_and_keeps_what_was_said(
    lone: Process, kind: ProviderKind, case: Case, seed: int
) -> None:
    speech = Speech.of(seed)
    async with ModelServer(speech.script, faults=[f"{case.fault} times 99"], packed=speech.packed) as server:
        provider = wire(server, kind, **case.settings)
        thread = await lone.thread()
        turn = await lone.run(thread, provider)
        await provider.close()
    assert len(server.requests) == case.requests
    assert turn.state is (TurnState.FAILED if case.reason else TurnState.DONE)
    (end,) = await lone.ends(turn.id, thread)
    (step,) = await lone.payloads(thread, StepFinished)
    if case.reason:
        assert end.error.code == step.error.code == "provider_failed"
        assert end.error.data["reason"] == case.reason
        assert end.error.data["attempts"] == case.requests
        assert end.error.message
        assert end.error.next_step
    else:
        assert end.error is step.error is None
        assert step.finish is case.finish
    if case.fault != "refusal":
        said = await lone.bodies(thread, AssistantMessage)
        assert said == ([AssistantMessage(speech.said, case.partial)] if case.said is SAID else [])
    assert len(await lone.payloads(thread, StepRetried)) == case.requests - 1
    assert not lone.defects


@pytest.mark.req("reliability:R11")
@every_seed
@pytest.mark.parametrize(
    "fault",
    ["408", "429", "429-seconds=0", "500", "502", "503", "529", "html", "empty", "garbage", "shapes", "silent"],
)
async def test_a_fault_that_passes_is_only_a_retry(lone: Process, kind: ProviderKind, fault: str, seed: int) -> None:
    speech = Speech.of(seed)
    async with ModelServer(speech.script, faults=[f"{fault} times {RETRIES}"], packed=speech.packed) as server:
        provider = wire(server, kind, timeout_s=0.5 if fault == "silent" else 5.0)
        thread = await lone.thread()
        turn = await lone.run(thread, provider)
        await provider.close()
    assert turn.state is TurnState.DONE
    assert await lone.bodies(thread, AssistantMessage) == [AssistantMessage(speech.said)]
    retried = await lone.payloads(thread, StepRetried)
    assert [r.attempt for r in retried] == [2, 3]
    assert len({r.reason for r in retried}) == 1
    assert server.requests[0] == server.requests[-1]


@pytest.mark.req("reliability:R11")
async def test_a_line_of_ten_mebibytes_is_one_delta(lone: Process, kind: ProviderKind) -> None:
    async with ModelServer(Speech.of(0).script, faults=["long-line"]) as server:
        provider = wire(server, kind)
        thread = await lone.thread()
        turn = await lone.run(thread, provider)
        await provider.close()
    assert turn.state is TurnState.DONE
    (said,) = await lone.bodies(thread, AssistantMessage)
    assert len(said.text) == 10 * 1024 * 1024
    assert len(await lone.payloads(thread, TextDelta)) == 1


@pytest.mark.req("reliability:R11")
@every_seed
async def test_input_that_is_no_json_is_told_to_the_model_and_the_turn_goes_on(
    lone: Process, kind: ProviderKind, seed: int
) -> None:
    tool = FakeTool("look")
    speech = Speech.of(seed)
    async with ModelServer(f"text: never said\n---\n{speech.script}", faults=["bad-json"]) as server:
        provider = wire(server, kind)
        thread = await lone.thread()
        turn = await lone.run(thread, provider, [tool])
        await provider.close()
    assert turn.state is TurnState.DONE
    assert tool.count == 0
    (result,) = await lone.bodies(thread, ToolResult)
    assert result.status is ResultStatus.ERROR
    assert await lone.bodies(thread, AssistantMessage) == [AssistantMessage(speech.said)]


@pytest.mark.req("reliability:R11")
@every_seed
async def test_calls_under_one_id_are_two_calls_with_two_results(lone: Process, kind: ProviderKind, seed: int) -> None:
    tool = FakeTool("look")
    speech = Speech.of(seed)
    async with ModelServer(f"text: never said\n---\n{speech.script}", faults=["same-ids"]) as server:
        provider = wire(server, kind)
        thread = await lone.thread()
        turn = await lone.run(thread, provider, [tool])
        await provider.close()
    assert turn.state is TurnState.DONE
    assert sorted(ran["number"] for ran in tool.ran) == [0, 1]
    assert len({result.call_id for result in await lone.bodies(thread, ToolResult)}) == 2
