"""The examples of the published document: what this server reads and writes has exactly these fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from quintet.domain.item import Attached, ImagePart, ToolCall
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.attachments import images
from quintet.protocols.kward.normal import arguments_of, name_of, raw_call
from quintet.protocols.kward.server import TABLE

EXAMPLES: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "golden" / "kward" / "examples.json").read_text(encoding="utf-8")
)
SHAPES = {
    "sessions/compact result": wire.Compacted,
    "sessions/forkMessages result": wire.ForkMessages,
    "turn/event params": wire.TurnEvent,
    "turnFinished error": wire.TurnError,
    "ui/question params": wire.QuestionAsked,
    "runtime/reload result": wire.Reloaded,
}


@pytest.mark.parametrize("name", SHAPES)
def test_an_example_is_read_and_written_as_it_is(name: str) -> None:
    read = msgspec.convert(EXAMPLES[name], SHAPES[name])
    assert msgspec.to_builtins(read) == EXAMPLES[name]


def test_a_fork_is_answered_with_these_fields() -> None:
    assert set(EXAMPLES["sessions/fork result"]) == {f.encode_name for f in msgspec.structs.fields(wire.Forked)}


@pytest.mark.req("kward:92", "kward:94")
@pytest.mark.parametrize(
    ("tool", "name", "given"),
    [
        ("edit_file", "edit", {"path": "a", "edits": [{"old_text": "x", "new_text": "y"}]}),
        ("edit_file", "edit", {"path": "a", "old_text": "x", "new_text": "y"}),
        ("edit_file", "edit", {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}),
        ("edit", "edit", {"path": "a", "edits": [{"old": "x", "new": "y"}]}),
        ("write_file", "write", {"path": "a", "content": "x"}),
        ("write", "write", {"path": "a", "content": "x"}),
        ("run_shell_command", "bash", {"command": "ls"}),
        ("run_shell_command", "bash", {"command": "ls", "timeout_seconds": 30}),
        ("shell", "bash", {"command": "ls", "timeout_s": 30}),
    ],
)
def test_a_call_is_told_alike_whoever_made_it(tool: str, name: str, given: Any) -> None:
    call = ToolCall("c", tool, json.dumps(given))
    assert name_of(call) == name
    wanted = {"edit": "edit_file", "write": "write_file", "bash": "run_shell_command"}[name]
    assert arguments_of(call) == EXAMPLES[f"{wanted} args"]


@pytest.mark.parametrize(
    ("call", "name", "told"),
    [
        (ToolCall("c", "Shell", '{"command":"ls","timeout":5}', own="shell"), "bash", {"command": "ls", "timeout": 5}),
        (
            ToolCall("c", "StrReplaceFile", '{"path":"a","edit":{"old":"x","new":"y"}}', own="edit"),
            "edit",
            {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]},
        ),
        (ToolCall("c", "ReadFile", '{"path":"a","line_offset":2}', own="read"), "read", {"path": "a", "lineOffset": 2}),
    ],
)
def test_a_call_of_another_protocols_model_reads_well_here(call: ToolCall, name: str, told: Any) -> None:
    assert name_of(call) == name
    assert arguments_of(call) == told
    assert raw_call(call)["function"]["name"] in ("run_shell_command", "edit_file", "read_file")


@pytest.mark.req("kward:102")
def test_an_attachment_as_published_is_taken() -> None:
    (image,) = images([EXAMPLES["turns/start attachment"]])
    assert image == ImagePart("image/png", "aGVsbG8=", Attached(name="optional.png"))


def test_there_are_sixty_methods_each_with_a_summary() -> None:
    names = [row.name for row in TABLE]
    assert len(names) == 60
    assert all(row.summary.endswith(".") and row.form == "either" for row in TABLE)
