"""Greeting and framing: what is refused, how, and what goes on all the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quintet.domain.thread import ThreadQuery
from quintet.protocols.wire import server
from tests.fakes.providers import Gate, GatedProvider, text
from tests.fakes.tools import FakeTool
from tests.fakes.wire_client import kinds, payloads, spoken
from tests.unit.protocols.wire.conftest import Connect

EVENTS = [
    *("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "StopFailure"),
    *("SessionStart", "SessionEnd", "SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "Notification"),
]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def tool(name: str, parameters: Any = SCHEMA, description: str = "of the client") -> dict[str, Any]:
    return {"name": name, "description": description, "parameters": parameters}


@pytest.mark.req("wire:S01", "wire:S18")
async def test_the_greeting_says_who_serves_and_what_there_is(connect: Connect) -> None:
    result = (await connect().initialize())["result"]
    assert result["protocol_version"] == "1.10"
    assert result["server"] == {"name": "quintet", "version": "0"}
    assert all(isinstance(command["aliases"], list) for command in result["slash_commands"])
    assert result["capabilities"] == {"supports_question": True}
    assert sorted(result["hooks"]["supported_events"]) == sorted(EVENTS)
    assert result["hooks"]["configured"] == {}


@pytest.mark.req("wire:S03")
@pytest.mark.parametrize("more", [{}, {"external_tools": []}, {"external_tools": None}])
async def test_without_tools_of_the_client_nothing_is_said_of_them(connect: Connect, more: dict[str, Any]) -> None:
    assert "external_tools" not in (await connect().initialize(**more))["result"]


@pytest.mark.req("wire:S04", "security:S52")
async def test_each_tool_is_taken_or_refused_with_a_reason(connect: Connect) -> None:
    peer = connect(tools=[FakeTool("shell")])
    given = [
        tool("open"),
        tool("shell"),
        tool("two words"),
        tool("odd", {"type": "nonsense"}),
        tool("far", {"$ref": "https://example.com/schema"}),
        tool("open", description="again"),
    ]
    said = (await peer.initialize(external_tools=given))["result"]["external_tools"]
    assert said["accepted"] == ["open"]
    reasons = {row["name"]: row["reason"] for row in said["rejected"]}
    assert set(reasons) == {"shell", "two words", "odd", "far"}
    assert reasons["shell"] == "conflicts with builtin tool"
    assert "Unknown type" in reasons["odd"]
    assert [spec.description for spec in peer.connection.state.external_tools] == ["again"]


@pytest.mark.req("wire:S04")
async def test_of_two_tools_with_one_name_the_last_is_taken_or_refused(connect: Connect) -> None:
    peer = connect()
    given = [
        *(tool("worse"), tool("better", {"type": "nonsense"}), tool("same", description="first")),
        *(tool("worse", {"type": "nonsense"}), tool("better"), tool("same", description="last"), tool("")),
    ]
    said = (await peer.initialize(external_tools=given))["result"]["external_tools"]
    assert sorted(said["accepted"]) == ["better", "same"]
    assert sorted(row["name"] for row in said["rejected"]) == ["", "worse"]
    assert all(row["reason"] for row in said["rejected"])
    taken = {spec.name: spec.description for spec in peer.connection.state.external_tools}
    assert taken == {"better": "of the client", "same": "last"}


@pytest.mark.req("wire:S04")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"protocol_version": 1},
        {"protocol_version": "1.1", "external_tools": [{"name": "a", "description": "b"}]},
        {"protocol_version": "1.1", "external_tools": [{"name": "a", "parameters": {}}]},
        {"protocol_version": "1.1", "external_tools": [tool("fine"), {"description": "b", "parameters": {}}]},
        {"protocol_version": "1.1", "external_tools": "a"},
        {"protocol_version": "1.1", "hooks": [{"event": "Stop"}]},
    ],
)
async def test_a_greeting_that_lacks_something_fails_whole(connect: Connect, params: dict[str, Any]) -> None:
    peer = connect()
    error = (await peer.ask("initialize", **params))["error"]
    assert error == {"code": -32602, "message": "Invalid parameters for method `initialize`", "data": None}
    assert peer.connection.state.external_tools == ()


@pytest.mark.req("wire:S05")
async def test_a_second_greeting_replaces_the_first(connect: Connect) -> None:
    peer = connect()
    hook = {"id": "h", "event": "Stop"}
    await peer.initialize(external_tools=[tool("one")], capabilities={"supports_question": True}, hooks=[hook])
    again = await peer.initialize("1.9", external_tools=[tool("two")])
    state = peer.connection.state
    assert (state.hooks, again["result"]["hooks"]["configured"]) == ((), {})
    assert not state.gate.lets("StepRetry")
    assert [spec.name for spec in state.external_tools] == ["two"]
    assert state.capabilities.supports_question is False
    await peer.initialize()
    assert state.external_tools == ()


BAD: list[tuple[bytes, int, str]] = [
    (b"{nonsense", -32700, "Invalid JSON format"),
    (b"", -32700, "Invalid JSON format"),
    (b"   ", -32700, "Invalid JSON format"),
    (b'{"method": "cancel", "id": "1"}', -32600, "Invalid request"),
    (b'{"jsonrpc": "1.0", "method": "cancel", "id": "1"}', -32600, "Invalid request"),
    (b'{"jsonrpc": 2.0, "method": "cancel", "id": "1"}', -32600, "Invalid request"),
    (b'{"jsonrpc": "2.0"}', -32600, "Invalid request"),
    (b'{"jsonrpc": "2.0", "id": "1"}', -32600, "Invalid request"),
    (b'{"jsonrpc": "2.0", "method": 5, "id": "1"}', -32600, "Invalid request"),
    (b'{"jsonrpc": "2.0", "method": "cancel", "id": 1.5}', -32600, "Invalid request"),
    (b"[]", -32600, "Invalid request"),
    (b'[{"jsonrpc": "2.0", "method": "cancel", "id": "1"}]', -32600, "Invalid request"),
    (b'"words"', -32600, "Invalid request"),
]


@pytest.mark.req("wire:S06", "wire:S07", "wire:S14", "wire:S15", "wire:S103")
@pytest.mark.parametrize(("line", "code", "words"), BAD)
async def test_what_is_no_request_is_answered_once_with_id_null(
    connect: Connect, line: bytes, code: int, words: str
) -> None:
    peer = connect()
    await peer.raw(line + b"\n")
    assert await peer.next() == {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words, "data": None}}
    assert (await peer.prompt())[-1]["result"] == {"status": "finished"}


@pytest.mark.req("wire:S02", "wire:S08")
@pytest.mark.parametrize("given", ["1", "", "ü", 1, 0, -7])
async def test_an_id_comes_back_as_it_was_sent(connect: Connect, given: Any) -> None:
    (answer,) = await connect().call("initialize", given, protocol_version="1.1")
    assert answer["id"] == given
    assert type(answer["id"]) is type(given)
    (refused,) = await connect().call("nothing", given)
    assert (refused["id"], type(refused["id"])) == (given, type(given))


@pytest.mark.req("wire:S09", "wire:S16")
@pytest.mark.parametrize("method", ["nothing", "event", "request", "Prompt"])
async def test_a_method_that_is_not_served_is_named(connect: Connect, method: str) -> None:
    answer = await connect().ask(method)
    assert answer["id"] == "c"
    assert answer["error"] == {"code": -32601, "message": f"Unexpected method received: {method}", "data": None}


@pytest.mark.req("wire:S10", "wire:S14", "wire:S17")
async def test_what_expects_no_answer_gets_none_and_starts_nothing(connect: Connect) -> None:
    peer = connect()
    await peer.send(method="nothing")
    await peer.send(method="event", params={})
    await peer.send(method="prompt", params={"user_input": "go"})
    await peer.send(id="unknown", result={})
    await peer.send(id="unknown", error={"code": 1, "message": "x"})
    assert await peer.quiet()
    assert peer.thread == ""


@pytest.mark.req("wire:S11", "wire:S102")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"user_input": None},
        {"user_input": 5},
        {"user_input": [{"type": "hologram", "text": "x"}]},
        {"user_input": [{"text": "x"}]},
        {"user_input": [{"type": "text"}]},
        {"user_input": ["x"]},
    ],
)
async def test_a_prompt_that_is_none_is_refused_and_nothing_happens(connect: Connect, params: dict[str, Any]) -> None:
    peer = connect()
    heard = await peer.call("prompt", **params)
    assert [m.get("id") for m in heard] == ["c"]
    error = heard[0]["error"]
    assert (error["code"], error["message"]) == (-32602, "Invalid parameters for method `prompt`")
    assert peer.thread == ""
    assert (await peer.prompt())[-1]["result"] == {"status": "finished"}


@pytest.mark.req("wire:S12", "wire:S13")
@pytest.mark.parametrize(("method", "params"), [("cancel", {}), ("steer", {"user_input": "x"})])
async def test_while_idle_there_is_nothing_to_stop_or_steer(
    connect: Connect, method: str, params: dict[str, Any]
) -> None:
    error = (await connect().ask(method, **params))["error"]
    assert error == {"code": -32000, "message": "No agent turn is in progress", "data": None}


@pytest.mark.req("wire:S19")
@pytest.mark.parametrize("version", ["1.1", "1.99", "0", "", "next", "1.x"])
async def test_any_version_is_accepted_and_answered_with_our_own(connect: Connect, version: str) -> None:
    result = (await connect().initialize(version, nobody_knows={"this": 1}))["result"]
    assert result["protocol_version"] == "1.10"


@pytest.mark.req("wire:S19")
async def test_unknown_params_of_any_method_are_ignored(connect: Connect) -> None:
    peer, more = connect(), {"nobody_knows": {"this": 1}}
    assert (await peer.ask("prompt", user_input="go", **more))["result"] == {"status": "finished"}
    assert (await peer.ask("replay", **more))["result"]["status"] == "finished"
    assert (await peer.ask("set_plan_mode", enabled=True, **more))["result"] == {"status": "ok", "plan_mode": True}
    for method, params in (("cancel", {}), ("steer", {"user_input": "x"})):
        assert (await peer.ask(method, **params, **more))["error"]["code"] == -32000


@pytest.mark.req("wire:S30", "wire:S29")
async def test_during_a_turn_neither_prompt_nor_greeting_is_taken_and_the_turn_is_unharmed(connect: Connect) -> None:
    gate = Gate()
    peer = connect(GatedProvider([*text("one "), gate, *text("two")]))
    await peer.begin()
    await peer.hears("ContentPart")
    greeting = {"protocol_version": "1.10", "capabilities": {"supports_question": True}, "external_tools": [tool("a")]}
    for method, params in (("prompt", {"user_input": "x"}), ("initialize", greeting)):
        error = (await peer.ask(method, **params))["error"]
        assert error == {"code": -32000, "message": "An agent turn is already in progress", "data": None}
    state = peer.connection.state
    assert (state.capabilities.supports_question, state.external_tools) == (False, ())
    assert not state.gate.lets("StepRetry")
    gate.open()
    heard = await peer.reply("p")
    assert heard[-1]["result"] == {"status": "finished"}
    assert kinds(heard) == ["ContentPart", "StatusUpdate", "TurnEnd", "reply"]


@pytest.mark.req("wire:S18", "wire:S111")
async def test_hooks_that_cannot_be_heard_are_logged_and_the_others_counted(connect: Connect) -> None:
    peer = connect()
    hooks = [
        {"id": "a", "event": "PreToolUse", "matcher": "x"},
        {"id": "b", "event": "Nonsense"},
        {"id": "c", "event": "Stop", "matcher": "("},
    ]
    assert (await peer.initialize(hooks=hooks))["result"]["hooks"]["configured"] == {"PreToolUse": 1}
    assert [(taken.id, taken.timeout_s) for taken in peer.connection.state.hooks] == [("a", 30)]
    assert any("'b'" in line and "Nonsense" in line for line in peer.log)
    assert any("'c'" in line and "regular expression" in line for line in peer.log)


@pytest.mark.req("wire:S26", "wire:S02")
async def test_odd_characters_survive_and_a_line_stays_one_line_for_every_reader(connect: Connect) -> None:
    words = 'ü "quoted"\n\u2028\u2029 \U0001f600 \\ \t end'
    peer = connect(GatedProvider(text(words)))
    asked = {"jsonrpc": "2.0", "id": "p", "method": "prompt", "params": {"user_input": words}}
    await peer.raw(json.dumps(asked, ensure_ascii=False).encode() + b"\n")
    heard = await peer.reply("p")
    assert payloads(heard, "TurnBegin") == [{"user_input": words}]
    assert spoken(heard) == words
    assert all(len(line.decode().splitlines()) == 1 for line in peer.lines)


async def test_a_line_may_be_far_longer_than_most_and_one_beyond_the_limit_is_refused(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.LONGEST_LINE == 100 * 1024 * 1024
    words = "x" * (20 * 1024 * 1024)
    assert (await connect().prompt(words))[-1]["result"] == {"status": "finished"}
    monkeypatch.setattr(server, "LONGEST_LINE", 1024)
    peer = connect()
    await peer.begin("y" * 2048)
    refused = await peer.next()
    assert refused is not None
    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert (await peer.prompt("short"))[-1]["result"] == {"status": "finished"}


async def test_calls_that_need_the_thread_at_once_meet_in_one(connect: Connect) -> None:
    peer = connect()
    await peer.send(id="a", method="set_plan_mode", params={"enabled": True})
    await peer.begin()
    await peer.reply("p")
    assert len(await peer.process.threads.page(ThreadQuery())) == 1
