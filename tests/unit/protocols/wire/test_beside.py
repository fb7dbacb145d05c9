"""What goes on beside a turn, as Wire's clients are told of it: notices."""

from __future__ import annotations

import pytest

from quintet.domain.notice import End, Notice, of_background
from quintet.engine.notices import Notices
from tests.fakes.engine import Process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import SlowTool
from tests.fakes.waiting import soon
from tests.fakes.wire_client import kinds, payloads
from tests.unit.protocols.wire.conftest import Connect

TURN = ["TurnBegin", "StepBegin", "ContentPart", "StatusUpdate", "TurnEnd", "reply"]
TOLD = ["TurnBegin", "Notification", *TURN[1:]]


def notice() -> Notice:
    payload = {"task_kind": "command", "exit_code": 0}
    return of_background("ntc_1", "cal_1", End.COMPLETED, "It is done", "Id: cal_1", 1_500, payload)


@pytest.mark.req("wire:N1")
async def test_one_that_came_between_turns_is_told_right_behind_the_next_turn_begin(
    connect: Connect, process: Process
) -> None:
    peer = connect("text: hello")
    await peer.initialize()
    await peer.prompt()
    await Notices(process.feed).post(peer.thread, notice())
    assert await peer.quiet()
    heard = await peer.prompt("again")
    assert kinds(heard) == TOLD
    assert payloads(heard, "Notification") == [
        {
            "id": "ntc_1",
            "category": "task",
            "type": "task.completed",
            "source_kind": "background_task",
            "source_id": "cal_1",
            "title": "It is done",
            "body": "Id: cal_1",
            "severity": "success",
            "created_at": 1.5,
            "payload": {
                "task_id": "cal_1",
                "terminal_reason": "completed",
                "task_kind": "bash",
                "exit_code": 0,
                "status": "completed",
                "finished_at": 1.5,
            },
        }
    ]
    assert kinds(await peer.prompt("and again")) == TURN
    assert kinds(await peer.call("replay"))[:-1] == [k for k in [*TURN, *TOLD, *TURN] if k != "reply"]


@pytest.mark.req("wire:N1")
async def test_one_that_came_during_a_turn_is_told_before_the_next_step(connect: Connect, process: Process) -> None:
    slow = SlowTool()
    peer = connect(GatedProvider(call("slow"), text("done")), [slow])
    await peer.initialize()
    await peer.begin()
    await soon(slow.begun.wait())
    await Notices(process.feed).post(peer.thread, notice())
    slow.go.set()
    heard = kinds(await peer.reply("p"))
    assert heard[heard.index("ToolResult") :][:3] == ["ToolResult", "Notification", "StepBegin"]


@pytest.mark.req("wire:N2")
@pytest.mark.parametrize(
    ("version", "gated", "told"), [("1.10", True, 1), ("1.9", True, 0), ("1.7", True, 0), ("1.7", False, 1)]
)
async def test_a_client_of_an_older_version_is_not_told(
    connect: Connect, process: Process, version: str, gated: bool, told: int
) -> None:
    peer = connect("text: hello", gated=gated)
    await peer.initialize(version)
    await peer.prompt()
    await Notices(process.feed).post(peer.thread, notice())
    assert kinds(await peer.prompt()).count("Notification") == told
    assert kinds(await peer.call("replay")).count("Notification") == told
