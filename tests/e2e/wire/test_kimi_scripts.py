"""Kimi's scripted model and configuration with the real executable: names, texts and order as its clients compare."""

from __future__ import annotations

import json
import signal
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.wire_client import Message, WireClient, kinds, payloads, spoken

FINISHED = {"status": "finished"}
STOP = (
    "The tool call is rejected by the user. Stop what you are doing and wait for the user to tell you how to proceed."
)


def call(name: str, arguments: Any, call_id: str = "tc-1") -> str:
    return f"tool_call: {json.dumps({'id': call_id, 'name': name, 'arguments': json.dumps(arguments)})}"


def config_of(tmp_path: Path, *scripts: str, **more: Any) -> dict[str, Any]:
    (tmp_path / "scripts.json").write_text(json.dumps(scripts))
    model = {"provider": "scripted_provider", "model": "scripted_echo", "max_context_size": 100_000}
    env = {"KIMI_SCRIPTED_ECHO_SCRIPTS": str(tmp_path / "scripts.json")}
    return {
        "default_model": "scripted",
        "models": {"scripted": model | more.pop("model", {})},
        "providers": {"scripted_provider": {"type": "_scripted_echo", "base_url": "", "api_key": "", "env": env}},
        **more,
    }


def client(tmp_path: Path, *scripts: str, flags: tuple[str, ...] = (), **more: Any) -> WireClient:
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "config.json").write_text(json.dumps(config_of(tmp_path, *scripts, **more)))
    return WireClient(tmp_path / "home", "--config-file", str(tmp_path / "config.json"), *flags, work=tmp_path / "work")


def approve(request: Message) -> Message:
    return {"response": "approve"}


def told(heard: list[Message]) -> Any:
    """What the one result of a call says."""
    (result,) = payloads(heard, "ToolResult")
    return result["return_value"]


@pytest.mark.req("wire:S21", "wire:S25")
def test_a_script_is_an_answer_with_its_id_and_usage(tmp_path: Path) -> None:
    script = 'id: scripted-1\nusage: {"input_other": 5, "output": 2}\ntext: Hello wire'
    with client(tmp_path, script, flags=("--yolo",)) as wire:
        wire.initialize("1.1")
        heard = wire.prompt("hi")
        assert kinds(heard) == ["TurnBegin", "StepBegin", "ContentPart", "StatusUpdate", "TurnEnd", "reply"]
        (status,) = payloads(heard, "StatusUpdate")
        assert status["message_id"] == "scripted-1"
        assert status["context_usage"] == 5e-05
        assert (status["context_tokens"], status["max_context_tokens"]) == (5, 100_000)
        assert status["token_usage"] == {
            "input_other": 5,
            "output": 2,
            "input_cache_read": 0,
            "input_cache_creation": 0,
        }


@pytest.mark.req("wire:S50", "wire:S63", "wire:S52")
def test_a_command_is_asked_for_and_told_as_kimis_clients_know_it(tmp_path: Path) -> None:
    with client(tmp_path, f"text: step1\n{call('Shell', {'command': 'echo ok'})}", "text: done") as wire:
        heard = wire.prompt("run shell", answers=approve)
        (asked,) = payloads(heard, "ApprovalRequest")
        assert uuid.UUID(asked["id"])
        assert uuid.UUID(asked["source_id"])
        assert (asked["tool_call_id"], asked["sender"], asked["action"]) == ("tc-1", "Shell", "run command")
        assert asked["description"] == "Run command `echo ok`"
        assert asked["display"][0] == {"type": "shell", "language": "bash", "command": "echo ok"}
        assert payloads(heard, "ApprovalResponse") == [
            {"request_id": asked["id"], "response": "approve", "feedback": ""}
        ]
        (shown,) = payloads(heard, "ToolCall")
        assert shown["function"] == {"name": "Shell", "arguments": '{"command": "echo ok"}'}
        assert told(heard) == {
            "is_error": False,
            "output": "ok\n",
            "message": "Command executed successfully.",
            "display": [],
            "extras": None,
        }
        assert heard[-1]["result"] == FINISHED


