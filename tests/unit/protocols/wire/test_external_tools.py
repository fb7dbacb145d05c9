"""Tools that live in the client: asked, answered, and every way in which that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quintet.domain import interaction
from quintet.domain.interaction import UNTRUSTED_RESULT_LIMIT
from quintet.domain.item import ImagePart, MediaKind, MediaPart, ResultStatus, ToolResult
from quintet.engine.starter import OF_CLIENT
from quintet.protocols.wire.requests import SAME_ID
from quintet.tools.task import TaskTool
from tests.fakes.engine import House
from tests.fakes.family import Family, task
from tests.fakes.family import process as make_process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.wire_client import kinds, payloads
from tests.fakes.wire_peer import Peer
from tests.unit.protocols.wire.conftest import Connect

OPEN = {"name": "open", "description": "of the client", "parameters": {"type": "object"}}


def value(output: Any = "Opened", *, is_error: bool = False, **more: Any) -> dict[str, Any]:
    return {"is_error": is_error, "output": output, "message": "", "display": [], "extras": None, **more}


async def greeted(connect: Connect, *steps: Any) -> tuple[Peer, GatedProvider]:
    model = GatedProvider(*steps)
    peer = connect(model)
    await peer.initialize("1.1", external_tools=[OPEN])
    return peer, model


def read(model: GatedProvider, number: int = 1) -> list[ToolResult]:
    """The results the model was given."""
    return [item.body for item in model.requests[number].items if isinstance(item.body, ToolResult)]


@pytest.mark.req("wire:S65", "wire:S69", "wire:S72", "wire:S51")
@pytest.mark.parametrize(
    "returned",
    [
        value(),
        value(message="Opened it", display=[{"type": "brief", "text": "hi"}, {"type": "odd", "data": {}}]),
        value([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], extras={"a": 1}),
        value("it broke", is_error=True),
    ],
)
async def test_a_clients_tool_is_asked_and_its_result_repeated(connect: Connect, returned: dict[str, Any]) -> None:
    peer, model = await greeted(connect, call("open", '{"path": "a"}', "c7"), text("end"))
    heard = await peer.prompt(answers=lambda request: {"tool_call_id": request["id"], "return_value": returned})
    (asked,) = [m for m in heard if m.get("method") == "request"]
    assert asked["id"] == "c7"
    assert asked["params"] == {
        "type": "ToolCallRequest",
        "payload": {"id": "c7", "name": "open", "arguments": '{"path": "a"}'},
    }
    assert payloads(heard, "ToolResult") == [{"tool_call_id": "c7", "return_value": returned}]
    assert "ApprovalRequest" not in kinds(heard)
    output = returned["output"]
    assert read(model)[0].text == (output if isinstance(output, str) else "one\ntwo")
    assert (read(model)[0].status is ResultStatus.ERROR) is returned["is_error"]
    assert heard[-1]["result"] == {"status": "finished"}


@pytest.mark.req("wire:S72")
async def test_what_a_clients_tool_shows_is_seen_by_the_model(connect: Connect) -> None:
    png, clip = "data:image/png;base64,iVBORw0KGgo=", "data:video/mp4;base64,AAAA"
    output = [
        {"type": "text", "text": "shot"},
        {"type": "image_url", "image_url": {"url": png, "id": None}},
        {"type": "video_url", "video_url": {"url": clip, "id": "v"}},
        {"type": "image_url", "image_url": {"url": "https://h.example/a.png", "id": None}},
    ]
    peer, model = await greeted(connect, call("open", "{}", "c1"), text("end"))
    heard = await peer.prompt(answers=lambda request: {"return_value": value(output)})
    assert payloads(heard, "ToolResult")[0]["return_value"] == value(output)
    (result,) = read(model)
    assert result.text == "shot\n[an image at https://h.example/a.png]"
    assert result.images == (ImagePart("image/png", "iVBORw0KGgo="), MediaPart(MediaKind.VIDEO, clip, label="v"))


async def test_more_than_a_model_could_be_shown_is_named_instead(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interaction, "UNTRUSTED_MEDIA_LIMIT", 8)
    output = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAAAAAAAAAA", "id": None}}]
    peer, model = await greeted(connect, call("open", "{}", "c1"), text("end"))
    await peer.prompt(answers=lambda request: {"return_value": value(output)})
    (result,) = read(model)
    assert result.images == ()
    assert result.text == "[an image, image/png, 9 bytes]\n[left out: together they are larger than 20 MiB]"


@pytest.mark.req("wire:S67", "wire:S68")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"error": {"code": 1, "message": "the editor is closed"}}, "the editor is closed"),
        ({"result": {"tool_call_id": "c1"}}, "malformed"),
        ({"result": {"tool_call_id": "c1", "return_value": {"output": 5}}}, "malformed"),
        ({"result": "Opened"}, "malformed"),
    ],
)
async def test_a_client_that_fails_is_an_error_and_the_turn_goes_on(
    connect: Connect, answer: dict[str, Any], words: str
) -> None:
    peer, model = await greeted(connect, call("open"), text("end"))
    await peer.begin()
    (*_, asked) = await peer.hears("ToolCallRequest")
    await peer.send(id=asked["id"], **answer)
    heard = await peer.reply("p")
    (result,) = payloads(heard, "ToolResult")
    assert result["return_value"]["is_error"] is True
    assert words in result["return_value"]["message"]
    assert words in read(model)[0].text
    assert heard[-1]["result"] == {"status": "finished"}


@pytest.mark.req("wire:S71", "wire:S73")
@pytest.mark.parametrize(
    ("name", "given", "words"),
    [("nothing", "{}", "Tool `nothing` not found"), ("open", '{"path', "not valid JSON"), ("open", "5", "JSON object")],
)
async def test_what_cannot_be_called_is_an_error_and_the_client_is_not_asked(
    connect: Connect, name: str, given: str, words: str
) -> None:
    peer, _ = await greeted(connect, call(name, given), text("end"))
    heard = await peer.prompt()
    assert not [m for m in heard if m.get("method") == "request"]
    (result,) = payloads(heard, "ToolResult")
    assert result["return_value"]["is_error"] is True
    assert words in result["return_value"]["message"]
    assert heard[-1]["result"] == {"status": "finished"}


@pytest.mark.req("wire:S70")
async def test_parallel_calls_are_answered_in_any_order_before_the_next_step(connect: Connect) -> None:
    calls = [line for n in range(3) for line in call("open", f'{{"n": {n}}}', f"c{n}")]
    peer, model = await greeted(connect, calls, text("end"))
    await peer.begin()
    asked = [(await peer.hears("ToolCallRequest"))[-1] for _ in range(3)]
    assert [m["id"] for m in asked] == ["c0", "c1", "c2"]
    for request in reversed(asked):
        await peer.answer(request, tool_call_id=request["id"], return_value=value(f"of {request['id']}"))
    heard = await peer.reply("p")
    assert kinds(heard)[:4] == ["ToolResult", "ToolResult", "ToolResult", "StepBegin"]
    assert {r.call_id: r.text for r in read(model)} == {"c0": "of c0", "c1": "of c1", "c2": "of c2"}


@pytest.mark.req("wire:S109")
async def test_a_cancel_settles_a_tool_that_never_answers(connect: Connect) -> None:
    peer, _ = await greeted(connect, call("open"), text("again"))
    await peer.begin()
    (*_, asked) = await peer.hears("ToolCallRequest")
    await peer.send(id="x", method="cancel")
    assert (await peer.reply("p"))[-1]["result"] == {"status": "cancelled"}
    await peer.answer(asked, tool_call_id=asked["id"], return_value=value())
    assert await peer.quiet()
    assert (await peer.prompt())[-1]["result"] == {"status": "finished"}


async def test_without_the_tool_declared_again_the_model_is_not_offered_it(connect: Connect) -> None:
    peer, model = await greeted(connect, text("one"), text("two"))
    await peer.prompt()
    await peer.initialize()
    await peer.prompt()
    assert [[spec.name for spec in request.tools] for request in model.requests] == [["open"], []]


@pytest.mark.req("wire:S70")
async def test_a_call_whose_id_another_agent_uses_now_fails_instead_of_waiting_for_ever(
    connect: Connect, tmp_path: Path
) -> None:
    house = House("memory", tmp_path)
    process = await make_process(house, "one", "two")
    same = {name: GatedProvider(call("open", "{}", "c1"), text("over")) for name in ("one", "two")}
    family = Family(task("one", call_id="t1") + task("two", call_id="t2") + "---\ntext: done\n", **same)
    peer = connect(family, [TaskTool()], process=process)
    await peer.initialize("1.1", external_tools=[OPEN])
    await peer.begin()
    failed = await peer.until(lambda m: SAME_ID in str(m))
    (asked,) = [m for m in failed if m.get("method") == "request"]
    await peer.answer(asked, tool_call_id="c1", return_value=value())
    heard = await peer.reply("p")
    assert heard[-1]["result"] == {"status": "finished"}
    assert "request" not in [m.get("method") for m in heard]
    await peer.close()
    await house.close()


@pytest.mark.req("security:S52")
async def test_the_model_is_told_that_a_clients_tool_returns_data_and_what_is_too_long_is_cut(connect: Connect) -> None:
    peer, model = await greeted(connect, call("open"), text("end"))
    long = "x" * (UNTRUSTED_RESULT_LIMIT + 5)
    await peer.prompt(answers=lambda request: {"tool_call_id": request["id"], "return_value": value(long)})
    (offered,) = model.requests[0].tools
    assert offered.description == f"of the client\n\n{OF_CLIENT}"
    given = read(model)[0].text
    assert len(given) < UNTRUSTED_RESULT_LIMIT
    assert "characters left out here" in given
    assert given.endswith(f"\n[cut: the client returned {len(long)} characters]")
