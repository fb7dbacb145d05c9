"""The mode of a running turn: made stricter by anybody, never looser than what binds it."""

from __future__ import annotations

import pytest

from quintet.domain.event import ToolStarted
from quintet.domain.item import ResultStatus, ToolResult
from quintet.domain.tool import Effect
from quintet.domain.turn import Mode
from tests.fakes.engine import ME, Process, parts
from tests.fakes.providers import Gate, GatedProvider, call
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon


@pytest.mark.req("mechanisms:M3.mode")
async def test_set_mode_tightens_the_rest_of_the_turn(one: Process) -> None:
    thread, gate, tool = await one.thread(), Gate(), FakeTool("put", effect=Effect.WRITE)
    provider = GatedProvider(call("put", call_id="a"), [gate, *call("put", call_id="b")])
    started = await one.start(thread, provider, [tool])
    await gate.stopped()
    await soon(one.turns.set_mode(thread, Mode.READ_ONLY, ME))
    gate.open()
    await one.ended(started.turn.id)
    assert [b.status for b in await one.bodies(thread, ToolResult)] == [ResultStatus.OK, ResultStatus.DENIED]
    assert tool.count == 1


@pytest.mark.req("mechanisms:M3.mode")
async def test_a_stricter_steer_tightens_the_turn_and_no_mode_change_loosens_it_again(one: Process) -> None:
    thread, gate, tool = await one.thread(), Gate(), FakeTool("put", effect=Effect.WRITE)
    started = await one.start(thread, GatedProvider([gate, *call("put")]), [tool])
    await gate.stopped()
    await soon(one.turns.steer(thread, parts("careful"), ME, mode=Mode.READ_ONLY))
    await soon(one.turns.set_mode(thread, Mode.ALLOW, ME))
    gate.open()
    await one.ended(started.turn.id)
    assert [b.status for b in await one.bodies(thread, ToolResult)] == [ResultStatus.DENIED]
    assert tool.count == 0
    assert await one.payloads(thread, ToolStarted) == []


async def test_no_mode_change_goes_beyond_what_the_turn_began_with(one: Process) -> None:
    thread, gate, tool = await one.thread(), Gate(), FakeTool("put", effect=Effect.WRITE)
    started = await one.start(thread, GatedProvider([gate, *call("put")]), [tool], mode=Mode.READ_ONLY)
    await gate.stopped()
    await soon(one.turns.set_mode(thread, Mode.ALLOW, ME))
    gate.open()
    await one.ended(started.turn.id)
    assert tool.count == 0