@pytest.mark.req("wire:S53", "wire:S54", "wire:S55")
@pytest.mark.parametrize("feedback", ["", "not here"])
def test_a_rejected_call_is_told_in_the_words_that_are_compared(tmp_path: Path, feedback: str) -> None:
    with client(tmp_path, call("Shell", {"command": "echo ok"}), "text: done") as wire:
        heard = wire.prompt("go", answers=lambda _: {"response": "reject", "feedback": feedback})
        value = told(heard)
        assert (value["is_error"], value["output"]) == (True, "")
        if feedback:
            assert value["message"] == "The tool call is rejected by the user. User feedback: not here"
            assert value["display"] == [{"type": "brief", "text": "Rejected: not here"}]
            assert spoken(heard) == "done"
        else:
            assert value["message"] == STOP
            assert value["display"] == [{"type": "brief", "text": "Rejected by user"}]
            assert "done" not in spoken(heard)


@pytest.mark.req("wire:S50", "wire:S63")
@pytest.mark.parametrize(
    ("name", "arguments", "description", "old", "message"),
    [
        (
            "WriteFile",
            {"path": "file.txt", "content": "hi", "mode": "overwrite"},
            "Write file",
            "",
            "File successfully overwritten. Current size: 2 bytes.",
        ),
        (
            "StrReplaceFile",
            {"path": "file.txt", "edit": {"old": "hello", "new": "hi", "replace_all": False}},
            "Edit file",
            "hello",
            "File successfully edited. Applied 1 edit(s) with 1 total replacement(s).",
        ),
    ],
)
def test_a_change_is_asked_for_with_its_diff(
    tmp_path: Path, name: str, arguments: Any, description: str, old: str, message: str
) -> None:
    with client(tmp_path, call(name, arguments), "text: done") as wire:
        file = tmp_path / "work" / "file.txt"
        if old:
            file.write_text(old)
        heard = wire.prompt("go", answers=approve)
        (asked,) = payloads(heard, "ApprovalRequest")
        diff = {
            "type": "diff",
            "path": str(file),
            "old_text": old,
            "new_text": "hi",
            "old_start": 1,
            "new_start": 1,
            "is_summary": False,
        }
        assert (asked["sender"], asked["action"]) == (name, "edit file")
        assert asked["description"] == f"{description} `{file}`"
        assert asked["display"] == [diff]
        value = told(heard)
        assert (value["is_error"], value["output"], value["message"]) == (False, "", message)
        assert value["display"] == [diff]
        assert file.read_text() == "hi"


@pytest.mark.req("wire:S38", "wire:S39")
@pytest.mark.parametrize("how", ["flag", "file"])
def test_the_step_limit_comes_from_the_flag_or_from_kimis_file(tmp_path: Path, how: str) -> None:
    todo = call("SetTodoList", {"todos": [{"title": "x", "status": "pending"}]})
    flags = ("--max-steps-per-turn", "1") if how == "flag" else ()
    more = {"loop_control": {"max_steps_per_turn": 1}} if how == "file" else {}
    with client(tmp_path, f"text: start\n{todo}", flags=(*flags, "--yolo"), **more) as wire:
        heard = wire.prompt("run")
        assert heard[-1]["result"] == {"status": "max_steps_reached", "steps": 1}
        assert kinds(heard)[-2] == "TurnEnd"
        assert told(heard) == {
            "is_error": False,
            "output": "Todo list updated",
            "message": "Todo list updated",
            "display": [{"type": "todo", "items": [{"title": "x", "status": "pending"}]}],
            "extras": None,
        }


