"""Each type of the published document is really sent, and never without one of its fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.errors import ProviderFailed
from quintet.domain.item import MediaKind, MediaPart
from quintet.domain.model import MediaChunk, ReasoningChunk, ToolInput, ToolStart, Usage, UsageChunk
from quintet.domain.ports import ToolContext
from quintet.domain.tool import Effect, Prepared, ToolOutcome
from quintet.tools.task import TaskTool
from tests.fakes.engine import House
from tests.fakes.family import Family
from tests.fakes.family import process as make_process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.wire_peer import Message
from tests.unit.protocols.wire.conftest import Connect

FIELDS: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[3] / "golden" / "wire" / "fields.json").read_text(encoding="utf-8")
)
OPEN = {"name": "open", "description": "of the client", "parameters": {"type": "object"}}
OPENED = {"return_value": {"is_error": False, "output": "Opened", "message": "", "display": []}}
SHOWN = (
    {"type": "todo", "items": [{"text": "one", "status": "pending"}]},
    {"type": "brief", "text": "so"},
    {"type": "of nobody", "more": 1},
)
DIFF = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new\n"


async def show(prepared: Prepared, context: ToolContext) -> ToolOutcome:
    return ToolOutcome("shown", display=SHOWN, diff=DIFF)


def answers(request: Message) -> Message:
    if request["params"]["type"] == "ToolCallRequest":
        return {"tool_call_id": request["id"], **OPENED}
    return {"response": "approve"}


def boss() -> GatedProvider:
    media = [MediaChunk(MediaPart(kind, f"data:{kind.value}/x;base64,AAAA")) for kind in MediaKind]
    work = json.dumps({"description": "work", "prompt": "do it", "agent": "helper"})
    return GatedProvider(
        [ReasoningChunk("hm"), *text("so"), *media, *call("task", work, "t1"), UsageChunk(Usage(9, 5, 2, None, 1))],
        [ToolStart("c2", "show"), ToolInput("c2", "{"), ToolInput("c2", "}")],
        [*call("open", "{}", "c3"), *call("shell", '{"command": "ls"}', "c4")],
        text("a long answer " * 200),
        text("the summary"),
        [ProviderFailed("broken")],
    )


def sent(message: Message) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object of a message under the name it has in the list."""
    kind, payload = message["params"]["type"], message["params"]["payload"]
    name = f"ContentPart {payload['type']}" if kind == "ContentPart" else kind
    yield name, payload
    for inner in ("token_usage", "function", "return_value"):
        if payload.get(inner):
            yield f"{kind} {inner}", payload[inner]
    if kind == "ContentPart" and payload["type"].endswith("_url"):
        yield f"{name} url", payload[payload["type"]]
    if kind == "SubagentEvent":
        yield "SubagentEvent event", payload["event"]
        yield from sent({"params": payload["event"]})
    for block in payload.get("display") or payload.get("return_value", {}).get("display", []):
        known = f"display {block['type']}"
        yield known if known in FIELDS else "display unknown", block
        if block["type"] == "todo":
            yield from (("display todo item", item) for item in block["items"])


@pytest.mark.req("wire:S21", "wire:S25", "wire:S50", "wire:S63", "wire:S65", "wire:S66", "wire:S104", "wire:S105")
async def test_each_published_type_is_sent_with_all_its_fields(connect: Connect, tmp_path: Path) -> None:
    house = House("memory", tmp_path)
    process = await make_process(house, "helper")
    family = Family(boss(), helper=GatedProvider(text("found")))
    tools = [TaskTool(), FakeTool("show", show), FakeTool("shell", effect=Effect.EXECUTE)]
    peer = connect(family, tools, process=process)
    await peer.initialize("1.1", external_tools=[OPEN])
    for words in ("go", "/compact", "again"):
        await peer.prompt(words, answers)
    seen: set[str] = set()
    for message in peer.seen:
        assert set(message) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}) or "method" in message
        for name, value in sent(message) if "params" in message else ():
            seen.add(name)
            assert not set(FIELDS.get(name, ())) - set(value), (name, value)
    assert not set(FIELDS) - seen
    await peer.close()
    await house.close()
