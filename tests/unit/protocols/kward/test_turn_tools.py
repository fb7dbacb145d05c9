"""Calls and their results as a client is told of them."""

from __future__ import annotations

import pytest

from tests.fakes.kward_turns import result_of
from tests.fakes.tools import FakeTool
from tests.unit.protocols.kward.conftest import Connect


@pytest.mark.req("kward:92")
async def test_an_edit_is_told_with_old_and_new_text(connect: Connect) -> None:
    edits = [{"old_text": "one", "new_text": "1"}]
    called, _ = await result_of(connect, "edit_file", {"path": "a.txt", "edits": edits})
    assert called["toolName"] == "edit"
    assert called["args"] == {"path": "a.txt", "edits": [{"oldText": "one", "newText": "1"}]}
    assert called["tool"] == {
        "kind": "edit",
        "path": "a.txt",
        "edits": [{"oldText": "one", "newText": "1"}],
        "oldText": "one",
        "newText": "1",
    }
    assert called["rawToolCall"] == called["toolCall"]
    assert called["rawToolCall"]["function"]["name"] == "edit_file"
    assert called["toolCallId"] == called["rawToolCall"]["id"]


@pytest.mark.req("kward:93")
async def test_a_write_tells_what_it_changed_and_an_error_does_not(connect: Connect) -> None:
    called, result = await result_of(connect, "write_file", {"path": "b.txt", "content": "x\n"})
    assert called["tool"] == {"kind": "write", "path": "b.txt"}
    assert result["result"]["changedFiles"] == ["b.txt"]
    assert result["result"]["isError"] is False
    assert result["result"]["diff"].startswith("--- ")
    assert result["result"]["images"] == []
    assert result["content"] == result["result"]["content"]
    assert {k: result[k] for k in called} == called
    _, refused = await result_of(connect, "write_file", {"path": "../b.txt", "content": "x\n"})
    assert refused["result"]["isError"] is True
    assert not {"diff", "changedFiles"} & set(refused["result"])


@pytest.mark.req("kward:94")
async def test_a_command_always_carries_its_timeout(connect: Connect) -> None:
    shell = FakeTool("shell")
    called, _ = await result_of(connect, "run_shell_command", {"command": "ls"}, tools=[shell])
    assert called["toolName"] == "bash"
    assert called["args"] == {"command": "ls", "timeout": 30}
    assert called["tool"] == {"kind": "shell", "command": "ls"}
    assert shell.ran == [{"command": "ls", "timeout_s": 30}]
    called, _ = await result_of(
        connect, "run_shell_command", {"command": "ls", "timeout_seconds": 5}, tools=[FakeTool("shell")]
    )
    assert called["args"] == {"command": "ls", "timeout": 5}


@pytest.mark.req("kward:95")
async def test_a_file_that_was_not_read_cannot_be_edited(connect: Connect) -> None:
    _, result = await result_of(
        connect, "edit_file", {"path": "a.txt", "edits": [{"old_text": "one", "new_text": "1"}]}
    )
    assert result["result"]["isError"] is True
    assert result["content"].startswith("Error: ")
    assert "must be read before editing" in result["content"]


@pytest.mark.req("kward:96")
async def test_an_unknown_tool_is_a_result(connect: Connect) -> None:
    called, result = await result_of(connect, "fly_away", {"how_far": 1})
    assert (called["toolName"], called["args"]) == ("fly_away", {"howFar": 1})
    assert "tool" not in called
    assert result["result"]["isError"] is True


async def test_a_tool_called_by_its_own_name_is_told_by_kwards(connect: Connect) -> None:
    called, result = await result_of(connect, "read", {"path": "a.txt", "from_line": 2})
    assert called["toolName"] == "read"
    assert called["rawToolCall"]["function"]["name"] == "read_file"
    assert called["args"] == {"path": "a.txt", "offset": 2}
    assert result["content"].startswith("two")