@pytest.mark.req("wire:S71")
def test_an_unknown_tool_is_not_found_and_the_turn_goes_on(tmp_path: Path) -> None:
    with client(tmp_path, call("SendDMail", {"message": "hi"}), "text: done", flags=("--yolo",)) as wire:
        heard = wire.prompt("go")
        words = "Tool `SendDMail` not found"
        assert told(heard) == {
            "is_error": True,
            "output": "",
            "message": words,
            "display": [{"type": "brief", "text": words}],
            "extras": None,
        }
        assert spoken(heard) == "done"


@pytest.mark.req("wire:S73")
def test_arguments_that_are_not_json_are_an_error_and_the_turn_goes_on(tmp_path: Path) -> None:
    broken = f"tool_call: {json.dumps({'id': 'tc-1', 'name': 'Shell', 'arguments': '{not json'})}"
    with client(tmp_path, broken, "text: done", flags=("--yolo",)) as wire:
        heard = wire.prompt("go")
        assert told(heard)["is_error"] is True
        assert spoken(heard) == "done"


@pytest.mark.req("wire:S66", "wire:T1")
def test_a_call_in_parts_is_passed_on_in_parts(tmp_path: Path) -> None:
    middle = '"todos":[{"title":"a","status":"done"}]'
    script = "\n".join(
        [
            'tool_call: {"id": "tc-1", "name": "SetTodoList", "arguments": null}',
            'tool_call_part: {"arguments_part": "{"}',
            f"tool_call_part: {json.dumps({'arguments_part': middle})}",
            'tool_call_part: {"arguments_part": "}"}',
            "tool_call_part:",
        ]
    )
    with client(tmp_path, script, "text: done", flags=("--yolo",)) as wire:
        heard = wire.prompt("go")
        (begun,) = payloads(heard, "ToolCall")
        assert begun["function"] == {"name": "SetTodoList", "arguments": None}
        assert [p["arguments_part"] for p in payloads(heard, "ToolCallPart")] == ["{", middle, "}", None]
        assert told(heard)["display"] == [{"type": "todo", "items": [{"title": "a", "status": "done"}]}]


QUESTION = {
    "question": "Which option?",
    "header": "Test",
    "options": [{"label": "Alpha", "description": "First"}, {"label": "Beta", "description": "Second"}],
    "multi_select": False,
}


@pytest.mark.req("wire:S76")
def test_an_answered_question_is_json(tmp_path: Path) -> None:
    with client(tmp_path, call("AskUserQuestion", {"questions": [QUESTION]}), "text: done") as wire:
        wire.initialize(capabilities={"supports_question": True})
        heard = wire.prompt("ask", answers=lambda _: {"answers": {"Which option?": "Alpha"}})
        (asked,) = payloads(heard, "QuestionRequest")
        assert asked["tool_call_id"] == "tc-1"
        assert asked["questions"][0]["question"] == "Which option?"
        value = told(heard)
        assert value["is_error"] is False
        assert json.loads(value["output"]) == {"answers": {"Which option?": "Alpha"}}


@pytest.mark.req("wire:S77")
def test_a_question_nobody_answers_is_json_with_a_note_and_no_error(tmp_path: Path) -> None:
    with client(tmp_path, call("AskUserQuestion", {"questions": [QUESTION]}), "text: done") as wire:
        wire.initialize(capabilities={"supports_question": True})
        wire.send(id="p", method="prompt", params={"user_input": "ask"})
        asked = wire.until(lambda m: m.get("method") == "request")[-1]
        wire.send(id=asked["id"], error={"code": -32000, "message": "User cancelled"})
        heard = wire.reply("p")
        value = told(heard)
        assert value["is_error"] is False
        assert json.loads(value["output"])["answers"] == {}
        assert "dismissed" in json.loads(value["output"])["note"]
        assert spoken(heard) == "done"


