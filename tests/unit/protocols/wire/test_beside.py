"""What goes on beside a turn, as Wire's clients are told of it: notices and side questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quintet.domain.errors import NotConfigured, ProviderFailed
from quintet.domain.model import RetryChunk, ToolInput, ToolStart
from quintet.domain.notice import End, Notice, of_background
from quintet.domain.tool import Effect
from quintet.domain.turn import Mode
from quintet.engine.notices import Notices
from quintet.tools.task import TaskTool
from tests.fakes.engine import House, Process
from tests.fakes.family import Family
from tests.fakes.family import process as make_process
from tests.fakes.providers import Gate, GatedProvider, Line, call, text
from tests.fakes.tools import FakeTool, SlowTool
from tests.fakes.waiting import soon
from tests.fakes.wire_client import kinds, payloads, spoken
from tests.fakes.wire_peer import Peer
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


ASIDE = ["TurnBegin", "BtwBegin", "BtwEnd", "TurnEnd", "reply"]


@pytest.mark.req("wire:N3")
async def test_a_side_question_is_a_turn_without_a_step_and_the_thread_knows_nothing_of_it(connect: Connect) -> None:
    model = GatedProvider(text("hello"), text("be", "cause"), text("bye"))
    peer = connect(model)
    await peer.initialize()
    await peer.prompt("hi")
    heard = await peer.prompt("/btw why is that?")
    assert kinds(heard) == ASIDE
    assert payloads(heard, "TurnBegin") == [{"user_input": "/btw why is that?"}]
    (begun,) = payloads(heard, "BtwBegin")
    (ended,) = payloads(heard, "BtwEnd")
    assert begun == {"id": ended["id"], "question": "why is that?"}
    assert ended == {"id": ended["id"], "response": "because", "error": None}
    assert len(ended["id"]) == 12
    assert heard[-1]["result"] == {"status": "finished"}
    assert kinds(await peer.prompt("and?")) == TURN
    assert "why is that?" not in repr(model.requests[2].items)
    told = await peer.call("replay")
    assert [k for k in kinds(told) if k.startswith("Btw")] == ["BtwBegin", "BtwEnd"]
    assert [p["user_input"] for p in payloads(told, "TurnBegin")] == ["hi", "/btw why is that?", "and?"]
    assert payloads(told, "BtwEnd") == [ended]


@pytest.mark.req("wire:N3")
async def test_a_side_question_that_fails_says_why_and_the_prompt_is_finished(connect: Connect) -> None:
    peer = connect(GatedProvider([ProviderFailed("The server is down.")]))
    await peer.initialize()
    heard = await peer.prompt("/btw why?")
    assert kinds(heard) == ASIDE
    (ended,) = payloads(heard, "BtwEnd")
    assert (ended["response"], ended["error"]) == (None, "The server is down.")
    assert heard[-1]["result"] == {"status": "finished"}


async def test_a_side_question_without_words_or_without_a_model(connect: Connect) -> None:
    class Nobody:
        def resolve(self, reference: str) -> tuple[str, object]:
            raise NotConfigured("no model")

        def info(self, reference: str) -> object:
            raise NotConfigured("no model")

    peer = connect(Nobody())
    await peer.initialize()
    assert kinds(await peer.prompt("/btw")) == ["TurnBegin", "ContentPart", "TurnEnd", "reply"]
    heard = await peer.prompt("/btw why?")
    assert kinds(heard) == ["TurnBegin", "TurnEnd", "reply"]
    assert heard[-1]["error"]["code"] == -32001


async def test_with_a_kind_of_model_that_is_not_known_a_side_question_and_a_summary_say_so(connect: Connect) -> None:
    peer = connect()
    await peer.prompt("hello")
    other = connect(thread=peer.thread, house={"unsupported": "LLM provider type 'x' is not supported."})
    for words in ("/btw why?", "/compact"):
        heard = await other.prompt(words)
        assert kinds(heard) == ["TurnBegin", "TurnEnd", "reply"]
        assert heard[-1]["error"]["code"] == -32002


@pytest.mark.req("wire:N4")
@pytest.mark.parametrize(("version", "gated"), [("1.8", True), ("1.9", True), ("1.2", False)])
async def test_an_older_client_gets_the_answer_as_text(connect: Connect, version: str, gated: bool) -> None:
    peer = connect("text: because", gated=gated)
    await peer.initialize(version)
    heard = await peer.prompt("/btw why?")
    told = await peer.call("replay")
    if version == "1.8":
        assert kinds(heard) == ["TurnBegin", "ContentPart", "TurnEnd", "reply"]
        assert spoken(heard) == spoken(told) == "because"
    else:
        assert kinds(heard) == ASIDE
        assert kinds(told) == ASIDE
    assert told[-1]["result"]["events"] == len(told) - 1


@pytest.mark.req("wire:N3")
async def test_as_a_steer_it_is_answered_beside_the_turn_which_is_not_steered(connect: Connect) -> None:
    slow, gate = SlowTool(), Gate()
    model = GatedProvider(call("slow"), [gate, *text("because")], text("done"))
    peer = connect(model, [slow])
    await peer.initialize()
    await peer.begin("work")
    await soon(slow.begun.wait())
    assert (await peer.call("steer", user_input="/btw why?"))[-1]["result"] == {"status": "steered"}
    assert (await peer.ask("steer", user_input="/btw"))["error"]["code"] == -32602
    await gate.stopped()
    gate.open()
    (ended,) = payloads(await peer.hears("BtwEnd"), "BtwEnd")
    assert ended["response"] == "because"
    slow.go.set()
    heard = await peer.reply("p")
    assert "SteerInput" not in kinds(heard)
    assert heard[-1]["result"] == {"status": "finished"}
    assert "why?" not in repr(model.requests[2].items)


@pytest.mark.req("wire:N3", "wire:S44", "wire:S66")
async def test_a_second_attempt_at_a_side_question_takes_nothing_from_the_step_beside_it(connect: Connect) -> None:
    gate = Gate()
    calls = [ToolStart("c1", "echo"), ToolInput("c1", '{"a":'), gate, ToolInput("c1", '"b"}')]
    model = GatedProvider(calls, [RetryChunk(2, 0.0, "busy"), *text("because")], text("done"))
    peer = connect(model, [FakeTool("echo")])
    await peer.initialize()
    await peer.begin()
    await gate.stopped()
    await peer.ask("steer", user_input="/btw why?")
    await peer.hears("BtwEnd")
    gate.open()
    await peer.reply("p")
    assert "".join(part["arguments_part"] for part in payloads(peer.seen, "ToolCallPart")) == '{"a":"b"}'
    assert "StepRetry" not in kinds(peer.seen)


@pytest.mark.req("wire:N3")
async def test_a_cancel_ends_a_side_question_before_the_turn_ends(connect: Connect) -> None:
    gate = Gate()
    peer = connect(GatedProvider([gate], text("next")))
    await peer.initialize()
    await peer.begin("/btw why?")
    await gate.stopped()
    heard = [*await peer.call("cancel"), *await peer.reply("p")]
    assert [k for k in kinds(heard) if k != "reply"] == ["TurnBegin", "BtwBegin", "BtwEnd", "TurnEnd"]
    assert heard[-1]["result"] == {"status": "cancelled"}
    assert kinds(await peer.prompt()) == TURN


def background(agent: str = "worker") -> list[Line]:
    given = {"description": "work", "prompt": "do it", "agent": agent, "background": True}
    return call("task", json.dumps(given), "t1")


@pytest.mark.req("wire:N5", "wire:S108")
async def test_a_subagent_in_the_background_asks_by_its_own_name_and_its_end_is_a_notification(tmp_path: Path) -> None:
    house = House("memory", tmp_path)
    one = await make_process(house, "worker")
    tool = FakeTool("shell", effect=Effect.EXECUTE)
    worker = GatedProvider(call("shell", '{"command": "ls"}', "c1"), text("the report"))
    boss = GatedProvider(background(), text("I wait"), text("the end"))
    peer = Peer(one, Family(boss, worker=worker), [tool, TaskTool()])
    await peer.initialize()
    await peer.begin()
    (*heard, asked) = await peer.hears("ApprovalRequest")
    (child,) = await one.threads.children(peer.thread)
    request = asked["params"]["payload"]
    assert (request["source_kind"], request["source_id"], request["agent_id"], request["subagent_type"]) == (
        "background_agent",
        child.id,
        child.id,
        "worker",
    )
    await peer.answer(asked, response="approve")
    heard += await peer.reply("p")
    assert tool.count == 1
    own = [k for k in kinds(heard) if k not in ("SubagentEvent", "ContentPart", "StatusUpdate", "ApprovalResponse")]
    assert own[own.index("ToolResult") :] == [
        "ToolResult",
        "StepBegin",
        "Notification",
        "StepBegin",
        "TurnEnd",
        "reply",
    ]
    (told,) = payloads(heard, "Notification")
    assert (told["type"], told["source_id"], told["payload"]["task_kind"]) == ("task.completed", child.id, "agent")
    assert payloads(heard, "ToolResult")[0]["tool_call_id"] == "t1"
    await peer.close()
    await house.close()


@pytest.mark.req("wire:S108")
async def test_what_one_in_the_background_waits_for_is_asked_again_by_its_name(tmp_path: Path) -> None:
    """Of a turn that another client of this process began."""
    house = House("memory", tmp_path)
    one = await make_process(house, "worker")
    tool = FakeTool("shell", effect=Effect.EXECUTE)
    worker = GatedProvider(call("shell", '{"command": "ls"}', "c1"), text("the report"))
    family = Family(GatedProvider(text("hello"), background(), text("I wait")), worker=worker)
    peer = Peer(one, family, [tool, TaskTool()])
    await peer.prompt()
    started = await family.start(one, peer.thread, [tool], mode=Mode.ASK)
    await one.asked(peer.thread)
    await peer.initialize()
    (*_, asked) = await peer.hears("ApprovalRequest")
    (child,) = await one.threads.children(peer.thread)
    assert asked["params"]["payload"]["source_kind"] == "background_agent"
    assert asked["params"]["payload"]["source_id"] == child.id
    await peer.answer(asked, response="approve")
    await one.ended(started.turn.id)
    assert tool.count == 1
    await peer.close()
    await house.close()
