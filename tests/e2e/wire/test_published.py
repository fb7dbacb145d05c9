"""The examples of the published document, said to the real executable and heard from it, ids and all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.wire.test_kimi_scripts import call, client
from tests.fakes.wire_client import Message, WireClient, payloads, spoken

EXAMPLES: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "golden" / "wire" / "examples.json").read_text(encoding="utf-8")
)


def says(wire: WireClient, name: str, **instead: Any) -> None:
    """An example as it is printed; of an answer only the ids are those of the request."""
    wire.raw(json.dumps(EXAMPLES[name] | instead).encode())


def failed(name: str) -> Message:
    """An error as printed, with the member that is always there."""
    said: Message = EXAMPLES[name]
    return said | {"error": said["error"] | {"data": None}}


def asked(wire: WireClient) -> Message:
    return wire.until(lambda m: m.get("method") == "request")[-1]


@pytest.mark.req("wire:S01", "wire:S02", "wire:S04", "wire:S12", "wire:S21", "wire:S32", "wire:S50", "wire:S51")
def test_the_published_conversation_is_had_word_for_word(tmp_path: Path) -> None:
    listing, again = call("Shell", {"command": "ls"}), call("Shell", {"command": "ls"}, "tc-2")
    with client(tmp_path, "text: Hello", listing, "text: done", again) as wire:
        greeting, told = EXAMPLES["initialize request"], EXAMPLES["initialize response"]
        says(wire, "initialize request")
        (answer,) = wire.reply(greeting["id"])
        assert set(answer) == set(told)
        result, example = answer["result"], told["result"]
        assert set(example) <= set(result)
        assert set(result["server"]) == set(example["server"])
        assert {frozenset(row) for row in result["slash_commands"]} == {frozenset(example["slash_commands"][0])}
        assert example["slash_commands"][0]["name"] in [row["name"] for row in result["slash_commands"]]
        assert result["external_tools"] == example["external_tools"]

        prompt, end = EXAMPLES["prompt request"], EXAMPLES["prompt response"]
        says(wire, "prompt request")
        heard = wire.reply(prompt["id"])
        assert heard[-1] == end
        assert EXAMPLES["event"] in heard
        says(wire, "cancel request")
        assert wire.next() == failed("cancel error")

        says(wire, "prompt request")
        request, shown = asked(wire), EXAMPLES["approval request"]
        assert set(request) == set(shown)
        payload, example = request["params"]["payload"], shown["params"]["payload"]
        assert set(example) <= set(payload)
        assert {k: payload[k] for k in ("tool_call_id", "sender", "description")} == {
            k: example[k] for k in ("tool_call_id", "sender", "description")
        }
        yes = EXAMPLES["approval response"]["result"]
        says(wire, "approval response", id=request["id"], result=yes | {"request_id": payload["id"]})
        heard = wire.reply(prompt["id"])
        assert (
            payloads(heard, "ApprovalResponse")[0].items()
            >= {"request_id": payload["id"], "response": "approve"}.items()
        )
        assert (spoken(heard), heard[-1]) == ("done", end)

        says(wire, "prompt request")
        asked(wire)
        says(wire, "cancel request")
        assert wire.next() == EXAMPLES["cancel response"]
        assert wire.reply(prompt["id"])[-1] == end | {"result": {"status": "cancelled"}}


@pytest.mark.req("wire:S65", "wire:S51", "wire:S72")
def test_the_published_tool_is_called_and_its_result_repeated_word_for_word(tmp_path: Path) -> None:
    given = '{"path":"README.md"}'
    line = f"tool_call: {json.dumps({'id': 'tc-1', 'name': 'open_in_ide', 'arguments': given})}"
    with client(tmp_path, line, "text: done") as wire:
        says(wire, "initialize request")
        wire.reply(EXAMPLES["initialize request"]["id"])
        says(wire, "prompt request")
        request, shown = asked(wire), EXAMPLES["tool request"]
        assert request["params"] == shown["params"]
        assert request["id"] == shown["params"]["payload"]["id"]
        says(wire, "tool response", id=request["id"])
        heard = wire.reply(EXAMPLES["prompt request"]["id"])
        (result,), told = payloads(heard, "ToolResult"), EXAMPLES["tool response"]["result"]
        assert result == told | {"return_value": told["return_value"] | {"extras": None}}
        assert heard[-1] == EXAMPLES["prompt response"]


@pytest.mark.req("wire:S47")
def test_the_published_error_is_what_a_server_without_a_model_says(tmp_path: Path) -> None:
    with client(tmp_path, default_model="", models={}, providers={}) as wire:
        says(wire, "prompt request")
        assert wire.reply(EXAMPLES["prompt request"]["id"])[-1] == failed("prompt error")
