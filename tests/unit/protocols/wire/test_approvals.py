"""Approvals: what is asked, what each answer means, and what is remembered."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.event import Event, Gap, InteractionRequested, TurnFinished
from quintet.domain.grant import Scope
from quintet.domain.interaction import Verdict
from quintet.domain.item import ToolResult
from quintet.domain.model import TextChunk
from quintet.domain.tool import Effect
from quintet.domain.turn import Mode
from quintet.engine.interactions import Answer
from quintet.engine.subscription import Subscription
from quintet.protocols.wire.asked import public_id
from quintet.tools.task import TaskTool
from tests.fakes.engine import ME, House, Process
from tests.fakes.family import Family, children, task
from tests.fakes.family import process as make_process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.wire_client import kinds, payloads, spoken
from tests.fakes.wire_peer import Message
from tests.unit.protocols.wire.conftest import Connect

LS = '{"command": "ls here"}'


def shell() -> FakeTool:
    return FakeTool("shell", effect=Effect.EXECUTE)


def approve(request: Message) -> Message:
    return {"response": "approve"}


def runs(*commands: str) -> list[Any]:
    """One step that calls the shell with each of these."""
    lines: list[Any] = []
    for n, command in enumerate(commands):
        lines += call("shell", f'{{"command": "{command}"}}', f"{command}-{n}")
    return lines


@pytest.mark.req("wire:S50", "wire:S51", "wire:S52", "wire:S62", "wire:S63", "wire:S104")
async def test_a_request_says_what_would_run_and_comes_before_its_result(connect: Connect) -> None:
    tool = shell()
    heard = await connect(GatedProvider(call("shell", LS), text("end")), [tool]).prompt(answers=approve)
    (asked,) = [m for m in heard if m.get("method") == "request"]
    payload = asked["params"]["payload"]
    assert asked["id"] == payload["id"]
    assert payload["tool_call_id"] == "c1"
    assert (payload["sender"], payload["action"]) == ("Shell", "run command")
    assert payload["description"] == "Run command `ls here`"
    assert payload["display"][0] == {"type": "shell", "language": "bash", "command": "ls here"}
    assert payload["source_kind"] == "foreground_turn"
    assert {"source_id", "agent_id", "subagent_type", "source_description"} <= set(payload)
    order = [k for k in kinds(heard) if k in ("ApprovalRequest", "ApprovalResponse", "ToolResult")]
    assert order == ["ApprovalRequest", "ApprovalResponse", "ToolResult"]
    assert payloads(heard, "ApprovalResponse") == [{"request_id": payload["id"], "response": "approve", "feedback": ""}]
    assert tool.count == 1


@pytest.mark.req("wire:S104")
async def test_what_was_said_before_a_request_is_told_before_it_also_when_both_come_together(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Subscription._live

    async def not_before_the_request(self: Subscription) -> list[Event | Gap]:
        while not any(isinstance(e.payload, InteractionRequested | TurnFinished) for e in self._queue):
            await asyncio.sleep(0)
        return await live(self)

    monkeypatch.setattr(Subscription, "_live", not_before_the_request)
    says = [TextChunk("I "), TextChunk("look."), *call("shell", LS)]
    heard = await connect(GatedProvider(says, text("end")), [shell()]).prompt(answers=approve)
    told = kinds(heard)
    before = told[: told.index("ApprovalRequest")]
    assert before == ["TurnBegin", "StepBegin", "ContentPart", "ContentPart", "ToolCall", "StatusUpdate"]
    assert told.index("ApprovalResponse") < told.index("ToolResult")
    assert told[-2:] == ["TurnEnd", "reply"]


@pytest.mark.req("wire:S53", "wire:S54")
async def test_a_plain_reject_keeps_the_tool_from_running_and_ends_the_turn(connect: Connect) -> None:
    tool, model = shell(), GatedProvider(call("shell", LS), text("never"))
    peer = connect(model, [tool])
    heard = await peer.prompt(answers=lambda request: {"response": "reject"})
    assert tool.count == 0
    assert len(model.requests) == 1
    assert heard[-1]["result"] == {"status": "finished"}
    (result,) = payloads(heard, "ToolResult")
    assert result["return_value"]["is_error"] is True
    assert result["return_value"]["display"] == [{"type": "brief", "text": "Rejected by user"}]
    assert kinds(heard)[-3:] == ["ToolResult", "TurnEnd", "reply"]
    assert (await peer.prompt())[-1]["result"] == {"status": "finished"}


@pytest.mark.req("wire:S55")
async def test_a_reject_with_feedback_goes_on_and_the_model_reads_it(connect: Connect) -> None:
    tool, model = shell(), GatedProvider(call("shell", LS), text("sorry"))
    no = {"response": "reject", "feedback": "use find"}
    heard = await connect(model, [tool]).prompt(answers=lambda request: no)
    assert tool.count == 0
    assert payloads(heard, "ApprovalResponse")[0]["feedback"] == "use find"
    result = model.requests[1].items[-1].body
    assert isinstance(result, ToolResult)
    assert "use find" in result.text


@pytest.mark.req("wire:S54")
async def test_a_steer_after_a_reject_is_still_given_to_the_model(connect: Connect) -> None:
    model = GatedProvider(call("shell", LS), text("as you say"))
    peer = connect(model, [shell()])
    await peer.begin()
    (*_, asked) = await peer.hears("ApprovalRequest")
    assert (await peer.ask("steer", user_input="do it otherwise"))["result"] == {"status": "steered"}
    await peer.answer(asked, response="reject")
    heard = await peer.reply("p")
    assert payloads(heard, "SteerInput") == [{"user_input": "do it otherwise"}]
    assert len(model.requests) == 2


@pytest.mark.req("wire:S55")
async def test_in_a_subagent_a_plain_reject_does_not_stop_the_turn(connect: Connect, tmp_path: Path) -> None:
    house = House("memory", tmp_path)
    tool = shell()
    family = Family(
        task("helper", call_id="t1") + "---\ntext: done\n", helper=GatedProvider(call("shell", LS), text("could not"))
    )
    process = await make_process(house, "helper")
    peer = connect(family, [TaskTool(), tool], process=process)
    heard = await peer.prompt(answers=lambda request: {"response": "reject"})
    assert heard[-1]["result"] == {"status": "finished"}
    assert tool.count == 0
    (asked,) = payloads(heard, "ApprovalRequest")
    (child,) = await children(process, peer.thread)
    assert (asked["agent_id"], asked["subagent_type"]) == (child.id, "helper")
    inner = payloads(heard, "SubagentEvent")
    assert {(p["parent_tool_call_id"], p["task_tool_call_id"]) for p in inner} == {("t1", "t1")}
    assert {(p["agent_id"], p["subagent_type"]) for p in inner} == {(child.id, "helper")}
    assert [p["event"]["type"] for p in inner] == [
        *("TurnBegin", "StepBegin", "ToolCall", "StatusUpdate", "ToolResult"),
        *("StepBegin", "ContentPart", "StatusUpdate", "TurnEnd"),
    ]
    assert spoken(heard) == "done"
    await peer.close()
    await house.close()


@pytest.mark.req("wire:S56")
async def test_a_yes_for_the_session_silences_its_action_but_not_what_is_hard_to_undo(connect: Connect) -> None:
    tool = shell()
    steps = [runs("ls here"), runs("touch other > file"), runs("rm -rf everything"), text("end")]
    peer = connect(GatedProvider(*steps), [tool, FakeTool("write", effect=Effect.WRITE)])
    heard = await peer.prompt(answers=lambda request: {"response": "approve_for_session"})
    asked = [p["display"][0]["command"] for p in payloads(heard, "ApprovalRequest")]
    assert asked == ["ls here", "rm -rf everything"]
    # Nothing was remembered of the second, and the client is told so.
    assert [p["response"] for p in payloads(heard, "ApprovalResponse")] == ["approve_for_session", "approve"]
    assert tool.count == 3
    (grant,) = await peer.process.journal.grants(root=peer.thread)
    assert (grant.scope, grant.protocol, grant.pattern) == (Scope.THREAD, "wire", ("execute",))


@pytest.mark.req("wire:S56", "wire:S64")
async def test_what_waits_for_the_same_action_is_approved_with_it(connect: Connect) -> None:
    lines = [*runs("ls one", "ls two", "rm -rf x"), *call("write", '{"paths": ["/project/here/a"]}', "w")]
    tool, write = shell(), FakeTool("write", effect=Effect.WRITE)
    peer = connect(GatedProvider(lines, text("end")), [tool, write])
    await peer.begin()
    asked: dict[str, Message] = {}
    while len(asked) < 4:
        (*_, request) = await peer.hears("ApprovalRequest")
        asked[request["params"]["payload"]["tool_call_id"]] = request
    assert len(asked) == 4
    await peer.answer(asked["ls two-1"], response="approve_for_session")
    heard = await peer.until(lambda m: kinds(peer.seen).count("ToolResult") == 2)
    told = {p["request_id"]: p["response"] for p in payloads(heard, "ApprovalResponse")}
    assert told == {asked["ls two-1"]["id"]: "approve_for_session", asked["ls one-0"]["id"]: "approve"}
    # The client had its request open and answers all the same: too late, and ignored.
    await peer.answer(asked["ls one-0"], response="reject")
    await peer.answer(asked["w"], response="approve")
    await peer.answer(asked["rm -rf x-2"], response="reject", feedback="keep it")
    assert (await peer.reply("p"))[-1]["result"] == {"status": "finished"}
    assert (tool.count, write.count) == (2, 1)


@pytest.mark.req("wire:S57")
async def test_a_yes_for_the_session_survives_a_restart_and_serves_wire_only(connect: Connect, tmp_path: Path) -> None:
    house = House("sqlite", tmp_path / "journal")
    first = await house.process()
    peer = connect(GatedProvider(runs("ls a"), text("end")), [shell()], process=first)
    await peer.prompt(answers=lambda request: {"response": "approve_for_session"})
    await peer.close()
    await first.close()
    second = await house.process()
    again = connect(GatedProvider(runs("ls b"), text("end")), [shell()], process=second, thread=peer.thread)
    assert "ApprovalRequest" not in kinds(await again.prompt())
    # The same thread through another protocol asks.
    started = await second.start(peer.thread, GatedProvider(runs("ls c"), text("end")), [shell()], mode=Mode.ASK)
    interaction = await second.asked(peer.thread)
    await second.interactions.answer(interaction, Answer(Verdict.DENY), ME)
    await second.ended(started.turn.id)
    await again.close()
    await house.close()


@pytest.mark.req("wire:S58", "wire:S59")
@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -32000, "message": "no"}},
        {"result": {"response": "perhaps"}},
        {"result": {}},
        {"result": "approve"},
        {"result": None},
    ],
)
async def test_an_answer_that_is_none_counts_as_reject(connect: Connect, answer: dict[str, Any]) -> None:
    tool = shell()
    peer = connect(GatedProvider(call("shell", LS), text("never")), [tool])
    await peer.begin()
    (*_, asked) = await peer.hears("ApprovalRequest")
    await peer.send(id=asked["id"], **answer)
    heard = await peer.reply("p")
    assert tool.count == 0
    assert payloads(heard, "ApprovalResponse")[0]["response"] == "reject"
    assert kinds(heard)[-3:] == ["ToolResult", "TurnEnd", "reply"]  # a plain one: the model is not asked again
    assert heard[-1]["result"] == {"status": "finished"}


@pytest.mark.req("wire:S59")
async def test_a_wrong_request_id_inside_the_answer_is_only_logged(connect: Connect) -> None:
    tool = shell()
    peer = connect(GatedProvider(call("shell", LS), text("end")), [tool])
    await peer.prompt(answers=lambda request: {"request_id": "another", "response": "approve"})
    assert tool.count == 1
    assert any("another" in line for line in peer.log)


@pytest.mark.req("wire:S60")
async def test_who_wants_nothing_asked_is_asked_nothing(connect: Connect) -> None:
    tool = shell()
    heard = await connect(GatedProvider(call("shell", LS), text("end")), [tool], mode=Mode.ALLOW).prompt()
    assert tool.count == 1
    assert not {"ApprovalRequest", "ApprovalResponse"} & set(kinds(heard))


@pytest.mark.req("wire:S61", "wire:S106", "wire:S109")
async def test_a_cancel_settles_what_waits_and_a_late_answer_finds_nobody(connect: Connect) -> None:
    tool = shell()
    peer = connect(GatedProvider(call("shell", LS), text("again")), [tool])
    await peer.begin()
    (*_, asked) = await peer.hears("ApprovalRequest")
    await peer.send(id="x", method="cancel")
    heard = await peer.reply("p")
    told = [m.get("id") or m["params"]["type"] for m in heard]
    assert told == ["x", "ApprovalResponse", "ToolResult", "TurnEnd", "p"]
    assert payloads(heard, "ApprovalResponse") == [{"request_id": asked["id"], "response": "reject", "feedback": ""}]
    assert heard[-1]["result"] == {"status": "cancelled"}
    assert len(peer.connection._questions) == 0
    await peer.answer(asked, response="approve")
    assert await peer.quiet()
    assert tool.count == 0
    assert await peer.process.interactions.pending() == []
    assert (await peer.prompt())[-1]["result"] == {"status": "finished"}


@pytest.mark.req("wire:S64")
async def test_several_are_open_at_once_and_answered_in_any_order(connect: Connect) -> None:
    tool = shell()
    peer = connect(GatedProvider(runs("ls a", "ls b", "ls c"), text("end")), [tool])
    await peer.begin()
    asked = [(await peer.hears("ApprovalRequest"))[-1] for _ in range(3)]
    for request in reversed(asked):
        await peer.answer(request, response="approve")
    assert (await peer.reply("p"))[-1]["result"] == {"status": "finished"}
    assert tool.count == 3


async def test_somebody_elses_answer_is_told_and_the_clients_own_comes_too_late(connect: Connect) -> None:
    tool = shell()
    peer = connect(GatedProvider(call("shell", LS), text("end")), [tool])
    await peer.begin()
    (*_, asked) = await peer.hears("ApprovalRequest")
    waiting = await peer.process.asked(peer.thread)
    await peer.process.interactions.answer(waiting, Answer(Verdict.ALLOW), ME)
    heard = await peer.hears("ApprovalResponse")
    assert payloads(heard, "ApprovalResponse")[0]["response"] == "approve"
    await peer.answer(asked, response="reject")
    assert (await peer.reply("p"))[-1]["result"] == {"status": "finished"}
    assert tool.count == 1


@pytest.mark.req("wire:S108")
async def test_a_greeting_asks_again_what_still_waits_here(connect: Connect, process: Process) -> None:
    peer = connect(GatedProvider(text("hello")))
    await peer.prompt()
    tool = shell()
    started = await process.start(peer.thread, GatedProvider(call("shell", LS)), [tool], mode=Mode.ASK)
    waiting = await process.asked(peer.thread)
    await peer.initialize()
    (*_, asked) = await peer.hears("ApprovalRequest")
    assert asked["id"] == public_id(waiting)
    await peer.answer(asked, response="approve")
    await process.ended(started.turn.id)
    assert tool.count == 1


@pytest.mark.req("wire:S108")
async def test_what_another_process_waits_for_is_not_asked_here(connect: Connect, tmp_path: Path) -> None:
    house = House("files", tmp_path)
    here, there = await house.process(), await house.process()
    peer = connect(GatedProvider(text("hello")), process=here)
    await peer.prompt()
    started = await there.start(peer.thread, GatedProvider(call("shell", LS)), [shell()], mode=Mode.ASK)
    await there.asked(peer.thread)
    assert len(await here.interactions.pending()) == 1
    await peer.initialize()
    heard = [m for _ in range(5) for m in await peer.call("replay")]  # time enough to look and to ask
    assert "ApprovalRequest" not in kinds(heard)
    await there.turns.cancel(started.turn.id, ME)
    await peer.close()
    await house.close()


@pytest.mark.req("wire:S109")
async def test_when_the_input_closes_what_was_open_is_settled(connect: Connect) -> None:
    tool = shell()
    peer = connect(GatedProvider(call("shell", LS)), [tool])
    await peer.begin()
    await peer.hears("ApprovalRequest")
    peer.hang_up()
    heard = await peer.rest()
    assert kinds(heard)[-2:] == ["TurnEnd", "reply"]
    assert heard[-1]["result"] == {"status": "cancelled"}
    assert await peer.process.interactions.pending() == []
    assert tool.count == 0
