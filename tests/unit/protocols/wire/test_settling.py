"""What was asked and never answered is settled when its turn is stopped, whatever it was and however that came."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quintet.domain.event import InteractionResolved
from quintet.domain.interaction import Verdict
from quintet.domain.principal import ENGINE
from quintet.domain.tool import Effect
from quintet.tools.ask_user import AskUserTool
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.wire_client import kinds, payloads
from tests.unit.protocols.wire.conftest import Connect

OPEN = {"name": "open", "description": "of the client", "parameters": {"type": "object"}}
ASKS = json.dumps({"questions": [{"question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}]})
GREETING: dict[str, Any] = {
    "external_tools": [OPEN],
    "capabilities": {"supports_question": True},
    "hooks": [{"id": "h", "event": "PreToolUse", "matcher": "look"}],
}
# (what is asked, the call it is about, a late answer)
ASKED = [
    ("ApprovalRequest", call("shell", '{"command": "ls"}'), {"response": "approve"}),
    ("ToolCallRequest", call("open"), {"return_value": {"is_error": False, "output": "Opened"}}),
    ("QuestionRequest", call("AskUserQuestion", ASKS), {"answers": {"Which?": "red"}}),
    ("HookRequest", call("look"), {"action": "block", "reason": "late"}),
]


@pytest.mark.req("wire:S109", "wire:S61")
@pytest.mark.parametrize("how", ["cancel", "input"])
@pytest.mark.parametrize(("kind", "says", "late"), ASKED, ids=[row[0] for row in ASKED])
async def test_what_is_open_when_a_turn_is_stopped_is_settled_and_a_late_answer_finds_nobody(
    connect: Connect, kind: str, says: list[Any], late: dict[str, Any], how: str
) -> None:
    shell, look = FakeTool("shell", effect=Effect.EXECUTE), FakeTool("look")
    model = GatedProvider(says, text("again"))
    peer = connect(model, [shell, look, AskUserTool()])
    await peer.initialize(**GREETING)
    await peer.begin()
    (*_, asked) = await peer.hears(kind)
    if how == "cancel":
        await peer.send(id="x", method="cancel")
        heard = await peer.reply("p")
    else:
        peer.hang_up()
        heard = await peer.rest()
    assert heard[-1]["result"] == {"status": "cancelled"}
    assert kinds(heard)[-2:] == ["TurnEnd", "reply"]
    # A tool's call, a question's and one that a hook holds up have failed; an approval was refused.
    assert [p["return_value"]["is_error"] for p in payloads(heard, "ToolResult")] == [True]
    refused = [p["response"] for p in payloads(heard, "ApprovalResponse")]
    assert refused == (["reject"] if kind == "ApprovalRequest" else [])
    assert [p["action"] for p in payloads(heard, "HookResolved")] == (["allow"] if kind == "HookRequest" else [])
    assert await peer.process.interactions.pending() == []
    decided = [e.payload for e in await peer.process.events() if isinstance(e.payload, InteractionResolved)]
    assert [(p.decision.verdict, p.decision.by, p.decision.answers) for p in decided] == [(Verdict.DENY, ENGINE, ())]
    if how == "cancel":
        await peer.answer(asked, **late)
        assert await peer.quiet()
        assert (await peer.prompt())[-1]["result"] == {"status": "finished"}
        assert len(model.requests) == 2
    assert (shell.count, look.count) == (0, 0)
