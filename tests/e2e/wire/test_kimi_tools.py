"""Kimi's tools with the real executable: what each says of a call, as clients of kimi-cli 1.49.0 were told it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.wire.test_kimi_scripts import call, client
from tests.fakes.wire_client import payloads

Value = dict[str, Any]


def read(lines: int, first: int, total: int, *more: str) -> str:
    return " ".join([f"{lines} lines read from file starting from line {first}. Total lines in file: {total}.", *more])


# (tool, arguments, output, message); None: what stands there is ours.
TOLD: list[tuple[str, Value, str | None, str]] = [
    (
        "ReadFile",
        {"path": "a.txt"},
        "     1\talpha\n     2\tbeta\n     3\tgamma\n",
        read(3, 1, 3, "End of file reached."),
    ),
    ("ReadFile", {"path": "a.txt", "line_offset": 2, "n_lines": 1}, None, read(1, 2, 3)),
    ("ReadFile", {"path": "long.txt", "line_offset": -5, "n_lines": 2}, None, read(2, 1496, 1500)),
    ("ReadFile", {"path": "long.txt"}, None, read(1000, 1, 1500)),
    ("ReadFile", {"path": "wide.txt"}, None, read(2, 1, 2, "End of file reached. Lines [1] were truncated.")),
    ("ReadFile", {"path": "empty.txt"}, None, "No lines read from file. Total lines in file: 0. End of file reached."),
    (
        "ReadFile",
        {"path": "a.txt", "line_offset": 10},
        None,
        "No lines read from file. Total lines in file: 3. End of file reached.",
    ),
    ("Glob", {"pattern": "*.txt"}, "a.txt\nempty.txt\nlong.txt\nwide.txt", "Found 4 matches for pattern `*.txt`."),
    (
        "Glob",
        {"pattern": "*", "include_dirs": False},
        ".gitignore\na.txt\nempty.txt\nlong.txt\nwide.txt",
        "Found 5 matches for pattern `*`.",
    ),
    ("Glob", {"pattern": "src/**/*.py"}, "src/deep/y.py\nsrc/x.py", "Found 2 matches for pattern `src/**/*.py`."),
    ("Glob", {"pattern": "*.zip"}, "", "No matches found for pattern `*.zip`."),
    ("Glob", {"pattern": "build/*"}, "build/out.txt", "Found 1 matches for pattern `build/*`."),
    ("Grep", {"pattern": "zzz"}, "", "No matches found."),
    (
        "Grep",
        {"pattern": "alpha", "output_mode": "count_matches"},
        "a.txt:1",
        "Found 1 total occurrences across 1 files.",
    ),
    (
        "Grep",
        {"pattern": "line 1", "output_mode": "content", "head_limit": 2, "offset": 1},
        None,
        "Results truncated to 2 lines (total: 612). Use offset=3 to see more.",
    ),
    ("Shell", {"command": "true"}, "", "Command executed successfully."),
    ("WriteFile", {"path": "n.txt", "content": "one\n"}, "", "File successfully overwritten. Current size: 4 bytes."),
    (
        "WriteFile",
        {"path": "n.txt", "content": "two\n", "mode": "append"},
        "",
        "File successfully appended to. Current size: 8 bytes.",
    ),
    (
        "WriteFile",
        {"path": "n.txt", "content": "one\ntwo\n"},
        "",
        "File successfully overwritten. Current size: 8 bytes.",
    ),
    (
        "StrReplaceFile",
        {"path": "n.txt", "edit": {"old": "one", "new": "ONE"}},
        "",
        "File successfully edited. Applied 1 edit(s) with 1 total replacement(s).",
    ),
    ("SetTodoList", {"todos": [{"title": "x", "status": "done"}]}, "Todo list updated", "Todo list updated"),
]
# And what goes wrong, or is shown.
MORE: list[tuple[str, Value]] = [
    ("Grep", {"pattern": "return", "output_mode": "content", "path": "src", "-A": 1}),
    ("Grep", {"pattern": "f.*1", "multiline": True, "output_mode": "content", "-n": False}),
    ("Grep", {"pattern": "alpha", "include_ignored": True}),
    ("SetTodoList", {}),
    ("Shell", {"command": "echo err; exit 3"}),
    ("Shell", {"command": "sleep 9", "timeout": 1}),
    ("ReadMediaFile", {"path": "a.txt"}),
    ("WriteFile", {"path": "long.txt", "content": "".join(f"{n}\n" for n in range(10_001))}),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Value]:
    """Of all these calls, made in one turn."""
    tmp_path = tmp_path_factory.mktemp("kimi-tools")
    work = tmp_path / "work"
    (work / "src/deep").mkdir(parents=True)
    (work / "build").mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    texts = {
        "a.txt": "alpha\nbeta\ngamma\n",
        "src/x.py": "def f():\n    return 1\n\nclass A:\n    pass\n",
        "src/deep/y.py": "import os\nreturn 2\n",
        "build/out.txt": "alpha built\n",
        ".gitignore": "build/\n",
        "long.txt": "".join(f"line {n}\n" for n in range(1, 1501)),
        "wide.txt": "x" * 3000 + "\nend",
        "empty.txt": "",
    }
    for name, text in texts.items():
        (work / name).write_text(text)
    calls = [*(row[:2] for row in TOLD), *MORE]
    scripts = [call(name, given, f"c{n}") for n, (name, given) in enumerate(calls)]
    with client(tmp_path, *scripts, "text: end", flags=("--yolo",)) as wire:
        heard = wire.prompt("go")
    return [said["return_value"] for said in payloads(heard, "ToolResult")]


@pytest.mark.req("wire:T3", "wire:T4", "wire:T6")
@pytest.mark.parametrize("number", range(len(TOLD)), ids=lambda n: f"{n}-{TOLD[n][0]}")
def test_a_result_says_what_kimis_says(results: list[Value], number: int) -> None:
    name, _, output, message = TOLD[number]
    value = results[number]
    assert (value["is_error"], value["message"]) == (False, message)
    assert output is None or value["output"] == output
    if name in ("ReadFile", "Glob", "Grep", "Shell"):
        assert value["display"] == []


@pytest.mark.req("wire:T4")
def test_grep_looks_as_it_is_told(results: list[Value]) -> None:
    around, several, ignored = (value["output"].splitlines() for value in results[len(TOLD) :][:3])
    assert around == ["src/deep/y.py:2:return 2", "--", "src/x.py:2:    return 1", "src/x.py-3-"]
    assert several == ["src/x.py:def f():", "src/x.py:    return 1"]
    assert sorted(ignored) == ["a.txt", "build/out.txt"]


@pytest.mark.req("wire:T6")
def test_the_list_of_things_to_do_is_told_when_asked(results: list[Value]) -> None:
    assert results[len(TOLD) + 3]["output"] == "Current todo list:\n- [done] x"


@pytest.mark.req("wire:T5", "wire:T6")
def test_what_went_wrong_is_a_brief_block(results: list[Value]) -> None:
    failed, slow, media = results[len(TOLD) + 4 :][:3]
    assert failed["is_error"]
    assert failed["message"] == "Command failed with exit code: 3."
    assert failed["display"] == [{"type": "brief", "text": "Failed with exit code: 3\nerr"}]
    assert slow["message"] == "Command killed by timeout (1s)"
    assert slow["display"] == [{"type": "brief", "text": "Killed by timeout (1s)"}]
    assert media["message"] == "`a.txt` is a text file. Use ReadFile to read text files."
    assert media["display"] == [{"type": "brief", "text": "Unsupported file type"}]


@pytest.mark.req("wire:T6")
def test_a_diff_of_very_many_lines_is_a_summary(results: list[Value]) -> None:
    (block,) = results[-1]["display"]
    assert block["is_summary"] is True
    assert (block["old_text"], block["new_text"]) == ("(1500 lines)", "(10001 lines)")
    assert json.dumps(block).count("\\n") == 0


@pytest.mark.req("wire:T7")
def test_a_subagent_of_an_agent_file_works(tmp_path: Path) -> None:
    (tmp_path / "look.md").write_text("Only look.\n")
    (tmp_path / "look.yaml").write_text("version: 1\nagent:\n  extend: default\n  system_prompt_path: ./look.md\n")
    (tmp_path / "agent.yaml").write_text(
        "version: 1\nagent:\n  extend: default\n  subagents:\n    looker:\n      path: ./look.yaml\n"
    )
    work = call("Agent", {"description": "d", "prompt": "p", "subagent_type": "looker"})
    flags = ("--yolo", "--agent-file", str(tmp_path / "agent.yaml"))
    with client(tmp_path, work, "text: seen", "text: done", flags=flags) as wire:
        heard = wire.prompt("go")
    assert {said["subagent_type"] for said in payloads(heard, "SubagentEvent")} == {"looker"}
    (result,) = payloads(heard, "ToolResult")
    assert result["return_value"]["is_error"] is False
    assert result["return_value"]["output"].startswith("seen")
