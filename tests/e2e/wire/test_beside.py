"""Commands in the background with the real executable: their end is told, also after a kill."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.e2e.wire.test_kimi_scripts import call, client
from tests.e2e.wire.test_session_files import lines
from tests.fakes.wire_client import kinds, payloads
from tests.faults.processes import quintet_running

WAITS = {"command": "until [ -e go ]; do sleep 0.02; done; exit 3", "run_in_background": True, "description": "waits"}
STARTS = call("Shell", WAITS)
FLAGS = ("--yolo", "--session", "s1")


def posted(tmp_path: Path) -> str:
    """The id of the first notice, as soon as the journal has one."""
    with quintet_running("events", "--follow", "--after", "0", "--json", home=tmp_path / "home") as events:
        _, event = events.event("notice.posted", within_s=30)
    return str(event["payload"]["notice"]["id"])


def read_by_the_model(tmp_path: Path) -> list[str]:
    rows = lines(tmp_path, "context.jsonl")
    return [r["content"] for r in rows if r["role"] == "system" and "notice of Quintet" in str(r["content"])]


@pytest.mark.req("wire:N1", "mechanisms:M2.notices")
def test_the_end_of_a_command_between_turns_survives_a_kill_and_is_told_once(tmp_path: Path) -> None:
    with client(tmp_path, STARTS, "text: it runs", flags=FLAGS) as wire:
        wire.initialize()
        assert "Notification" not in kinds(wire.prompt("start it"))
        (tmp_path / "work" / "go").touch()
        name = posted(tmp_path)
        wire.signal(signal.SIGKILL)
        assert wire.rest() == []  # nothing is said while no turn runs
    with client(tmp_path, "text: I see", "text: still", flags=FLAGS) as wire:
        wire.initialize()
        heard = wire.prompt("well?")
        assert kinds(heard)[:3] == ["TurnBegin", "Notification", "StepBegin"]
        (told,) = payloads(heard, "Notification")
        assert told["id"] == name
        assert (told["type"], told["severity"], told["payload"]["exit_code"]) == ("task.failed", "error", 3)
        assert told["title"] == "Background command failed: waits"
        assert "Notification" not in kinds(wire.prompt("and now?"))
    (words,) = read_by_the_model(tmp_path)
    assert "exit code 3" in words
    assert "TaskOutput" in words
    logged = [row["message"]["type"] for row in lines(tmp_path, "wire.jsonl")[1:]]
    assert logged.count("Notification") == 1


@pytest.mark.req("wire:N1")
def test_a_command_that_ends_with_its_process_is_told_as_stopped_when_the_session_goes_on(tmp_path: Path) -> None:
    with client(tmp_path, STARTS, "text: it runs", flags=FLAGS) as wire:
        wire.prompt("start it")
        wire.hang_up()
        assert wire.ended(10) == (0, "")
    with client(tmp_path, "text: I see", flags=FLAGS) as wire:
        wire.initialize()
        (told,) = payloads(wire.prompt("well?"), "Notification")
        assert told["type"] == "task.killed"
        assert "ended with the process" in told["body"]


@pytest.mark.req("wire:N3")
def test_a_side_question_is_in_the_log_of_the_session_and_not_in_its_context(tmp_path: Path) -> None:
    with client(tmp_path, "text: hello", "text: because", flags=FLAGS) as wire:
        commands = wire.initialize()["result"]["slash_commands"]
        assert "btw" in [command["name"] for command in commands]
        wire.prompt("hi")
        assert kinds(wire.prompt("/btw why?")) == ["TurnBegin", "BtwBegin", "BtwEnd", "TurnEnd", "reply"]
        wire.hang_up()
        wire.ended(10)
    logged = [row["message"]["type"] for row in lines(tmp_path, "wire.jsonl")[1:]]
    assert logged[-4:] == ["TurnBegin", "BtwBegin", "BtwEnd", "TurnEnd"]
    assert "why?" not in (json.dumps(lines(tmp_path, "context.jsonl")))


@pytest.mark.req("wire:N5")
def test_a_turn_ends_after_its_subagent_in_the_background_and_tells_of_its_end(tmp_path: Path) -> None:
    given = {"description": "look around", "prompt": "do it", "run_in_background": True}
    with client(tmp_path, call("Agent", given), *["text: fine"] * 3, flags=FLAGS) as wire:
        wire.initialize()
        heard = wire.prompt("go")
        (told,) = payloads(heard, "Notification")
        assert (told["type"], told["payload"]["task_kind"]) == ("task.completed", "agent")
        assert "TaskOutput" in str(payloads(heard, "ToolResult")[0]["return_value"]["output"])
        own = [k for k in kinds(heard) if k in ("Notification", "StepBegin", "TurnEnd", "reply")]
        assert own[-3:] == ["StepBegin", "TurnEnd", "reply"]
        assert own.index("Notification") < len(own) - 3
        assert heard[-1]["result"] == {"status": "finished"}