@pytest.mark.req("wire:S75")
@pytest.mark.parametrize("name", ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"])
def test_what_a_client_cannot_do_is_not_there_and_called_anyway_says_so(tmp_path: Path, name: str) -> None:
    with client(tmp_path, call(name, {"questions": [QUESTION]}), "text: done", flags=("--yolo",)) as wire:
        wire.initialize(capabilities={"supports_question": False})
        heard = wire.prompt("ask")
        value = told(heard)
        assert value["is_error"] is True
        assert "does not support" in value["message"]
        assert "Do NOT call this tool again" in value["message"]
        assert "request" not in [m.get("method") for m in heard]
        assert spoken(heard) == "done"


@pytest.mark.req("wire:S47")
def test_a_configuration_without_a_usable_model_is_said_at_the_prompt(tmp_path: Path) -> None:
    nothing = {"providers": {"p": {"type": "kimi", "base_url": "", "api_key": ""}}}
    nothing |= {"default_model": "m", "models": {"m": {"provider": "p", "model": ""}}}  # type: ignore[dict-item]
    with client(tmp_path, "text: ok", flags=("--verbose",), **nothing) as wire:
        assert "result" in wire.initialize()
        heard = wire.prompt("hi")
        assert kinds(heard) == ["TurnBegin", "TurnEnd", "reply"]
        assert heard[-1]["error"] == {"code": -32001, "message": "LLM is not set", "data": None}
    log = (tmp_path / "home" / "quintet.log").read_text()
    assert "No model is set: Kimi's configuration says too little of 'm'" in log
    assert "the prompt has failed: " in log


@pytest.mark.req("wire:S48")
def test_an_image_for_a_model_that_takes_none_names_the_capability(tmp_path: Path) -> None:
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    with client(tmp_path, "text: ok", "text: seen") as wire:
        heard = wire.prompt(parts)
        assert kinds(heard) == ["TurnBegin", "TurnEnd", "reply"]
        words = "LLM model 'scripted_echo' does not support required capability: image_in."
        assert heard[-1]["error"] == {"code": -32002, "message": words, "data": None}
    with client(tmp_path, "text: seen", model={"capabilities": ["image_in"]}) as wire:
        assert spoken(wire.prompt(parts)) == "seen"


@pytest.mark.req("wire:S48")
def test_a_kind_of_provider_we_do_not_speak_is_not_supported(tmp_path: Path) -> None:
    providers = {"scripted_provider": {"type": "google_genai", "base_url": "https://x", "api_key": "k"}}
    with client(tmp_path, "text: ok", providers=providers) as wire:
        heard = wire.prompt("hi")
        assert kinds(heard) == ["TurnBegin", "TurnEnd", "reply"]
        assert heard[-1]["error"]["code"] == -32002
        assert "google_genai" in heard[-1]["error"]["message"]


@pytest.mark.req("wire:S46")
def test_a_bad_script_is_the_models_error_and_the_next_prompt_works(tmp_path: Path) -> None:
    with client(tmp_path, "bad line without colon", "text: better") as wire:
        heard = wire.prompt("hi")
        words = "Invalid echo DSL at line 1: 'bad line without colon'"
        assert heard[-1]["error"] == {"code": -32003, "message": words, "data": None}
        assert kinds(heard)[-3:] == ["StepInterrupted", "TurnEnd", "reply"]
        assert spoken(wire.prompt("again")) == "better"


@pytest.mark.req("wire:S43", "wire:S44")
def test_a_simulated_failure_is_tried_again(tmp_path: Path) -> None:
    with client(tmp_path, "error: 429 slow down", "text: there") as wire:
        wire.initialize("1.10")
        heard = wire.prompt("hi")
        (retry,) = payloads(heard, "StepRetry")
        assert (retry["n"], retry["next_attempt"], retry["status_code"]) == (1, 2, 429)
        assert spoken(heard) == "there"


def test_the_model_flag_names_one_of_kimis_models_and_config_may_be_a_text(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    a, b = config_of(first, "text: from A"), config_of(second, "text: from B")
    both = a | {
        "models": {"a": {**a["models"]["scripted"]}, "b": {**b["models"]["scripted"], "provider": "pb"}},
        "providers": a["providers"] | {"pb": b["providers"]["scripted_provider"]},
    }
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "home").mkdir()
    with WireClient(tmp_path / "home", "--config", json.dumps(both), "--model", "b", work=work) as wire:
        assert spoken(wire.prompt("hi")) == "from B"


def test_flags_are_taken_in_any_order_and_bad_configuration_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    flags = ("--no-thinking", "--mcp-config", "{}", "--skills-dir", str(tmp_path), "--config-file", "nowhere.json")
    with WireClient(tmp_path / "home", *flags, work=tmp_path / "work") as wire:
        assert wire.rest() == []
        code, words = wire.ended()
        assert code == 2
        assert words.startswith("quintet: nowhere.json cannot be read")
        assert words.count("\n") == 1


def test_a_key_of_kimis_file_reaches_neither_the_journal_nor_the_client(tmp_path: Path) -> None:
    secret = "kimi-secret-0123456789"
    more = config_of(tmp_path, f"text: it is {secret}")
    more["providers"]["scripted_provider"]["api_key"] = secret
    with client(tmp_path, f"text: it is {secret}", providers=more["providers"]) as wire:
        assert secret not in json.dumps(wire.prompt("hi"))


def test_the_offline_models_calls_work_under_kimis_names(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "work" / "notes.txt").write_text("remember\n")
    with WireClient(tmp_path / "home", work=tmp_path / "work", QUINTET_MODEL="offline") as wire:
        heard = wire.prompt("read notes.txt")
        assert payloads(heard, "ToolCall")[0]["function"]["name"] == "ReadFile"
        assert told(heard)["output"] == "remember\n"
        assert "remember" in spoken(heard)


def test_an_agent_file_takes_tools_away(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text('version: 1\nagent:\n  extend: default\n  exclude_tools:\n    - "kimi_cli.tools.shell:Shell"\n')
    flags = ("--yolo", "--agent-file", str(file))
    with client(tmp_path, call("Shell", {"command": "echo hi"}), "text: done", flags=flags) as wire:
        heard = wire.prompt("go")
        assert told(heard)["message"] == "Tool `Shell` not found"
        assert spoken(heard) == "done"


@pytest.mark.req("wire:S28")
def test_a_skill_of_a_given_directory_is_a_command_under_its_own_name(tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "test-skill"
    skill.mkdir(parents=True)
    words = "---\nname: test\ndescription: Test skill\n---\n\nUse this skill."
    (skill / "SKILL.md").write_text(f"{words}\n")
    with client(tmp_path, "text: skill ok", flags=("--skills-dir", str(tmp_path / "skills"), "--session", "s")) as wire:
        listed = wire.initialize()["result"]["slash_commands"]
        assert {"name": "skill:test", "description": "Test skill", "aliases": []} in listed
        heard = wire.prompt("/skill:test at once")
        assert kinds(heard) == ["TurnBegin", "StepBegin", "ContentPart", "StatusUpdate", "TurnEnd", "reply"]
        assert payloads(heard, "TurnBegin")[0]["user_input"] == "/skill:test at once"
    (context,) = (tmp_path / "home" / "share" / "sessions").glob("*/s/context.jsonl")
    rows = [json.loads(line) for line in context.read_text().splitlines()]
    assert [row["content"] for row in rows if row["role"] == "user"] == [f"{words}\n\nUser request:\nat once"]


@pytest.mark.req("wire:S18", "wire:S83")
def test_hooks_of_kimis_configuration_are_run_and_know_kimis_names(tmp_path: Path) -> None:
    hooks = [
        {"event": "PreToolUse", "matcher": "^Shell$", "command": "cat > told.json; echo not now >&2; exit 2"},
        {"event": "PreToolUse", "matcher": "^shell$", "command": "touch wrong"},
        {"event": "Lunch", "command": "true"},
    ]
    with client(
        tmp_path, call("Shell", {"command": "touch made"}), "text: done", flags=("--yolo",), hooks=hooks
    ) as wire:
        assert wire.initialize()["result"]["hooks"]["configured"] == {"PreToolUse": 2}
        heard = wire.prompt("go")
        value = told(heard)
        assert value["is_error"] is True
        assert "not now" in value["message"]
        assert payloads(heard, "HookResolved")[0]["action"] == "block"
    work = tmp_path / "work"
    given = json.loads((work / "told.json").read_text())
    assert (given["tool_name"], given["tool_input"]) == ("Shell", {"command": "touch made"})
    assert not (work / "made").exists()
    assert not (work / "wrong").exists()
    assert "no event 'Lunch'" in (tmp_path / "home" / "quintet.log").read_text()


@pytest.mark.req("wire:S40")
@pytest.mark.parametrize(("status", "login", "code"), [(401, True, -32004), (401, False, -32003), (403, True, -32003)])
def test_a_login_that_is_not_accepted_has_a_code_of_its_own(
    tmp_path: Path, status: int, login: bool, code: int
) -> None:
    more = config_of(tmp_path)
    if login:
        more["providers"]["scripted_provider"]["oauth"] = {"storage": "file", "key": "oauth/kimi-code"}
    with client(tmp_path, f"error: {status} no", "text: ok", providers=more["providers"]) as wire:
        failed = wire.prompt("hi")
        assert kinds(failed)[-3:] == ["StepInterrupted", "TurnEnd", "reply"]
        assert (failed[-1]["error"]["code"], failed[-1]["error"]["data"]) == (code, None)
        assert spoken(wire.prompt("again")) == "ok"


def test_a_login_of_kimis_own_is_told_in_the_log(tmp_path: Path) -> None:
    more = config_of(tmp_path, "text: ok")
    more["providers"]["scripted_provider"]["oauth"] = {"storage": "file", "key": "oauth/kimi-code"}
    with client(tmp_path, "text: ok", providers=more["providers"]) as wire:
        assert spoken(wire.prompt("hi")) == "ok"
    log = (tmp_path / "home" / "quintet.log").read_text()
    assert "scripted_provider logs in with OAuth" in log
    assert "KIMI_API_KEY" in log


def error(code: int, message: str) -> dict[str, Any]:
    return {"code": code, "message": message, "data": None}


@pytest.mark.req("wire:S06", "wire:S07", "wire:S09", "wire:S11", "wire:S12", "wire:S13", "wire:S29", "wire:S101")
def test_errors_are_the_whole_objects_that_clients_compare(tmp_path: Path) -> None:
    script = f"text: step1\n{call('Shell', {'command': 'echo hi'})}"
    with client(tmp_path, script, "text: done") as wire:
        for line, answer in (
            (b"{not-json}", error(-32700, "Invalid JSON format")),
            (b'{"jsonrpc": "2.1", "id": "bad"}', error(-32600, "Invalid request")),
        ):
            wire.raw(line)
            assert wire.next() == {"jsonrpc": "2.0", "id": None, "error": answer}
        idle = "No agent turn is in progress"
        for message, answer in (
            ({"method": "nope"}, error(-32601, "Unexpected method received: nope")),
            ({"method": "prompt", "params": {}}, error(-32602, "Invalid parameters for method `prompt`")),
            ({"method": "cancel"}, error(-32000, idle)),
            ({"method": "steer", "params": {"user_input": "do something"}}, error(-32000, idle)),
        ):
            wire.send(id="bad", **message)
            assert wire.next() == {"jsonrpc": "2.0", "id": "bad", "error": answer}
        assert wire.initialize("1.1", capabilities={"supports_question": True})["result"]["capabilities"] == {
            "supports_question": True
        }
        wire.send(id="p", method="prompt", params={"user_input": "line1\nline2"})
        before = wire.until(lambda m: m.get("method") == "request")
        assert payloads(before, "TurnBegin") == [{"user_input": "line1\nline2"}]
        wire.send(id="second", method="prompt", params={"user_input": "second"})
        refused = wire.reply("second")[-1]
        assert refused["error"] == error(-32000, "An agent turn is already in progress")
        wire.send(id="steer", method="steer", params={"user_input": "also do this"})
        assert wire.reply("steer")[-1]["result"] == {"status": "steered"}
        wire.answer(before[-1], response="approve")
        heard = wire.reply("p")
        assert heard[-1]["result"] == FINISHED
        assert payloads(heard, "SteerInput") == [{"user_input": "also do this"}]
        wire.signal(signal.SIGINT)
        assert wire.rest() == []
        assert wire.ended() == (0, "")


@pytest.mark.req("wire:S40", "wire:S41", "wire:S42", "wire:S46")
def test_simulated_failures_of_the_provider_are_its_errors_and_the_next_prompt_works(tmp_path: Path) -> None:
    failures = ("error: 401 Token expired", "error: connection Server unreachable", "error: 500 Internal server error")
    once = {"max_retries_per_step": 1}
    with client(tmp_path, *failures, "text: better", flags=("--yolo",), loop_control=once) as wire:
        for _ in failures:
            heard = wire.prompt("hello")
            assert kinds(heard) == ["TurnBegin", "StepBegin", "StepInterrupted", "TurnEnd", "reply"]
            assert heard[-1]["error"]["code"] == -32003
        assert spoken(wire.prompt("hello")) == "better"


@pytest.mark.req("wire:S28", "wire:S82")
def test_a_conversation_is_compacted_cleared_and_planned_as_clients_compare_it(tmp_path: Path) -> None:
    said = (
        "text: hello\nusage: input_other=10 output=5",
        f"text: {'a long answer ' * 90}",
        "text: summary\nusage: input_other=50 output=20",
        "text: planned",
    )
    nothing = dict.fromkeys(
        (
            "context_usage",
            "context_tokens",
            "max_context_tokens",
            "token_usage",
            "message_id",
            "plan_mode",
            "mcp_status",
        )
    )
    with client(tmp_path, *said, flags=("--yolo",)) as wire:
        wire.initialize("1.1", capabilities={"supports_plan_mode": True})
        wire.prompt("hi")
        heard = wire.prompt("/compact")
        told_in_order = ["TurnBegin", "CompactionBegin", "CompactionEnd", "ContentPart", "StatusUpdate", "TurnEnd"]
        assert kinds(heard) == [*told_in_order, "reply"]
        assert spoken(heard) == "The context has been compacted."
        # Nothing but "hi" and "hello": no model is asked for a summary of so little.
        few = {"context_usage": 1e-05, "context_tokens": 1, "max_context_tokens": 100_000}
        assert payloads(heard, "StatusUpdate") == [nothing | few]
        wire.prompt("at length")
        heard = wire.prompt("/compact")
        assert kinds(heard) == [*told_in_order, "reply"]
        (status,) = payloads(heard, "StatusUpdate")
        assert status["context_usage"] > 0
        assert (status["token_usage"], status["plan_mode"]) == (None, None)
        heard = wire.prompt("/clear")
        assert kinds(heard) == ["TurnBegin", "ContentPart", "StatusUpdate", "TurnEnd", "reply"]
        assert spoken(heard) == "The context has been cleared."
        cleared = {"context_usage": 0.0, "context_tokens": 0, "max_context_tokens": 100_000}
        assert payloads(heard, "StatusUpdate") == [nothing | cleared]
        event, answer = wire.call("set_plan_mode", enabled=True)
        assert event["params"] == {"type": "StatusUpdate", "payload": nothing | {"plan_mode": True}}
        assert answer["result"] == {"status": "ok", "plan_mode": True}
        assert payloads(wire.prompt("hello"), "StatusUpdate") == [nothing | {"plan_mode": True}]
