"""A whole turn, a cancel, an approval and each way to end, with the real executable on real pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.wire_client import KIMI, WireClient, kinds, payloads, spoken
from tests.faults.processes import QUINTET, environment, living_with, quintet, wait_until, write_home

SAYS = 'scope: turn\nthink: "hm"\ntext: "one "\ntext: "two"\nusage: in=30 out=2 cached=10\n'
HOLDS = 'scope: turn\ntext: "begin "\nuntil: never\n'
ASKS = 'scope: turn\ntool_call: Shell {"command": "echo hi > made"}\n---\ntext: "end"\n'


def client(tmp_path: Path, script: str = SAYS, *flags: str, **more: str) -> WireClient:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    return WireClient(write_home(tmp_path / "home", script), *flags, work=work, **more)


@pytest.mark.req("wire:S01", "wire:S02", "wire:S03", "wire:S18", "wire:S20", "wire:S21", "wire:S22", "wire:S97")
def test_a_client_greets_prompts_and_leaves(tmp_path: Path) -> None:
    with client(tmp_path) as wire:
        greeting = wire.initialize()["result"]
        assert greeting["protocol_version"] == "1.10"
        assert set(greeting["server"]) == {"name", "version"}
        assert isinstance(greeting["slash_commands"], list)
        assert "external_tools" not in greeting
        heard = wire.prompt()
        assert kinds(heard) == [
            "TurnBegin",
            "StepBegin",
            "ContentPart",
            "ContentPart",
            "ContentPart",
            "StatusUpdate",
            "TurnEnd",
            "reply",
        ]
        assert spoken(heard) == "one two"
        assert heard[-1] == {"jsonrpc": "2.0", "id": "p", "result": {"status": "finished"}}
        wire.hang_up()
        assert wire.rest() == []
        assert wire.ended(5) == (0, "")


@pytest.mark.req("wire:S32", "wire:S33", "wire:S34", "wire:S35", "wire:S36", "wire:S110")
def test_a_cancel_is_answered_first_and_the_next_prompt_works_without_what_the_first_was_steered_with(
    tmp_path: Path,
) -> None:
    with client(tmp_path, HOLDS) as wire:
        wire.send(id="p", method="prompt", params={"user_input": "go"})
        wire.until(lambda m: "ContentPart" in str(m))
        assert wire.call("steer", user_input="never mind")[-1]["result"] == {"status": "steered"}
        wire.send(id="x", method="cancel")
        heard = wire.reply("p")
        assert [m.get("id") or m["params"]["type"] for m in heard] == ["x", "TurnEnd", "p"]
        assert heard[0]["result"] == {}
        assert heard[-1]["result"] == {"status": "cancelled"}
        (context,) = (tmp_path / "home" / "share" / "sessions").glob("*/*/context.jsonl")
        assert '"go"' in (given := context.read_text())  # what the model reads from now on
        assert "never mind" not in given
        wire.send(id="q", method="prompt", params={"user_input": "again"})
        assert kinds(wire.until(lambda m: "ContentPart" in str(m)))[0] == "TurnBegin"


@pytest.mark.req("wire:S50", "wire:S51", "wire:S52", "wire:S62", "wire:S104")
def test_an_approval_is_asked_also_without_a_greeting_and_the_command_runs(tmp_path: Path) -> None:
    with client(tmp_path, ASKS) as wire:
        heard = wire.prompt(answers=lambda request: {"response": "approve"})
        (asked,) = [m for m in heard if m.get("method") == "request"]
        payload = asked["params"]["payload"]
        assert asked["id"] == payload["id"]
        assert payload["tool_call_id"] == payloads(heard, "ToolCall")[0]["id"]
        order = [k for k in kinds(heard) if k not in ("ContentPart", "StatusUpdate", "ToolCallPart")]
        assert order == [
            *("TurnBegin", "StepBegin", "ToolCall", "ApprovalRequest", "ApprovalResponse", "ToolResult"),
            *("StepBegin", "TurnEnd", "reply"),
        ]
        assert (tmp_path / "work" / "made").read_text() == "hi\n"


@pytest.mark.req("wire:S98", "wire:S99", "wire:S101")
@pytest.mark.parametrize("how", ["eof", "SIGTERM", "SIGINT"])
def test_however_it_is_ended_a_running_turn_ends_and_its_prompt_is_answered(tmp_path: Path, how: str) -> None:
    with client(tmp_path, HOLDS) as wire:
        wire.send(id="p", method="prompt", params={"user_input": "go"})
        wire.until(lambda m: "ContentPart" in str(m))
        if how == "eof":
            wire.hang_up()
        else:
            wire.signal(signal.Signals[how])
        heard = wire.rest()
        assert kinds(heard) == ["TurnEnd", "reply"]
        assert heard[-1]["result"] == {"status": "cancelled"}
        assert wire.ended(5 if how == "eof" else 3) == (0, "")


@pytest.mark.req("wire:S100")
def test_info_is_one_object_and_nothing_else() -> None:
    done = subprocess.run([KIMI, "info", "--json"], capture_output=True, timeout=10, env=environment(), check=True)
    facts = json.loads(done.stdout)
    assert done.stderr == b""
    assert {"kimi_cli_version", "agent_spec_versions", "wire_protocol_version", "python_version"} <= set(facts)
    assert tuple(map(int, facts["kimi_cli_version"].split("."))) >= (0, 82)
    assert facts["wire_protocol_version"] == "1.2"
    assert facts["python_version"] == ".".join(map(str, sys.version_info[:3]))


def test_the_rows_are_listed(tmp_path: Path) -> None:
    argv = [QUINTET, "methods", "wire", "--home", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, timeout=10, env=environment(), text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()][:3] == ["initialize", "prompt", "cancel"]


@pytest.mark.req("wire:S99")
def test_a_signal_while_a_command_runs_ends_the_command_too(tmp_path: Path) -> None:
    script = 'scope: turn\ntool_call: shell {"command": "echo $$ > pid; sleep 31415"}\n'
    with client(tmp_path, script, "--yolo") as wire:
        wire.send(id="p", method="prompt", params={"user_input": "go"})
        wire.until(lambda m: "ToolCall" in str(m))
        wait_until(lambda: (tmp_path / "work" / "pid").exists(), 20)
        wire.signal(signal.SIGTERM)
        heard = wire.rest()
        assert kinds(heard)[-2:] == ["TurnEnd", "reply"]
        assert heard[-1]["result"] == {"status": "cancelled"}
        assert wire.ended(3) == (0, "")
    assert not living_with("sleep 31415")


@pytest.mark.req("wire:S02")
def test_a_home_that_cannot_be_used_is_one_line_on_stderr_and_nothing_on_stdout(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", config="nonsense = true\n")
    with WireClient(home, work=tmp_path) as wire:
        assert wire.rest() == []
        code, said = wire.ended(5)
    assert code == 2
    assert len(said.splitlines()) == 1
    assert "config.toml" in said


@pytest.mark.parametrize("program", [(KIMI, "--wire"), (QUINTET, "kward")])
def test_a_start_that_fails_says_why_also_to_a_client_that_reads_both_streams_as_one(
    tmp_path: Path, program: tuple[str, ...]
) -> None:
    home = write_home(tmp_path / "home", config="nonsense = true\n")
    argv = [*program, "--home", str(home)]
    done = subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, env=environment(), check=False
    )
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 1
    assert b"config.toml" in done.stdout


@pytest.mark.req("wire:S02")
def test_with_both_streams_as_one_a_running_server_writes_nothing_but_the_protocol(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", SAYS)
    argv = [KIMI, "--wire", "--debug", "--verbose", "--home", str(home), "--work-dir", str(tmp_path)]
    asked = b'{"jsonrpc":"2.0","id":"1","method":"cancel"}\n'
    done = subprocess.run(
        argv, input=asked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20, env=environment(), check=False
    )
    assert done.returncode == 0
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["1"]
    assert "cancel has come" in (home / "quintet.log").read_text()


@pytest.mark.req("security:S29")
def test_a_directory_of_the_command_line_is_worked_in_and_shown_to_the_person(tmp_path: Path) -> None:
    (beside := tmp_path / "beside").mkdir()
    script = f'scope: turn\ntool_call: Shell {{"command": "echo hi > {beside}/made"}}\n---\ntext: "end"\n'
    with client(tmp_path, script, "--yolo", "--add-dir", str(beside)) as wire:
        wire.prompt()
    assert (beside / "made").read_text() == "hi\n"
    home = tmp_path / "home"
    (thread,) = quintet("threads", "list", "--json", home=home).lines
    assert f"works in {beside}, too" in quintet("threads", "show", thread["id"], home=home).out


def test_plan_begins_and_goes_on_in_plan_mode(tmp_path: Path) -> None:
    for flags in (("--session", "new", "--plan"), ("--session", "s1"), ("--plan", "-r", "s1"), ("-S", "s1")):
        with client(tmp_path, SAYS, *flags) as wire:
            (status,) = payloads(wire.prompt(), "StatusUpdate")
            assert status["plan_mode"] is (flags != ("--session", "s1"))


@pytest.mark.req("wire:S02")
def test_a_model_that_prints_and_a_command_that_prints_never_reach_stdout(tmp_path: Path) -> None:
    """Every line is parsed by the client, so whatever else came would fail it."""
    script = (
        'scope: turn\ntool_call: shell {"command": "echo out; echo err >&2; echo tty > /dev/stdout"}\n---\ntext: end\n'
    )
    with client(tmp_path, script, "--yolo") as wire:
        (result,) = payloads(wire.prompt(), "ToolResult")
        assert "out" in result["return_value"]["output"]
        wire.hang_up()
        assert wire.rest() == []
        assert wire.ended(5) == (0, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--wire", "--nonsense"], b"--nonsense"),
        ([], b"--wire"),
        (["login", "--json"], b"no login"),
        (["logout"], b"no login"),
        (["mcp", "test", "x"], b"no MCP server"),
        (["--every-event", "mcp", "list"], b"no MCP server"),
        (["--wire", "--work-dir", "/none/such"], b"with --work-dir."),
        (["--wire", "--session"], b"without an id"),
        (["--wire", "--continue"], b"Start without --continue"),
        (["--wire", "--add-dir", "/etc"], b"cannot be added"),
        (["--wire", "--add-dir", "/none/such"], b"is no directory"),
        (["--wire", "--add-dir="], b"--add-dir is empty"),
        (["--skills-dir=", "--wire"], b"--skills-dir is empty"),
        (["--wire", "--max-ralph-iterations", "x"], b"must be a whole number, -1 or more"),
    ],
)
def test_what_is_no_way_to_start_it_says_so(words: list[str], said: bytes, tmp_path: Path) -> None:
    env = environment(QUINTET_HOME=str(tmp_path), KIMI_SHARE_DIR=str(tmp_path / "share"))
    done = subprocess.run([KIMI, *words], capture_output=True, timeout=20, env=env, check=False)
    assert done.returncode == 2
    assert done.stdout == b""
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr


def test_a_directory_whose_name_is_no_text_is_refused_and_said_so(tmp_path: Path) -> None:
    os.mkdir(work := os.fsencode(tmp_path) + b"/bad\xff")
    env = environment(QUINTET_HOME=str(tmp_path / "home"))
    done = subprocess.run([KIMI, "--wire", "--work-dir", work], capture_output=True, timeout=20, env=env, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"is not UTF-8" in done.stderr


def test_a_person_who_asks_is_told_what_it_is_for() -> None:
    done = subprocess.run([KIMI, "--help"], capture_output=True, timeout=20, env=environment(), check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"quintet-kimi --wire" in done.stdout


@pytest.mark.req("reliability:R18-stdio")
def test_nothing_heavy_is_imported_before_the_greeting_is_answered(tmp_path: Path) -> None:
    heavy = {"tree_sitter", "pathspec", "h11", "httpx2", "cryptography", "ctypes", "fastjsonschema", "uvicorn"}
    ours = {"quintet.tools.builtin", "quintet.providers.table", "quintet.workspace.sandbox.wall"}
    with client(tmp_path, PYTHONPROFILEIMPORTTIME="1") as wire:
        wire.initialize()
        wire.hang_up()
        _, said = wire.ended(10)
    imported = {line.rpartition("|")[2].strip() for line in said.splitlines() if line.startswith("import time:")}
    assert "quintet.protocols.wire.server" in imported
    assert not imported & (heavy | ours)
