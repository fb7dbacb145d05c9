"""Turns: what is told of them, in which order, and how each ends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from quintet.domain.errors import Invalid, NotConfigured, ProviderFailed, all_error_classes
from quintet.domain.item import ImagePart, MediaKind, ToolCall, UserMessage, text_of
from quintet.domain.model import (
    Finish,
    FinishChunk,
    ReasoningChunk,
    RetryChunk,
    TextChunk,
    ToolInput,
    ToolStart,
    Usage,
    UsageChunk,
)
from quintet.domain.ports import ToolContext
from quintet.domain.tool import Prepared, ToolOutcome
from quintet.domain.turn import Mode
from quintet.protocols.wire.calls import CallStream
from quintet.protocols.wire.errors import errors
from quintet.protocols.wire.names import Names
from tests.fakes.engine import ME, Process
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon
from tests.fakes.wire_client import kinds, payloads, spoken
from tests.unit.protocols.wire.conftest import Connect

PNG = "data:image/png;base64,iVBORw0KGgo="


class NoModels:
    def resolve(self, reference: str) -> Any:
        raise NotConfigured("No model is configured.")

    def info(self, reference: str) -> Any:
        raise NotConfigured("No model is configured.")


@pytest.mark.req("wire:S20", "wire:S21", "wire:S22", "wire:S24", "wire:S105")
async def test_a_turn_of_text_is_told_in_order_and_then_nothing(connect: Connect) -> None:
    peer = connect(GatedProvider([ReasoningChunk("hm "), ReasoningChunk("so"), *text("a", "b", "c")]))
    heard = await peer.prompt()
    assert kinds(heard) == ["TurnBegin", "StepBegin", *["ContentPart"] * 5, "StatusUpdate", "TurnEnd", "reply"]
    assert payloads(heard, "StepBegin") == [{"n": 1}]
    assert payloads(heard, "ContentPart") == [
        {"type": "think", "think": "hm ", "encrypted": None},
        {"type": "think", "think": "so", "encrypted": None},
        *({"type": "text", "text": word} for word in "abc"),
    ]
    assert heard[-1]["result"] == {"status": "finished"}
    assert await peer.quiet()


@pytest.mark.req("wire:S23")
@pytest.mark.parametrize("given", ["go", "", [], [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]])
async def test_the_input_is_repeated_as_it_was_given_and_an_empty_one_runs_too(connect: Connect, given: Any) -> None:
    model = GatedProvider()
    heard = await connect(model).prompt(given)
    assert payloads(heard, "TurnBegin") == [{"user_input": given}]
    assert kinds(heard)[1] == "StepBegin"
    assert len(model.requests) == 1


@pytest.mark.req("wire:S25")
async def test_each_step_has_a_status_with_what_the_model_used(connect: Connect) -> None:
    first = [*call("look"), UsageChunk(Usage(200, 7, 50, None, 30))]
    peer = connect(GatedProvider(first, text("end")), [FakeTool("look")], known={"context_window": 1000})
    one, two = payloads(await peer.prompt(), "StatusUpdate")
    assert one == {
        "context_usage": 0.2,
        "context_tokens": 200,
        "max_context_tokens": 1000,
        "token_usage": {"input_other": 120, "output": 7, "input_cache_read": 50, "input_cache_creation": 30},
        "message_id": None,
        "plan_mode": False,
        "mcp_status": None,
    }
    assert two == dict.fromkeys(one) | {"plan_mode": False}


@pytest.mark.req("wire:S25")
@pytest.mark.parametrize(
    ("usage", "share", "other"), [(Usage(2500, 7, 0), 1.0, 2500), (Usage(10, 7, 30, None, 5), 0.01, 0)]
)
async def test_a_share_is_at_most_one_and_no_count_is_below_nothing(
    connect: Connect, usage: Usage, share: float, other: int
) -> None:
    peer = connect(GatedProvider([*text("a"), UsageChunk(usage)]), known={"context_window": 1000})
    (status,) = payloads(await peer.prompt(), "StatusUpdate")
    assert (status["context_usage"], status["token_usage"]["input_other"]) == (share, other)


@pytest.mark.req("wire:S27")
async def test_a_mebibyte_is_accepted(connect: Connect) -> None:
    words = "wörter " * 150_000
    model = GatedProvider()
    heard = await connect(model).prompt(words)
    assert heard[-1]["result"] == {"status": "finished"}
    assert payloads(heard, "TurnBegin") == [{"user_input": words}]
    assert text_of(model.requests[0].items[0].body) == words


@pytest.mark.req("wire:S32", "wire:S33", "wire:S34", "wire:S35", "wire:S36", "wire:S46")
async def test_a_cancel_is_answered_first_closes_the_stream_and_harms_nothing_after_it(connect: Connect) -> None:
    model = GatedProvider([*text("half"), Gate()], text("again"))
    peer = connect(model)
    await peer.begin("first")
    await peer.hears("ContentPart")
    await peer.send(id="x", method="cancel")
    heard = await peer.reply("p")
    assert [m.get("id") or m["params"]["type"] for m in heard] == ["x", "TurnEnd", "p"]
    assert heard[0]["result"] == {}
    assert heard[-1]["result"] == {"status": "cancelled"}
    assert model.closed == 1
    assert spoken(await peer.prompt("second")) == "again"
    said = [text_of(item.body) for item in model.requests[1].items if isinstance(item.body, UserMessage)]
    assert said == ["first", "second"]


@pytest.mark.req("wire:S32", "wire:S34")
@pytest.mark.parametrize(("version", "told"), [("1.2", ["TurnEnd"]), ("1.7", ["ToolResult", "TurnEnd"])])
async def test_a_client_of_1_2_that_cancels_a_call_is_told_of_the_end_alone(
    connect: Connect, version: str, told: list[str]
) -> None:
    at_work = Gate()

    async def work(prepared: Any, context: Any) -> Any:
        await at_work.pass_through()

    peer = connect(GatedProvider(call("look"), text("again")), [FakeTool("look", work)])
    await peer.call("initialize", protocol_version=version)
    await peer.begin("first")
    await at_work.stopped()
    await peer.send(id="x", method="cancel")
    heard = await peer.reply("p")
    behind = next(place for place, message in enumerate(heard) if message.get("id") == "x") + 1
    assert kinds(heard[behind:]) == [*told, "reply"]
    assert heard[-1]["result"] == {"status": "cancelled"}
    assert spoken(await peer.prompt("second")) == "again"


@pytest.mark.req("wire:S32", "wire:S34")
async def test_a_cancel_sent_together_with_the_prompt_finds_it(connect: Connect) -> None:
    peer = connect(GatedProvider([Gate()]))
    lines = [
        {"jsonrpc": "2.0", "id": "p", "method": "prompt", "params": {"user_input": "go"}},
        {"jsonrpc": "2.0", "id": "x", "method": "cancel"},
    ]
    await peer.raw(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    heard = await peer.reply("p")
    assert heard[-1]["result"] == {"status": "cancelled"}
    events = [kind for kind in kinds(heard) if kind != "reply"]
    assert (events[0], events[-1]) == ("TurnBegin", "TurnEnd")
    assert [m["id"] for m in heard if "result" in m] == ["x", "p"]


@pytest.mark.req("wire:S37")
async def test_the_second_turn_knows_the_first(connect: Connect) -> None:
    model = GatedProvider(text("one"), text("two"))
    peer = connect(model)
    await peer.prompt("first")
    await peer.prompt("second")
    assert [text_of(item.body) for item in model.requests[1].items] == ["first", "one", "second"]


@pytest.mark.req("wire:S38", "wire:S39")
async def test_the_limit_of_steps_is_told_with_its_number(connect: Connect) -> None:
    peer = connect(GatedProvider(*[call("look", call_id=f"c{n}") for n in range(5)]), [FakeTool("look")], max_steps=3)
    heard = await peer.prompt()
    assert heard[-1]["result"] == {"status": "max_steps_reached", "steps": 3}
    assert kinds(heard)[-2] == "TurnEnd"
    assert [p["n"] for p in payloads(heard, "StepBegin")] == [1, 2, 3]


@pytest.mark.req("wire:S35", "wire:S40", "wire:S41", "wire:S46")
async def test_a_provider_that_fails_is_told_and_the_next_prompt_works(connect: Connect) -> None:
    failure = ProviderFailed("fake failed: it does not accept the key; status 401.")
    peer = connect(GatedProvider([failure], text("well")))
    heard = await peer.prompt()
    assert kinds(heard) == ["TurnBegin", "StepBegin", "StepInterrupted", "TurnEnd", "reply"]
    assert heard[-1]["error"]["code"] == -32003
    assert "401" in heard[-1]["error"]["message"]
    assert heard[-1]["error"]["data"] is None
    assert spoken(await peer.prompt()) == "well"


@pytest.mark.req("wire:S44", "wire:S45")
async def test_a_retry_is_told_and_the_answer_begins_anew(connect: Connect) -> None:
    again = RetryChunk(2, 0.5, "its connection broke", "broken", 3, None)
    calls = [ToolStart("c1", "look"), ToolInput("c1", '{"a"')]
    peer = connect(GatedProvider([*text("half"), *calls, again, *text("whole")]), [FakeTool("look")])
    await peer.initialize()
    heard = await peer.prompt()
    told = [k for k in kinds(heard) if k != "ToolCallPart"]
    assert told == [
        *("TurnBegin", "StepBegin", "ContentPart", "ToolCall"),
        *("StepRetry", "ContentPart", "StatusUpdate", "TurnEnd", "reply"),
    ]
    assert payloads(heard, "StepRetry") == [
        {"n": 1, "next_attempt": 2, "max_attempts": 3, "wait_s": 0.5, "error_type": "broken", "status_code": None}
    ]
    items = await peer.process.threads.items(peer.thread)
    assert [text_of(item.body) for item in items] == ["go", "whole"]


@pytest.mark.req("wire:S47")
async def test_without_a_model_the_prompt_says_so_and_the_greeting_does_not(connect: Connect) -> None:
    peer = connect(NoModels())
    assert "result" in await peer.initialize()
    heard = await peer.prompt()
    assert kinds(heard) == ["TurnBegin", "TurnEnd", "reply"]
    assert (heard[-1]["error"]["code"], heard[-1]["error"]["message"]) == (-32001, "LLM is not set")


@pytest.mark.req("wire:S48")
@pytest.mark.parametrize(
    ("part", "capability"),
    [
        ({"type": "image_url", "image_url": {"url": PNG}}, "image_in"),
        ({"type": "audio_url", "audio_url": {"url": "data:audio/aac;base64,AA=="}}, "audio_in"),
        ({"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA==", "id": "v"}}, "video_in"),
        ({"type": "think", "think": "hm"}, "thinking"),
    ],
)
async def test_what_the_model_cannot_take_is_refused_by_name(
    connect: Connect, part: dict[str, Any], capability: str
) -> None:
    model = GatedProvider()
    peer = connect(model)
    heard = await peer.prompt([{"type": "text", "text": "see"}, part])
    assert kinds(heard) == ["TurnBegin", "TurnEnd", "reply"]
    assert heard[-1]["error"]["code"] == -32002
    assert capability in heard[-1]["error"]["message"]
    assert "'model'" in heard[-1]["error"]["message"]
    assert model.requests == []
    assert (await peer.prompt())[-1]["result"] == {"status": "finished"}


@pytest.mark.req("wire:S23")
async def test_an_image_reaches_a_model_that_sees(connect: Connect) -> None:
    model = GatedProvider()
    peer = connect(model, known={"vision": True})
    given = [{"type": "image_url", "image_url": {"url": PNG, "id": None}}, {"type": "text", "text": "what is it"}]
    heard = await peer.prompt(given)
    assert payloads(heard, "TurnBegin") == [{"user_input": given}]
    (body,) = [item.body for item in model.requests[0].items]
    assert [type(part).__name__ for part in body.parts] == ["ImagePart", "TextPart"]  # type: ignore[union-attr]
    assert body.parts[0].data == "iVBORw0KGgo="  # type: ignore[union-attr]


@pytest.mark.req("wire:S23", "wire:S48", "wire:S102")
@pytest.mark.parametrize("sees", [True, False])
async def test_an_image_at_an_address_is_fetched_for_a_model_that_sees(connect: Connect, sees: bool) -> None:
    asked: list[str] = []

    async def fetch(address: str, kind: MediaKind) -> ImagePart:
        assert kind is MediaKind.IMAGE
        asked.append(address)
        if "gone" in address:
            raise Invalid("There is no image.")
        return ImagePart("image/png", "iVBORw0KGgo=")

    model = GatedProvider()
    peer = connect(model, known={"vision": sees}, house={"fetch": fetch})
    given = [{"type": "image_url", "image_url": {"url": "https://example.com/a.png", "id": None}}]
    heard = await peer.prompt(given)
    if not sees:
        assert heard[-1]["error"]["code"] == -32002
        assert asked == []
        return
    assert payloads(heard, "TurnBegin") == [{"user_input": given}]
    assert model.requests[0].items[0].body.parts == (ImagePart("image/png", "iVBORw0KGgo="),)  # type: ignore[union-attr]
    for address in ("https://example.com/gone.png", "data:image/png,notbase64"):
        bad = await peer.prompt([{"type": "image_url", "image_url": {"url": address}}])
        assert [m.get("id") for m in bad] == ["p"]  # and nothing else happens
        assert bad[0]["error"]["code"] == -32602
    assert asked == ["https://example.com/a.png", "https://example.com/gone.png"]


@pytest.mark.req("wire:S66")
@pytest.mark.parametrize("interleaved", [False, True])
async def test_the_arguments_of_two_calls_never_mix(connect: Connect, interleaved: bool) -> None:
    pieces = {"c1": ['{"a": ', "1", ', "b": 2}'], "c2": ['{"x"', ": 9", "}"]}
    chunks: list[Any] = [ToolStart("c1", "look")]
    if interleaved:
        chunks.append(ToolStart("c2", "look"))
        for n in range(3):
            chunks += [ToolInput("c1", pieces["c1"][n]), ToolInput("c2", pieces["c2"][n])]
    else:
        chunks += [ToolInput("c1", piece) for piece in pieces["c1"]]
        chunks += [ToolStart("c2", "look"), *(ToolInput("c2", piece) for piece in pieces["c2"])]
    peer = connect(GatedProvider([*chunks, FinishChunk(Finish.TOOL_CALLS)], text("end")), [FakeTool("look")])
    heard = await peer.prompt()
    assert assembled(heard) == {"c1": "".join(pieces["c1"]), "c2": "".join(pieces["c2"])}
    parts = [p["arguments_part"] for p in payloads(heard, "ToolCallPart")]
    assert parts == (pieces["c1"] if interleaved else pieces["c1"] + pieces["c2"])
    assert [p["id"] for p in payloads(heard, "ToolCall")] == ["c1", "c2"]
    assert kinds(heard).count("ToolResult") == 2


@pytest.mark.req("wire:S66")
def test_pieces_that_were_pruned_are_sent_when_the_call_is_whole() -> None:
    calls = CallStream(Names())
    told = [*calls.begin("c1", "look", fed=False), *calls.grow("c1", "look", '{"a"')]
    told += calls.whole(ToolCall("c1", "look", '{"a": 1}'))
    assert [m.type for m in told] == ["ToolCall", "ToolCallPart", "ToolCallPart"]
    assert "".join(m.payload.arguments_part for m in told[1:]) == '{"a": 1}'
    assert calls.whole(ToolCall("c1", "look", '{"a": 1}')) == []


def assembled(heard: list[dict[str, Any]]) -> dict[str, str]:
    """As a client puts calls together: a part belongs to the last ToolCall."""
    calls: dict[str, str] = {}
    last = ""
    for message in heard:
        params = message.get("params", {"type": ""})
        if params["type"] == "ToolCall":
            last = params["payload"]["id"]
            calls[last] = params["payload"]["function"]["arguments"] or ""
        elif params["type"] == "ToolCallPart":
            calls[last] += params["payload"]["arguments_part"]
    return calls


@pytest.mark.req("wire:S66", "wire:T1")
async def test_a_call_is_told_when_the_model_begins_it(connect: Connect) -> None:
    gate = Gate()
    chunks = [ToolStart("c1", "look"), gate, ToolInput("c1", '{"a"'), ToolInput("c1", ": 1}")]
    peer = connect(GatedProvider([*chunks, FinishChunk(Finish.TOOL_CALLS)], text("end")), [FakeTool("look")])
    await peer.send(id="p", method="prompt", params={"user_input": "go"})
    heard = await peer.until(lambda m: m["params"]["type"] == "ToolCall")  # the model has not gone on
    assert payloads(heard, "ToolCall")[0]["function"] == {"name": "look", "arguments": None}
    gate.open()
    heard = await peer.reply("p")
    assert kinds(heard)[:2] == ["ToolCallPart", "ToolCallPart"]
    assert "".join(p["arguments_part"] for p in payloads(heard, "ToolCallPart")) == '{"a": 1}'


@pytest.mark.req("wire:T1")
@pytest.mark.parametrize(("called", "shown"), [("ReadMediaFile", "ReadMediaFile"), ("read", "ReadFile")])
async def test_a_call_that_is_told_early_has_the_name_it_is_known_by(connect: Connect, called: str, shown: str) -> None:
    chunks = [ToolStart("c1", called), ToolInput("c1", '{"path": "a"}'), FinishChunk(Finish.TOOL_CALLS)]
    heard = await connect(GatedProvider(chunks, text("end")), [FakeTool("read")]).prompt()
    assert payloads(heard, "ToolCall")[0]["function"] == {"name": shown, "arguments": None}


@pytest.mark.req("wire:S66", "wire:S104", "wire:T1")
async def test_arguments_that_come_with_their_call_are_told_with_it(connect: Connect) -> None:
    peer = connect(GatedProvider(call("look", '{"a": 1}'), text("end")), [FakeTool("look")])
    heard = await peer.prompt()
    assert payloads(heard, "ToolCall")[0]["function"] == {"name": "look", "arguments": '{"a": 1}'}
    assert payloads(heard, "ToolCallPart") == []


@pytest.mark.req("wire:S44", "wire:S45", "wire:S66")
async def test_a_call_of_an_attempt_that_broke_off_holds_no_other_back(connect: Connect) -> None:
    again = RetryChunk(2, 0.0, "connection", "connection", 3)
    chunks = [ToolStart("c1", "look"), ToolInput("c1", '{"a'), again, ToolStart("c1", "look"), ToolInput("c1", "{}")]
    peer = connect(GatedProvider([*chunks, FinishChunk(Finish.TOOL_CALLS)], text("end")), [FakeTool("look")])
    await peer.initialize()
    heard = await peer.prompt()
    told = [k for k in kinds(heard) if k in ("ToolCall", "ToolCallPart", "StepRetry", "ToolResult")]
    assert told == ["ToolCall", "ToolCallPart", "StepRetry", "ToolCall", "ToolCallPart", "ToolResult"]
    last = payloads(heard, "ToolCall")[1]["id"]
    assert assembled(heard)[last] == "{}"
    assert payloads(heard, "ToolResult")[0]["tool_call_id"] == last


@pytest.mark.req("wire:S104", "wire:S66")
async def test_a_call_without_arguments_and_its_result_are_told(connect: Connect) -> None:
    peer = connect(GatedProvider([*text("let me "), ToolStart("c1", "look")], text("end")), [FakeTool("look")])
    heard = await peer.prompt()
    assert kinds(heard) == [
        *("TurnBegin", "StepBegin", "ContentPart", "ToolCall", "StatusUpdate", "ToolResult"),
        *("StepBegin", "ContentPart", "StatusUpdate", "TurnEnd", "reply"),
    ]
    assert payloads(heard, "ToolCall") == [
        {"id": "c1", "function": {"name": "look", "arguments": None}, "type": "function", "extras": None}
    ]
    assert payloads(heard, "ToolResult") == [
        {
            "tool_call_id": "c1",
            "return_value": {"is_error": False, "output": "look done", "message": "", "display": [], "extras": None},
        }
    ]


@pytest.mark.req("wire:S29")
@pytest.mark.parametrize("said", ["go", "/compact", "/btw why?"])
async def test_a_turn_of_another_protocol_is_in_the_way_and_is_not_told_of(
    connect: Connect, process: Process, said: str
) -> None:
    gate, thread = Gate(), await process.thread()
    other = GatedProvider([*text("theirs"), gate])
    started = await process.start(thread, other)
    peer = connect(GatedProvider(text("ours")), thread=thread)
    await gate.stopped()
    heard = await peer.prompt(said)
    assert [m.get("id") for m in heard] == ["p"]
    assert heard[0]["error"] == {"code": -32000, "message": "An agent turn is already in progress", "data": None}
    assert len(await process.journal.turns(thread)) == 1  # there is no queue
    gate.open()
    await process.ended(started.turn.id)
    assert await peer.quiet()
    assert spoken(await peer.prompt()) == "ours"


@pytest.mark.req("wire:S29")
async def test_a_turn_that_is_being_cancelled_is_waited_for_a_moment(connect: Connect, process: Process) -> None:
    begun, closing, free = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def holds(prepared: Prepared, context: ToolContext) -> ToolOutcome:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            closing.set()
            await free.wait()
        return ToolOutcome("never")

    thread = await process.thread()
    started = await process.start(thread, GatedProvider(call("hold")), [FakeTool("hold", holds)])
    await soon(begun.wait())
    cancelling = asyncio.ensure_future(process.turns.cancel(started.turn.id, ME))
    await soon(closing.wait())
    peer = connect(GatedProvider(text("ours")), thread=thread)
    await peer.begin()
    assert await peer.quiet()  # neither refused nor begun
    free.set()
    heard = await peer.reply("p")
    assert (spoken(heard), heard[-1].get("result")) == ("ours", {"status": "finished"})
    await soon(cancelling)


def test_every_error_of_the_engine_has_a_code() -> None:
    codes = {kind.code: errors(kind("words"), "prompt").code for kind in all_error_classes()}
    assert codes["provider_failed"] == -32003
    assert codes["not_configured"] == -32001
    assert codes["busy"] == codes["turn_over"] == -32000
    assert set(codes.values()) <= {-32602, -32603, -32000, -32001, -32003}
    assert errors(ValueError("secret words"), "prompt").code == -32603
    assert "secret" not in errors(ValueError("secret words"), "prompt").message
    assert errors(Invalid("no"), "prompt").data is None


@pytest.mark.parametrize(
    ("version", "told"),
    [(None, False), ("1.1", False), ("1.2", False), ("1.9", False), ("1.10", True), ("1.11", True), ("2.0", True)],
)
async def test_a_client_of_an_older_version_is_spared_what_it_cannot_know(
    connect: Connect, version: str | None, told: bool
) -> None:
    lines = [RetryChunk(2, 0.0, "slow down", "rate_limit", 4, 429), *text("well")]
    peer = connect(GatedProvider(lines))
    if version is not None:
        await peer.initialize(version)
    heard = kinds(await peer.prompt())
    assert ("StepRetry" in heard) is told
    assert "TurnEnd" in heard
    assert "StepRetry" in kinds(await connect(GatedProvider(lines), gated=False).prompt())


async def test_an_answer_of_many_pieces_is_told_whole_to_a_slow_reader(connect: Connect) -> None:
    """More than the writer holds and the live queue keeps: the turn ends long before it has been told."""
    peer = connect(GatedProvider([TextChunk(f"{n} ") for n in range(5_000)]), mode=Mode.ALLOW)
    await peer.begin()
    await peer.process.seen(lambda e: e.kind == "turn.finished", "")
    assert spoken(await peer.reply("p")) == "".join(f"{n} " for n in range(5_000))
