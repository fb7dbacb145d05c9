"""Replay: the journal told again, as the client first heard it, text in one piece."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintet.domain.model import ReasoningChunk, RetryChunk, ToolInput, ToolStart, Usage, UsageChunk
from quintet.domain.tool import Effect
from quintet.tools.task import TaskTool
from tests.fakes.engine import House, Process
from tests.fakes.family import Family, task
from tests.fakes.family import process as make_process
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.wire_client import kinds, payloads, spoken
from tests.fakes.wire_peer import Message, Peer
from tests.unit.protocols.wire.conftest import Connect

OPEN = {"name": "open", "description": "of the client", "parameters": {"type": "object"}}
OPENED = {"return_value": {"is_error": False, "output": "Opened", "message": "", "display": [], "extras": None}}


@pytest.mark.req("wire:S90")
async def test_an_empty_thread_has_nothing_to_tell(connect: Connect) -> None:
    assert await connect().call("replay") == [
        {"jsonrpc": "2.0", "id": "c", "result": {"status": "finished", "events": 0, "requests": 0}}
    ]


def answers(request: Message) -> Message:
    if request["params"]["type"] == "ToolCallRequest":
        return {"tool_call_id": request["id"], **OPENED}
    return {"response": "approve"}


async def lived(connect: Connect) -> tuple[Peer, GatedProvider, list[Message]]:
    """A client after two turns, and what it heard."""
    begun = [ToolStart("c1", "open"), ToolInput("c1", '{"a"'), ToolInput("c1", ": 1}")]
    steps = [
        [ReasoningChunk("h"), ReasoningChunk("m"), *text("let ", "me"), *begun],
        [*call("shell", '{"command": "ls"}', "c2"), UsageChunk(Usage(10, 5))],
        text("do", "ne"),
    ]
    model = GatedProvider(*steps, text("second"))
    peer = connect(model, [FakeTool("shell", effect=Effect.EXECUTE)], known={"context_window": 100_000})
    await peer.initialize(external_tools=[OPEN])
    heard = [*await peer.prompt("first", answers), *await peer.prompt("again", answers)]
    return peer, model, heard


@pytest.mark.req("wire:S91", "wire:S92", "wire:S96")
async def test_what_was_heard_is_told_again_merged_and_counted_as_often_as_asked(connect: Connect) -> None:
    peer, model, heard = await lived(connect)
    told = await peer.call("replay")
    gone = ("ApprovalRequest", "ApprovalResponse", "reply", "ToolCallPart", "ContentPart")
    assert [k for k in kinds(told) if k not in gone] == [k for k in kinds(heard) if k not in gone]
    assert "ApprovalRequest" not in kinds(told)
    assert "ApprovalResponse" not in kinds(told)
    assert [p.get("text") or p.get("think") for p in payloads(told, "ContentPart")] == [
        "hm",
        "let me",
        "done",
        "second",
    ]
    for kind in ("TurnBegin", "StepBegin", "StatusUpdate", "ToolResult", "ToolCallRequest"):
        assert payloads(told, kind) == payloads(heard, kind)
    assert [p["function"]["arguments"] for p in payloads(told, "ToolCall")] == ['{"a": 1}', '{"command": "ls"}']
    sent = [m.get("method") for m in told]
    result = told[-1]["result"]
    assert result == {"status": "finished", "events": sent.count("event"), "requests": 1}
    # The client answers what it is told again; nobody waits for that.
    await peer.answer(next(m for m in told if m.get("method") == "request"), **OPENED)
    assert await peer.call("replay") == told
    assert len(await peer.process.journal.turns(peer.thread)) == 2
    assert len(model.requests) == 4


@pytest.mark.req("wire:S91")
async def test_turns_of_another_protocol_are_told_too(connect: Connect, process: Process) -> None:
    thread = await process.thread()
    await process.run(thread, GatedProvider(text("theirs")), say="by another")
    told = await connect(thread=thread).call("replay")
    assert payloads(told, "TurnBegin") == [{"user_input": "by another"}]
    assert spoken(told) == "theirs"


@pytest.mark.req("wire:S91")
@pytest.mark.parametrize(("version", "told"), [("1.9", False), ("1.10", True)])
async def test_a_replay_spares_an_older_client_what_its_subagents_did_that_it_cannot_know(
    connect: Connect, tmp_path: Path, version: str, told: bool
) -> None:
    house = House("memory", tmp_path)
    process = await make_process(house, "helper")
    helper = GatedProvider([RetryChunk(2, 0.0, "slow down", "rate_limit", 4, 429), *text("found")])
    family = Family(task("helper", call_id="t1") + "---\ntext: done\n", helper=helper)
    peer = connect(family, [TaskTool()], process=process)
    await peer.initialize(version)
    live = [p["event"]["type"] for p in payloads(await peer.prompt(), "SubagentEvent")]
    replayed = await peer.call("replay")
    assert replayed[-1]["result"]["events"] == len(replayed) - 1  # what was sent, not what there is
    again = [p["event"]["type"] for p in payloads(replayed, "SubagentEvent")]
    assert ("StepRetry" in live, "StepRetry" in again) == (told, told)
    assert "TurnEnd" in again
    await peer.close()
    await house.close()


@pytest.mark.req("wire:S31")
async def test_during_a_turn_there_is_no_replay(connect: Connect) -> None:
    gate = Gate()
    peer = connect(GatedProvider([*text("one"), gate]))
    await peer.begin()
    await peer.hears("ContentPart")
    assert (await peer.ask("replay"))["error"]["code"] == -32000
    gate.open()
    assert (await peer.reply("p"))[-1]["result"] == {"status": "finished"}


@pytest.mark.req("wire:S112")
async def test_a_cancel_stops_a_replay_that_then_counts_what_it_sent(connect: Connect) -> None:
    peer, _, _ = await lived(connect)
    await peer.prompt("x" * 3_000_000)  # more than can be on its way at once
    await peer.prompt("y")
    await peer.send(id="r", method="replay")
    await peer.hears("TurnBegin")
    await peer.send(id="x", method="cancel")
    heard = [*await peer.reply("x"), *await peer.reply("r")]
    result = heard[-1]["result"]
    assert result["status"] == "cancelled"
    assert result["events"] == len([m for m in heard if m.get("method") == "event"]) + 1
    assert result["requests"] == len([m for m in heard if m.get("method") == "request"]) == 1
    assert (await peer.ask("steer", user_input="x"))["error"]["code"] == -32000
    assert (await peer.prompt())[-1]["result"] == {"status": "finished"}
