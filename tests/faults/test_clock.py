"""The wall clock is set while work is under way: order is that of the numbers, and no limit becomes shorter or longer.

The clock is set for this whole process, whoever reads it; time goes on passing as it always does.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quintet.domain.errors import TimedOut
from quintet.domain.event import Event, StepRetried, TextDelta
from quintet.domain.interaction import Verdict
from quintet.domain.item import AssistantMessage, ResultStatus, ToolResult
from quintet.domain.thread import ThreadQuery
from quintet.domain.tool import Effect
from quintet.domain.turn import ClientKey, Mode, TurnState
from quintet.engine.housekeeping import Housekeeping
from quintet.engine.interactions import Answer
from quintet.providers.settings import ProviderKind
from quintet.tools.shell import ShellTool
from tests.fakes.engine import ME, House, Process
from tests.fakes.memory_disk import in_memory
from tests.fakes.model_server import ModelServer
from tests.fakes.tools import FakeTool, SlowTool
from tests.fakes.waiting import soon
from tests.fakes.wires import wire

MINUTE, HOUR, DAY = 60, 3600, 86_400
STEPS = [10 * MINUTE, -10 * MINUTE, HOUR, -HOUR, DAY, -DAY]
LONG_S, SHORT_S = 30.0, 0.2
pytestmark = pytest.mark.fault
every_step = pytest.mark.parametrize("step", STEPS, ids=lambda s: f"{s / 60:+.0f} min")


class WallClock:
    """What every reader of the wall clock in this process is told."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._ns, real_ns = 0, time.time_ns
        patch.setattr(time, "time_ns", lambda: real_ns() + self._ns)
        patch.setattr(time, "time", lambda: (real_ns() + self._ns) / 1e9)

    def set_by(self, seconds: float) -> None:
        self._ns += int(seconds * 1e9)


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    return WallClock(monkeypatch)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    with in_memory() as place:  # nothing here is about the disk
        house = House("sqlite", place / "home")
        yield house
        await house.close()


@pytest.fixture
async def one(house: House) -> Process:
    return await house.process()


def in_order(events: list[Event]) -> bool:
    numbers = [event.seq for event in events]
    return numbers == sorted(set(numbers))


@pytest.mark.req("reliability:R12")
@every_step
async def test_a_turn_in_whose_middle_the_clock_is_set_is_whole_and_in_order(
    one: Process, wall: WallClock, tmp_path: Path, step: int
) -> None:
    """The model streams, a tool works, the journal is followed; none of them is late or early for it."""
    script = 'text: before\nuntil: go\ntext: " behind"\ntool_call: slow {}\n---\ntext: done'
    tool = SlowTool(effect=Effect.WRITE)
    async with ModelServer(script, directory=str(tmp_path)) as server:
        provider = wire(server, ProviderKind.OPENAI_CHAT)
        thread = await one.thread()
        begun = (await one.events(thread))[-1].seq
        with one.feed.follow(root=thread) as subscription:
            stream = aiter(subscription)
            started = await one.start(thread, provider, [tool])
            await one.seen(lambda e: isinstance(e.payload, TextDelta), thread)
            wall.set_by(step)
            (tmp_path / "go").touch()
            await tool.started()
            wall.set_by(-2 * step)
            tool.go.set()
            turn = await one.ended(started.turn.id)
            events = await one.events(thread, begun)
            async with asyncio.timeout(LONG_S):
                followed = [await anext(stream) for _ in events]
        await provider.close()
    assert turn.state is TurnState.DONE
    assert followed == events
    assert in_order(events)
    times = [event.at_ms for event in events]
    assert max(times) - min(times) >= abs(step) * 1000  # it was set indeed
    assert [e.payload.text for e in events if isinstance(e.payload, TextDelta)] == ["before", " behind", "done"]
    assert not await one.payloads(thread, StepRetried)
    assert len(await one.ends(turn.id, thread)) == 1
    assert [type(b) for b in await one.bodies(thread, AssistantMessage)] == [AssistantMessage] * 2


