"""What the model is really sent: whole bodies against golden files, and what goes back of a thread that really ran."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quintet.domain.item import (
    AssistantMessage,
    Body,
    ImagePart,
    Reasoning,
    ResultStatus,
    Summary,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
    user_text,
)
from quintet.domain.model import ModelInfo, ModelRequest, TextChunk
from quintet.domain.tool import ToolSpec
from quintet.domain.turn import TurnState
from quintet.engine.prompt import INSTRUCTIONS
from quintet.providers.settings import ProviderKind
from quintet.providers.table import dialect_of
from tests.fakes.engine import House, Process
from tests.fakes.model_server import ModelServer
from tests.fakes.providers import GatedProvider
from tests.fakes.requests import all_chunks, items_of, request_of
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon
from tests.fakes.wires import KEY, WIRES, wire

GOLDEN = Path(__file__).parent / "golden"
PICTURE = ImagePart("image/png", "aGVsbG8=")
SEALED = 'responses:{"id":"rs_1","summary":[{"type":"summary_text","text":"look"}],"encrypted_content":"xyz"}'
FIRST: list[Body] = [
    Summary("They spoke of foxes."),
    UserMessage((TextPart("What is this?"), PICTURE)),
    Reasoning("look first", "anthropic:sig=="),
    Reasoning("", "anthropic-hidden:secret=="),
    Reasoning("look first", SEALED),
    Reasoning("look first", "chat:"),
    AssistantMessage("Let me look."),
    ToolCall("c1", "read", '{"path": "a.txt"}'),
    ToolCall("c2", "shell", '{"command": "ls"}'),
    ToolResult("c1", "read", ResultStatus.OK, "a fox", images=(PICTURE,)),
    ToolResult("c2", "shell", ResultStatus.DENIED, "Not allowed."),
    AssistantMessage("A fox."),
]
SECOND: list[Body] = [
    user_text("And now?"),
    Reasoning("once more", "chat:"),
    Reasoning("once more", "anthropic:sig2=="),
    ToolCall("c3", "read", ""),
    ToolResult("c3", "read", ResultStatus.ERROR, ""),
    user_text("hurry", steered=True),
    Reasoning("cut off", "anthropic:sig3==", partial=True),
    AssistantMessage("I was ", partial=True),
    user_text("go on"),
]
TOOLS = (
    ToolSpec("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSpec("shell", "Runs a command.", {"type": "object"}),
)


@pytest.fixture(params=WIRES, ids=str)
def kind(request: pytest.FixtureRequest) -> ProviderKind:
    return request.param


@pytest.fixture
async def lone(tmp_path: Path) -> AsyncIterator[Process]:
    house = House("memory", tmp_path)
    yield await house.process()
    await house.close()


@pytest.mark.req("reliability:R11")
@pytest.mark.parametrize("vision", [True, False], ids=["sees", "blind"])
async def test_a_thread_with_everything_in_it_becomes_exactly_this_body(kind: ProviderKind, vision: bool) -> None:
    request = ModelRequest("m", "Be brief.", items_of(FIRST, SECOND), TOOLS, "thr_1", {"temperature": 0})
    settings = ModelInfo("far/m", vision=vision, reasoning=vision, max_output=1000 if vision else None)
    async with ModelServer() as server:
        provider = wire(server, kind, model=settings)
        await soon(all_chunks(provider, request))
        await provider.close()
    name = GOLDEN / f"{kind}-{'sees' if vision else 'blind'}.json"
    sent = server.requests[0].body
    assert sent == json.loads(name.read_text()), json.dumps(sent, indent=1)


async def test_a_key_goes_where_the_wire_wants_it_and_own_headers_go_before(kind: ProviderKind) -> None:
    async with ModelServer() as server:
        provider = wire(server, kind, headers={"X-Team": "five", "User-Agent": "mine"})
        await soon(all_chunks(provider, request_of([user_text("go")])))
        await provider.close()
        overridden = wire(server, kind, headers={"Authorization": "Basic abc", "X-API-Key": "other"})
        await soon(all_chunks(overridden, request_of([user_text("go")])))
        await overridden.close()
    headers, changed = (request.headers for request in server.requests)
    if kind is ProviderKind.ANTHROPIC:
        assert headers["x-api-key"] == KEY
        assert headers["anthropic-version"] == "2023-06-01"
        assert "authorization" not in headers
    else:
        assert headers["authorization"] == f"Bearer {KEY}"
    assert (headers["x-team"], headers["user-agent"]) == ("five", "mine")
    assert (changed["authorization"], changed["x-api-key"]) == ("Basic abc", "other")
    assert KEY not in str(changed)


@pytest.mark.req("wire:S36")
async def test_inputs_with_no_answer_between_them_are_one_message(kind: ProviderKind) -> None:
    items = items_of([Summary("foxes"), user_text("first"), user_text("second")], [])
    body = dialect_of(kind).body(ModelRequest("m", "", items, (), "thr_1"), ModelInfo("far/m"))
    told = [entry["content"] for entry in body["input" if kind is ProviderKind.OPENAI_RESPONSES else "messages"]]
    words = [block["text"] for block in told[-1]]
    if kind is ProviderKind.OPENAI_RESPONSES:  # its entries are a list, and no conversation that takes turns
        assert words == ["second"]
    else:
        assert words[-2:] == ["first", "second"]


async def test_the_beginning_of_a_body_does_not_change_while_a_thread_grows(kind: ProviderKind) -> None:
    dialect = dialect_of(kind)
    whole = items_of(FIRST, SECOND)
    settings = ModelInfo("far/m", vision=True)
    shorter, longer = (
        dialect.body(ModelRequest("m", "Be brief.", items, TOOLS, "thr_1"), settings)
        for items in (whole[: len(FIRST)], whole[: len(FIRST) + 1])
    )
    name = "input" if kind is ProviderKind.OPENAI_RESPONSES else "messages"
    before, after = _unmarked(shorter[name]), _unmarked(longer[name])
    assert after[: len(before)] == before or kind is ProviderKind.OPENAI_CHAT
    # Chat gives back thoughts within their turn only: the message that carried them is the first to differ.
    if kind is ProviderKind.OPENAI_CHAT:
        assert after[:3] == before[:3]
    assert [key for key in shorter if key != name] == [key for key in longer if key != name]
    assert {k: v for k, v in shorter.items() if k != name} == {k: v for k, v in longer.items() if k != name}


def _unmarked(messages: list[dict]) -> list[dict]:
    """Without the mark that says up to where the server should keep it."""
    told = json.loads(json.dumps(messages))
    for message in told:
        for block in message.get("content") or [] if isinstance(message.get("content"), list) else []:
            block.pop("cache_control", None)
    return told


async def test_a_turn_with_thoughts_and_calls_sends_back_what_the_wire_wants(lone: Process, kind: ProviderKind) -> None:
    script = (
        'think: hm\nthink: m\ntext: I look.\ntool_call: look#c1 {"a": 1}\ntool_call: look#c2 {"a": 2}\n---\ntext: ok'
    )
    async with ModelServer(script) as server:
        provider = wire(server, kind, model=ModelInfo("far/m", reasoning=True))
        turn = await lone.run(await lone.thread(), provider, [FakeTool("look")], say="hello", model="far/model")
        await provider.close()
    assert turn.state is TurnState.DONE
    first, second = (request.body for request in server.requests)
    name = "input" if kind is ProviderKind.OPENAI_RESPONSES else "messages"
    assert INSTRUCTIONS in json.dumps(first)
    assert second["model"] == "model"
    assert _unmarked(second[name])[: len(first[name])] == _unmarked(first[name])
    assert _unmarked(second[name][len(first[name]) :]) == BACK[kind]


def _call(call_id: str, number: int) -> dict:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": f'{{"a": {number}}}'}}


BACK = {
    ProviderKind.OPENAI_CHAT: [
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "hmm",
            "tool_calls": [_call("c1", 1), _call("c2", 2)],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "look done"},
        {"role": "tool", "tool_call_id": "c2", "content": "look done"},
    ],
    ProviderKind.OPENAI_RESPONSES: [
        {
            "type": "reasoning",
            "id": "item_0",
            "summary": [{"type": "summary_text", "text": "hmm"}],
            "encrypted_content": "enc_1",
        },
        {"role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a": 1}'},
        {"type": "function_call", "call_id": "c2", "name": "look", "arguments": '{"a": 2}'},
        {"type": "function_call_output", "call_id": "c1", "output": "look done"},
        {"type": "function_call_output", "call_id": "c2", "output": "look done"},
    ],
    ProviderKind.ANTHROPIC: [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hmm", "signature": "sig_1"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"a": 1}},
                {"type": "tool_use", "id": "c2", "name": "look", "input": {"a": 2}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "look done"}]},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "look done"}]},
            ],
        },
    ],
}


ROWS: dict[ProviderKind, tuple[list[dict], list[Reasoning], str]] = {
    ProviderKind.ANTHROPIC: (
        [
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "one"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "si"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "g1"}},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "zz"}},
            {"type": "content_block_start", "index": 2, "content_block": {"type": "thinking", "thinking": ""}},
            {"type": "content_block_delta", "index": 2, "delta": {"type": "thinking_delta", "thinking": "two"}},
            {"type": "content_block_delta", "index": 2, "delta": {"type": "signature_delta", "signature": "sig2"}},
        ],
        [Reasoning("one", "anthropic:sig1"), Reasoning("", "anthropic-hidden:zz"), Reasoning("two", "anthropic:sig2")],
        "sig1 zz sig2",
    ),
    ProviderKind.OPENAI_RESPONSES: (
        [
            {"type": "response.reasoning_summary_text.delta", "delta": "one"},
            {"type": "response.output_item.done", "item": {"type": "reasoning", "id": "r1", "encrypted_content": "e1"}},
            {"type": "response.reasoning_summary_text.delta", "delta": "two"},
            {"type": "response.output_item.done", "item": {"type": "reasoning", "id": "r2", "encrypted_content": "e2"}},
        ],
        [
            Reasoning("one", 'responses:{"id":"r1","encrypted_content":"e1"}'),
            Reasoning("two", 'responses:{"id":"r2","encrypted_content":"e2"}'),
        ],
        "e1 e2",
    ),
}


@pytest.mark.parametrize("kind", ROWS, ids=str)
async def test_thoughts_in_a_row_go_back_each_with_its_own_signature(lone: Process, kind: ProviderKind) -> None:
    told, thoughts, signatures = ROWS[kind]
    parser = dialect_of(kind).parser(request_of([user_text("go")]))
    chunks = [chunk for event in told for chunk in parser.event("", json.dumps(event).encode())]
    thread = await lone.thread()
    await lone.run(thread, GatedProvider([*chunks, TextChunk("so")]))
    assert await lone.bodies(thread, Reasoning) == thoughts
    async with ModelServer() as server:
        provider = wire(server, kind)
        await lone.run(thread, provider, model="far/model")
        await provider.close()
    sent = json.dumps(server.requests[0].body)
    assert all(sent.count(f'"{signature}"') == 1 for signature in signatures.split())


@pytest.mark.parametrize("kind", [ProviderKind.ANTHROPIC, ProviderKind.OPENAI_RESPONSES], ids=str)
async def test_a_thought_that_nothing_came_of_is_not_sent_back(lone: Process, kind: ProviderKind) -> None:
    """A whole thought, then the answer was cut off: wires refuse thinking that nothing follows."""
    async with ModelServer() as server:
        provider = wire(server, kind, model=ModelInfo("far/m", reasoning=True))
        thread = await lone.put(
            "told", user_text("a"), Reasoning("alone", "anthropic:sig_9" if kind is ProviderKind.ANTHROPIC else SEALED)
        )
        await lone.run(thread.id, provider, model="far/model")
        await provider.close()
    assert "sig_9" not in str(server.requests[0].body)
    assert "xyz" not in str(server.requests[0].body)


async def test_connections_are_used_again_and_closed(kind: ProviderKind) -> None:
    async with ModelServer() as server:
        provider = wire(server, kind)
        for _ in range(3):
            await soon(all_chunks(provider, request_of([user_text("go")])))
        assert server.connections == 1
        await provider.close()
        await soon(all_chunks(provider, request_of([user_text("go")])))  # closed is not broken
        assert server.connections == 2
        await provider.close()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (ProviderKind.OPENAI_RESPONSES, {"reasoning": {"effort": "high"}}),
        (ProviderKind.OPENAI_CHAT, {"reasoning_effort": "high"}),
        (ProviderKind.ANTHROPIC, {}),
    ],
    ids=str,
)
def test_how_hard_a_model_shall_think_is_said_to_those_that_think(kind: ProviderKind, said: dict[str, object]) -> None:
    request = ModelRequest("m", "", (), (), "thr_1", effort="high")
    plain = ModelRequest("m", "", (), (), "thr_1")
    for thinks in (True, False):
        info = ModelInfo("p/m", reasoning=thinks)
        without = dialect_of(kind).body(plain, info)
        assert dialect_of(kind).body(request, info) == without | (said if thinks else {})
