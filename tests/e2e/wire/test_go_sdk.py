"""A client as strict as the Go SDK, which was published at 1.2: it asks `info` first, compares versions as texts, and
gives up at the first message it does not know."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_subagents import ENV, family
from tests.fakes.model_server import ModelServer
from tests.fakes.wire_client import KIMI, Message, WireClient
from tests.faults.processes import environment, write_home

EVENTS = {
    *("TurnBegin", "TurnEnd", "StepBegin", "StepInterrupted", "CompactionBegin", "CompactionEnd", "StatusUpdate"),
    *("ContentPart", "ToolCall", "ToolCallPart", "ToolResult", "SubagentEvent"),
    *("ApprovalResponse", "ApprovalRequestResolved"),
}
REQUESTS = {"ApprovalRequest", "ToolCallRequest"}
RUNS = 'tool_call: Shell {"command": "echo hi > made"}\n'


class Unknown(Exception):
    """The receive loop has ended: nothing more would be heard in this session."""


def asked_before() -> str:
    """The version it will declare: what `info` says, out of stdout and stderr read as one."""
    done = subprocess.run(
        [KIMI, "info", "--json"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(), timeout=20
    )
    version = json.loads(done.stdout)["wire_protocol_version"]
    assert isinstance(version, str)
    return version


class Turn:
    """What one prompt brought, read as strictly as it is read there."""

    def __init__(self, version: str) -> None:
        self._must_end = version >= "1.2"  # as texts: "1.10" is before "1.2"
        self.heard: list[Message] = []

    def take(self, message: Message) -> None:
        if message.get("method") not in ("event", "request"):
            return
        kind = message["params"]["type"]
        known = EVENTS if message["method"] == "event" else REQUESTS
        if kind not in known:
            raise Unknown(kind)
        assert (kind == "TurnBegin") == (not self.heard), "a turn begins once, with its first event"
        if kind == "SubagentEvent":
            payload = message["params"]["payload"]
            assert isinstance(payload["task_tool_call_id"], str)
            if payload["event"]["type"] not in EVENTS | REQUESTS:
                raise Unknown(payload["event"]["type"])
        self.heard.append(message["params"])

    def ended(self) -> list[str]:
        kinds = [params["type"] for params in self.heard]
        assert not self._must_end or kinds[-1] == "TurnEnd", "unexpected EOF"
        return kinds


def play(wire: WireClient, version: str, words: str = "go") -> Turn:
    turn = Turn(version)
    for message in wire.prompt(words, answers=lambda request: {"response": "approve"}):
        turn.take(message)
    assert message["result"] == {"status": "finished"}
    return turn


def opened(home: Path, work: Path, *flags: str, **env: str) -> tuple[WireClient, str]:
    work.mkdir(exist_ok=True)
    return WireClient(home, *flags, work=work, **env), asked_before()


def greet(wire: WireClient, version: str, **more: Any) -> None:
    tools = wire.initialize(version, **more)["result"].get("external_tools", {"rejected": []})
    assert tools["rejected"] == []


@pytest.mark.req("wire:S19", "wire:S22", "wire:S100")
def test_what_info_reports_is_a_version_for_which_a_turn_is_read_to_its_end(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", f'scope: turn\nthink: "hm"\ntext: "a "\n{RUNS}---\ntext: "b"\n')
    wire, version = opened(home, tmp_path / "work")
    assert "1.2" <= version < "1.3"  # the newest it knows all messages of
    with wire:
        greet(wire, version)
        for _ in range(2):
            kinds = play(wire, version).ended()
            assert kinds.count("TurnBegin") == kinds.count("TurnEnd") == 1
            assert {"ApprovalRequest", "ApprovalResponse", "ToolResult"} <= set(kinds)
    assert (tmp_path / "work" / "made").read_text() == "hi\n"


@pytest.mark.req("wire:S43", "wire:S44")
async def test_a_retry_and_what_hooks_do_are_kept_from_it(tmp_path: Path) -> None:
    async with ModelServer('text: "well"\n', faults=("429-seconds=0",)) as server:
        provider = {"type": "kimi", "base_url": server.url, "api_key": "k"}
        model = {"provider": "p", "model": "m", "max_context_size": 10_000}
        config = json.dumps({"default_model": "m", "models": {"m": model}, "providers": {"p": provider}})
        home = write_home(tmp_path / "home", config='[[hooks]]\nevent = "UserPromptSubmit"\ncommand = "true"\n')
        wire, version = opened(home, tmp_path / "work", "--config", config, "--auto-approve", "--no-thinking")

        def speak() -> list[str]:
            with wire:
                greet(wire, version)
                return play(wire, version).ended()

        kinds = await asyncio.to_thread(speak)
        assert len(server.requests) == 2
    assert kinds == ["TurnBegin", "StepBegin", "ContentPart", "StatusUpdate", "TurnEnd"]


@pytest.mark.req("wire:S65")
def test_its_own_tools_are_called(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", 'scope: turn\ntool_call: weigh {"thing": "gold"}\n---\ntext: "ok"\n')
    wire, version = opened(home, tmp_path / "work")
    returned = {"is_error": False, "output": "3 kg", "message": "", "display": []}
    with wire:
        greet(wire, version, external_tools=[{"name": "weigh", "description": "d", "parameters": {"type": "object"}}])
        turn = Turn(version)
        wire.send(id="p", method="prompt", params={"user_input": "go"})
        for message in wire.until(lambda m: "ToolCallRequest" in str(m)):
            turn.take(message)
        wire.send(id=message["id"], result={"tool_call_id": message["id"], "return_value": returned})
        for message in wire.reply("p"):
            turn.take(message)
        assert "ToolCallRequest" in turn.ended()


def test_a_subagent_is_read_by_the_old_name_of_its_call(tmp_path: Path) -> None:
    call = json.dumps({"description": "d", "prompt": "do it", "subagent_type": "worker"})
    with family(tmp_path, boss=f'tool_call: Agent {call}\n---\ntext: "ok"\n', worker=f'{RUNS}---\ntext: "w"\n') as home:
        wire, version = opened(home, tmp_path / "work", **ENV)
        with wire:
            greet(wire, version)
            turn = play(wire, version)
    turn.ended()
    (called,) = [p["payload"]["id"] for p in turn.heard if p["type"] == "ToolCall"]
    within = [p["payload"] for p in turn.heard if p["type"] == "SubagentEvent"]
    assert {payload["task_tool_call_id"] for payload in within} == {called}
    assert {payload["parent_tool_call_id"] for payload in within} == {called}
    assert {"ContentPart", "ToolCall", "ToolResult"} <= {payload["event"]["type"] for payload in within}


def test_the_client_of_this_test_gives_up_at_what_it_does_not_know(tmp_path: Path) -> None:
    """The same turn, told to a client of today: the strict one would end there."""
    home = write_home(tmp_path / "home", 'scope: turn\ntext: "a"\n')
    wire, _ = opened(home, tmp_path / "work", "--every-event")
    hook = {"id": "h", "event": "UserPromptSubmit"}
    with wire:
        wire.initialize("1.2", hooks=[hook])
        with pytest.raises(Unknown):
            play(wire, "1.2")