@pytest.mark.req("reliability:R12")
@every_step
async def test_a_request_for_approval_lives_as_long_as_it_was_given(one: Process, wall: WallClock, step: int) -> None:
    tool = FakeTool("write", effect=Effect.WRITE)
    script = "tool_call: write {}\n---\ntext: done"
    thread = await one.thread()
    patient = await one.start(thread, script, [tool], mode=Mode.ASK, interaction_timeout_s=LONG_S)
    asked = await one.asked(thread)
    wall.set_by(step)
    assert [i.id for i in await one.interactions.pending(thread)] == [asked]
    await soon(one.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    assert (await one.ended(patient.turn.id)).state is TurnState.DONE
    assert tool.count == 1
    thread = await one.thread()
    hasty = await one.start(thread, script, [tool], mode=Mode.ASK, interaction_timeout_s=SHORT_S)
    await one.seen(lambda e: e.kind == "interaction.requested", thread)
    wall.set_by(step)
    await one.ended(hasty.turn.id)
    (result,) = await one.bodies(thread, ToolResult)
    assert result.status is ResultStatus.DENIED
    assert tool.count == 1


@pytest.mark.req("reliability:R12")
@every_step
async def test_whoever_waits_for_a_turn_waits_no_longer_than_they_said(
    one: Process, wall: WallClock, step: int
) -> None:
    tool, thread = SlowTool(), await one.thread()
    started = await one.start(thread, "tool_call: slow {}\n---\ntext: done", [tool])
    await tool.started()
    waiting = asyncio.ensure_future(one.turns.wait(started.turn.id, SHORT_S))
    await asyncio.sleep(0)
    wall.set_by(step)
    with pytest.raises(TimedOut):
        await soon(waiting)
    waiting = asyncio.ensure_future(one.turns.wait(started.turn.id, LONG_S))
    await asyncio.sleep(0)
    wall.set_by(step)
    tool.go.set()
    assert (await soon(waiting)).state is TurnState.DONE


@pytest.mark.req("reliability:R12", "reliability:R11")
@every_step
async def test_a_model_that_stalls_is_given_up_after_its_time_and_a_slow_one_is_not(
    one: Process, wall: WallClock, tmp_path: Path, step: int
) -> None:
    async def ended(fault: str, **settings: float) -> TurnState:
        async with ModelServer("text: hello", faults=[f"{fault} times 9"]) as server:
            provider = wire(server, ProviderKind.OPENAI_CHAT, **settings)
            thread = await one.thread()
            started = await one.start(thread, provider)
            await one.seen(lambda e: e.kind == "step.started", thread)
            wall.set_by(step)
            turn = await one.ended(started.turn.id)
            await provider.close()
            return turn.state

    assert await ended("stall", idle_timeout_s=SHORT_S) is TurnState.FAILED
    assert await ended("silent", timeout_s=SHORT_S) is TurnState.FAILED
    assert await ended("drip=0.001", idle_timeout_s=LONG_S) is TurnState.DONE


@pytest.mark.req("reliability:R12")
@every_step
async def test_a_command_runs_as_long_as_it_may(one: Process, wall: WallClock, tmp_path: Path, step: int) -> None:
    async def result(command: str, timeout_s: float) -> ToolResult:
        script = f'tool_call: shell {{"command": "{command}", "timeout_s": {timeout_s}}}\n---\ntext: done'
        thread = await one.thread(str(tmp_path))
        started = await one.start(thread, script, [ShellTool(os.environ)])
        await one.seen(lambda e: e.kind == "tool.started", thread)
        wall.set_by(step)
        await one.ended(started.turn.id)
        (result,) = await one.bodies(thread, ToolResult)
        return result

    assert "ended after its limit" in (await result("sleep 30", 0.3)).text
    assert (await result("sleep 0.1; echo whole", LONG_S)).status is ResultStatus.OK


@pytest.mark.req("reliability:R12", "reliability:R15")
@pytest.mark.parametrize("step", [s for s in STEPS if s < DAY], ids=lambda s: f"{s / 60:+.0f} min")
async def test_a_client_s_key_means_the_same_turn_when_the_clock_was_set(
    one: Process, wall: WallClock, step: int
) -> None:
    thread, key = await one.thread(), ClientKey("scope", "key", "digest")
    first = await one.start(thread, "text: hello", key=key)
    await one.ended(first.turn.id)
    wall.set_by(step)
    again = await one.start(thread, "text: hello", key=key)
    assert (again.folded, again.turn.id) == (True, first.turn.id)


@pytest.mark.req("reliability:R12")
@every_step
async def test_a_process_that_died_is_found_and_its_turn_ended_whatever_the_clock_says(
    house: House, one: Process, wall: WallClock, step: int
) -> None:
    tool, thread = SlowTool(effect=Effect.WRITE), await one.thread()
    started = await one.start(thread, "text: hello\ntool_call: slow {}", [tool])
    await tool.started()
    before = await one.events(thread)
    await one.die()
    wall.set_by(step)
    next_one = await house.process()
    await next_one.journal.recover()
    events = await next_one.events(thread)
    assert events[: len(before)] == before
    assert in_order(events)
    (end,) = await next_one.ends(started.turn.id, thread)
    assert end.state is TurnState.INTERRUPTED
    assert (await next_one.run(thread)).state is TurnState.DONE


@pytest.mark.req("reliability:R12")
@every_step
async def test_what_a_running_turn_says_is_never_pruned(one: Process, wall: WallClock, step: int) -> None:
    tool, thread = SlowTool(), await one.thread()
    started = await one.start(thread, 'repeat: 20 text: "word "\ntool_call: slow {}\n---\ntext: done', [tool])
    await tool.started()
    before = await one.events(thread)
    wall.set_by(step)
    await Housekeeping(one.journal, one.clock, 900.0).tidy(LONG_S)
    tool.go.set()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert (await one.events(thread))[: len(before)] == before


@pytest.mark.req("reliability:R12")
@every_step
async def test_pages_of_threads_hold_each_thread_once(one: Process, wall: WallClock, step: int) -> None:
    threads = []
    for _ in range(6):
        threads.append(await one.thread())
        wall.set_by(step)
        step = -step
    before, found = None, []
    while page := await one.journal.threads(ThreadQuery(before=before, limit=2)):
        before = (page[-1].updated_ms, page[-1].id)
        found += [thread.id for thread in page]
    assert sorted(found) == sorted(threads)
