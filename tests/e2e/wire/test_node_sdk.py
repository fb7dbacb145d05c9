"""The published Node SDK, unmodified, with `quintet-kimi` where it expects its own server."""

from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.wire.node_sdk import Sdk, all_of, said, types
from tests.e2e.wire.test_kimi_scripts import call, client
from tests.fakes.model_server import ModelServer
from tests.fakes.wire_client import payloads
from tests.faults.processes import write_home

SAYS = 'scope: turn\nthink: "hm"\ntext: "one "\ntext: "“two”\\u2028"\ntext: "three"\nusage: in=30 out=2 cached=10\n'
HELD = 'scope: turn\ntext: "begin "\nuntil: {release}\ntext: "end"\n'
WRITES = 'scope: turn\ntool_call: Shell {"command": "echo hi >> made"}\n---\ntext: "done"\n'
ASKS = {"questions": [{"question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}]}
CONFIG = """
default_model = "fake/fake-model"
[providers.fake]
kind = "openai-chat"
base_url = "{url}"
api_key = "a-key-of-the-test"
max_retries = 0
"""


def sdk(tmp_path: Path, script: str = SAYS) -> Sdk:
    return Sdk(tmp_path, write_home(tmp_path / "home", script.replace("{release}", str(tmp_path / "release"))))


@pytest.mark.req("wire:S01", "wire:S21", "wire:S22", "wire:S24", "wire:S26", "wire:S105")
def test_a_session_is_opened_and_two_prompts_stream_their_answers(tmp_path: Path) -> None:
    came = sdk(tmp_path).play("talk", say=["first", [{"type": "text", "text": "second"}]])
    first, second = came["turns"]
    assert types(first) == ["TurnBegin", "StepBegin", *["ContentPart"] * 4, "StatusUpdate", "TurnEnd"]
    assert said(first) == said(second) == "one “two”\u2028three"
    assert all_of(first, "ContentPart")[0] == {"type": "think", "think": "hm", "encrypted": None}
    assert first["result"]["status"] == second["result"]["status"] == "finished"
    assert all_of(first, "TurnBegin") == [{"user_input": "first"}]
    assert all_of(second, "TurnBegin") == [{"user_input": [{"type": "text", "text": "second"}]}]
    usage = {"input_other": 20, "output": 2, "input_cache_read": 10, "input_cache_creation": 0}
    assert all_of(first, "StatusUpdate")[0]["token_usage"] == usage
    assert {"compact", "clear"} <= {command["name"] for command in came["slashCommands"]}
    assert uuid.UUID(came["sessionId"])
    assert (came["state"], came["closed"]) == ("idle", "closed")


def test_one_call_is_enough_for_one_question(tmp_path: Path) -> None:
    (turn,) = sdk(tmp_path).play("once", say=["hello"])["turns"]
    assert turn["result"]["status"] == "finished"
    assert said(turn) == "one “two”\u2028three"


def test_a_prompt_sent_during_a_turn_is_played_after_it(tmp_path: Path) -> None:
    (turn,) = sdk(tmp_path).play("queue")["turns"]
    assert all_of(turn, "TurnBegin") == [{"user_input": "one"}, {"user_input": "two"}]
    assert types(turn).count("TurnEnd") == 2


@pytest.mark.req("wire:S50", "wire:S51", "wire:S52", "wire:S53", "wire:S54", "wire:S63")
@pytest.mark.parametrize("answer", ["approve", "reject"])
def test_an_approval_is_asked_and_answered(tmp_path: Path, answer: str) -> None:
    client = sdk(tmp_path, WRITES)
    (turn,) = client.play("talk", say=["go"], answer=answer)["turns"]
    (asked,) = all_of(turn, "ApprovalRequest")
    assert asked["sender"] == "Shell"
    assert {"type": "shell", "language": "bash", "command": "echo hi >> made"} in asked["display"]
    assert all_of(turn, "ApprovalResponse") == [{"request_id": asked["id"], "response": answer}]
    (result,) = all_of(turn, "ToolResult")
    assert result["tool_call_id"] == asked["tool_call_id"]
    assert result["return_value"]["is_error"] is (answer == "reject")
    assert (client.work / "made").exists() is (answer == "approve")
    assert said(turn) == ("done" if answer == "approve" else "")
    assert turn["result"]["status"] == "finished"


@pytest.mark.req("wire:S60")
def test_with_its_yolo_mode_nothing_is_asked(tmp_path: Path) -> None:
    client = sdk(tmp_path, WRITES)
    (turn,) = client.play("talk", say=["go"], yolo=True)["turns"]
    assert not {"ApprovalRequest", "ApprovalResponse"} & set(types(turn))
    assert (client.work / "made").read_text() == "hi\n"


@pytest.mark.req("wire:S04", "wire:S65", "wire:S69")
@pytest.mark.parametrize(("thing", "output", "failed"), [("gold", "3 kg", False), ("air", "too light", True)])
def test_a_tool_of_the_program_is_called(tmp_path: Path, thing: str, output: str, failed: bool) -> None:
    call = json.dumps({"thing": thing})
    came = sdk(tmp_path, f'scope: turn\ntool_call: weigh {call}\n---\ntext: "ok"\n').play("tool")
    assert came["asked"] == [{"thing": thing}]
    (turn,) = came["turns"]
    (result,) = all_of(turn, "ToolResult")
    assert result["return_value"]["output"] == output
    assert result["return_value"]["is_error"] is failed
    assert "ApprovalRequest" not in types(turn)
    assert said(turn) == "ok"


@pytest.mark.req("wire:S75", "wire:S76")
def test_a_question_is_asked_and_its_answer_used(tmp_path: Path) -> None:
    script = f'scope: turn\ntool_call: AskUserQuestion {json.dumps(ASKS)}\n---\ntext: "ok"\n'
    (turn,) = sdk(tmp_path, script).play("question")["turns"]
    (asked,) = all_of(turn, "QuestionRequest")
    assert [option["label"] for option in asked["questions"][0]["options"]] == ["red", "blue"]
    (result,) = all_of(turn, "ToolResult")
    assert json.loads(result["return_value"]["output"]) == {"answers": {"Which?": "blue"}}
    assert said(turn) == "ok"


@pytest.mark.req("wire:S80", "wire:S81")
def test_a_running_turn_is_steered(tmp_path: Path) -> None:
    script = HELD + '---\ntext: " and left"\n'
    (turn,) = sdk(tmp_path, script).play("steer", release=str(tmp_path / "release"))["turns"]
    assert all_of(turn, "SteerInput") == [{"user_input": "look left"}]
    assert said(turn) == "begin end and left"
    assert turn["result"]["status"] == "finished"


@pytest.mark.req("wire:S82")
def test_plan_mode_is_switched_on_and_off(tmp_path: Path) -> None:
    client = sdk(tmp_path, WRITES.replace("scope: turn", "scope: thread", 1))
    (client.home / "model.script").write_text(
        'text: "hello"\n---\ntool_call: WriteFile {"path": "made", "content": "x"}\n---\ntext: "later"\n'
    )
    came = client.play("plan")
    assert (came["on"], came["kept"], came["off"]) == (True, True, False)
    planned = came["turns"][1]
    assert all_of(planned, "ToolResult")[0]["return_value"]["is_error"] is True
    assert "ApprovalRequest" not in types(planned)
    assert not (client.work / "made").exists()


@pytest.mark.req("wire:S32", "wire:S33", "wire:S34", "wire:S36")
def test_a_turn_is_interrupted_and_the_next_prompt_works(tmp_path: Path) -> None:
    stopped, after = sdk(tmp_path, HELD).play("interrupt", release=str(tmp_path / "release"))["turns"]
    assert stopped["result"] == {"status": "cancelled"}
    assert types(stopped)[-1] == "TurnEnd"
    assert said(stopped) == "begin "
    assert said(after) == "begin end"


@pytest.mark.req("wire:S99")
def test_a_program_that_closes_in_a_turn_is_not_left_waiting(tmp_path: Path) -> None:
    came = sdk(tmp_path, HELD).play("leave")
    (turn,) = came["turns"]
    assert turn["result"] == {"status": "cancelled"}
    assert types(turn)[-1] == "TurnEnd"


@pytest.mark.req("wire:S57")
def test_another_setting_starts_it_anew_and_the_session_goes_on(tmp_path: Path) -> None:
    client = sdk(tmp_path, WRITES)
    first, second = client.play("restart")["turns"]
    assert types(first).count("ApprovalRequest") == 1
    assert types(second).count("ApprovalRequest") == 0
    assert (client.work / "made").read_text() == "hi\nhi\n"


@pytest.mark.req("wire:S18", "wire:S83", "wire:S84", "wire:S90", "wire:S91")
def test_a_hook_of_the_program_blocks_and_the_turn_can_be_played_again(tmp_path: Path) -> None:
    client, session = sdk(tmp_path, WRITES), str(uuid.uuid4())
    came = client.play("hooks", matcher="Shell", session=session)
    assert came["greeting"]["hooks"]["configured"] == {"PreToolUse": 1}
    (asked,) = came["asked"]
    assert (asked["event"], asked["target"], asked["subscription_id"]) == ("PreToolUse", "Shell", "h")
    assert asked["input_data"]["session_id"] == session
    (turn,) = came["turns"]
    assert [e["type"] for e in turn["events"] if e["type"].startswith("Hook")] == ["HookTriggered", "HookResolved"]
    assert all_of(turn, "HookResolved")[0]["action"] == "block"
    (result,) = all_of(turn, "ToolResult")
    assert result["return_value"]["is_error"] is True
    assert not (client.work / "made").exists()
    assert came["replayed"]["result"]["events"] == len(came["replayed"]["events"])
    assert types(came["replayed"])[0] == "TurnBegin"
    assert said(came["replayed"]) == said(turn)


async def over_http(tmp_path: Path, *scenes: dict[str, Any], faults: tuple[str, ...] = (), scene: str = "talk") -> Any:
    """(what came of each scene, what the model was sent)."""
    async with ModelServer('text: "well said"\nusage: in=30 out=2\n---\ntext: "again"\n', faults=faults) as server:
        client = Sdk(tmp_path, write_home(tmp_path / "home", config=CONFIG.format(url=server.url)))
        came = [await asyncio.to_thread(lambda given=given: client.play(scene, **given)) for given in scenes]
        return came, [request.body for request in server.requests]


@pytest.mark.req("wire:S93")
async def test_a_session_is_resumed_by_its_id_and_the_model_knows_what_was_said(tmp_path: Path) -> None:
    session = str(uuid.uuid4())
    (first, second), sent = await over_http(
        tmp_path, {"say": ["remember seven"], "session": session}, {"say": ["and now?"], "session": session}
    )
    assert first["sessionId"] == second["sessionId"] == session
    assert said(second["turns"][0]) == "again"
    texts = json.dumps(sent[-1], ensure_ascii=False)
    assert "remember seven" in texts
    assert "well said" in texts
    assert "and now?" in texts


@pytest.mark.req("wire:S94", "wire:S95")
async def test_the_sdk_lists_reads_and_forks_the_sessions_it_finds_on_disk(tmp_path: Path) -> None:
    (came,), sent = await over_http(tmp_path, {"say": ["remember seven", "and eight"]}, scene="files")
    (listed,) = came["listed"]
    assert (listed["id"], listed["brief"]) == (came["sessionId"], "remember seven")
    assert [found["id"] for found in came["everywhere"]] == [came["sessionId"]]
    kinds = [event["type"] for event in came["events"]]
    assert (kinds.count("TurnBegin"), kinds.count("TurnEnd"), kinds[-1]) == (2, 2, "TurnEnd")
    assert came["events"] == came["inTurns"]  # there before the program was told that the turn is over
    assert said({"events": came["events"]}) == "".join(map(said, came["turns"][:2]))
    assert {found["id"] for found in came["after"]} == {came["sessionId"], came["fork"]["sessionId"]}
    begun = [event["payload"]["user_input"] for event in came["inFork"] if event["type"] == "TurnBegin"]
    assert begun == ["remember seven", "in the fork"]
    asked = json.dumps(sent[-1])
    assert "remember seven" in asked
    assert "in the fork" in asked
    assert came["deleted"] is True


def test_a_plan_is_put_forward_and_agreed_to_without_anything_the_sdk_cannot_read(tmp_path: Path) -> None:
    calls = ("EnterPlanMode {}", 'ExitPlanMode {"plan": "paint it"}')
    plans = "scope: turn\n" + "".join(f"tool_call: {call}\n---\n" for call in calls) + 'text: "done"\n'
    (turn,) = sdk(tmp_path, plans).play("talk", say=["go"])["turns"]
    (asked,) = all_of(turn, "ApprovalRequest")
    assert "paint it" in json.dumps(asked["display"])
    assert said(turn) == "done"


@pytest.mark.req("wire:N1", "wire:S94")
def test_the_sdk_forks_behind_a_turn_in_which_something_in_the_background_ended(tmp_path: Path) -> None:
    forking, session = Sdk(tmp_path, tmp_path / "home"), str(uuid.uuid4())
    forking.share = tmp_path / "home" / "share"
    background = call("Agent", {"description": "look", "prompt": "do it", "run_in_background": True})
    flags = ("--yolo", "--session")
    with client(tmp_path, background, *["text: fine"] * 3, "text: last", flags=(*flags, session)) as wire:
        wire.initialize()
        assert len(payloads(wire.prompt("first"), "Notification")) == 1
        wire.prompt("second")
    fork = forking.play("fork", session=session, turn=1)
    words = Path(fork["sessionDir"], "context.jsonl").read_text()
    assert '"second"' in words
    assert '"last"' in words
    with client(tmp_path, flags=(*flags, fork["sessionId"])) as wire:
        told = wire.call("replay")
        assert [begun["user_input"] for begun in payloads(told, "TurnBegin")] == ["first", "second"]


@pytest.mark.req("wire:S40", "wire:S41")
async def test_a_provider_that_refuses_is_the_sdks_provider_error(tmp_path: Path) -> None:
    (came,), _ = await over_http(tmp_path, {"say": ["go", "again"]}, faults=("401",))
    failed, fine = came["turns"]
    assert (failed["error"]["code"], failed["error"]["category"]) == ("CHAT_PROVIDER_ERROR", "cli")
    assert types(failed) == ["TurnBegin", "StepBegin", "StepInterrupted", "TurnEnd"]
    assert fine["result"]["status"] == "finished"
