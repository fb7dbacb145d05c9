"""Agents, plan mode and answers by a schema, as a person meets them on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faults.processes import no_traceback, one_line, quintet, quintet_running, write_home

WRITES = 'scope: turn\ntool_call: write {"path": "made.txt", "content": "x"}\n---\ntext: "end"\n'
LEAVES = (
    'scope: turn\ntool_call: exit_plan_mode {"plan": "1. write made.txt"}\n---\n'
    'tool_call: write {"path": "made.txt", "content": "x"}\n---\ntext: "end"\n'
)


@pytest.mark.req("models:A1", "models:A3")
def test_agents_lists_those_there_are_and_says_what_is_wrong_with_others(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", config='[agents.tester]\ndescription = "Runs tests."\nmode = "ask"\n')
    (home / "agents").mkdir()
    (home / "agents" / "reviewer.md").write_text("---\ndescription: Looks.\n---\nLook.\n")
    (home / "agents" / "broken.md").write_text("---\nmode: x\n---\n")
    (home / "agents" / "tester.md").write_text("hidden\n")
    (tmp_path / ".quintet" / "agents").mkdir(parents=True)
    (tmp_path / ".quintet" / "agents" / "theirs.md").write_text("Theirs.\n")
    done = quintet("agents", "--json", home=home, cwd=tmp_path)
    assert done.code == 0, done
    assert {line["name"]: line.get("of_project", False) for line in done.lines} == {
        "coder": False,
        "explorer": False,
        "planner": False,
        "reviewer": False,
        "tester": False,
        "theirs": True,
    }
    assert "broken cannot be used:" in done.err
    assert "config.toml has an agent of this name" in done.err
    plain = quintet("agents", home=home, cwd=tmp_path)
    assert "tester           Runs tests. [mode ask] (config.toml [agents.tester])" in plain.out


@pytest.mark.req("models:A4")
def test_an_unknown_agent_is_one_line_and_no_thread(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", WRITES)
    done = quintet("run", "--agent", "nobody", "go", home=home, cwd=tmp_path)
    assert (
        one_line(done, 1)
        == "quintet: There is no agent 'nobody'. Agents here: coder, explorer, planner. (docs/errors.md#not_found)"
    )
    assert quintet("threads", "list", "--json", home=home).lines == []


@pytest.mark.req("models:A2")
def test_the_planner_writes_nothing_and_stays_with_the_thread(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", WRITES)
    done = quintet("run", "--agent", "planner", "--mode", "allow", "go", home=home, cwd=tmp_path)
    assert done.code == 3, done
    thread = done.err.split("thread ", 1)[1].split()[0]
    again = quintet("run", "--thread", thread, "--mode", "allow", "go", home=home, cwd=tmp_path)
    assert again.code == 3, again
    assert not (tmp_path / "made.txt").exists()
    coder = quintet("run", "--thread", thread, "--agent", "coder", "--mode", "allow", "go", home=home, cwd=tmp_path)
    assert coder.code == 0, coder
    assert (tmp_path / "made.txt").read_text() == "x"


@pytest.mark.req("models:P1", "models:P2")
def test_a_plan_is_shown_whole_to_another_terminal_and_its_yes_lets_the_work_begin(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", LEAVES)
    words = ("run", "--json", "--plan", "--mode", "allow", "--on-ask", "wait:20", "go")
    with quintet_running(*words, home=home, cwd=tmp_path) as turn:
        turn.event("interaction.requested")
        assert not (tmp_path / "made.txt").exists()
        (asked,) = quintet("approvals", "list", "--json", home=home).lines
        assert asked["request"]["plan"] == asked["request"]["shown"]["plan"] == "1. write made.txt"
        assert "  | 1. write made.txt" in quintet("approvals", "list", home=home).out
        assert quintet("approvals", "allow", asked["id"], home=home).code == 0
        assert turn.wait() == 0
    assert (tmp_path / "made.txt").read_text() == "x"


@pytest.mark.req("models:P2")
def test_without_anybody_to_ask_nothing_is_written_until_the_person_ends_plan_mode(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", LEAVES)
    done = quintet("run", "--plan", "--mode", "allow", "go", home=home, cwd=tmp_path)
    assert done.code == 3, done
    assert not (tmp_path / "made.txt").exists()
    off = quintet("run", "-c", "--no-plan", "--mode", "allow", "go", home=home, cwd=tmp_path)
    no_traceback(off)
    assert (tmp_path / "made.txt").exists()


@pytest.mark.req("models:O1", "models:O2")
def test_stdout_is_the_json_alone_after_a_second_try(tmp_path: Path) -> None:
    script = 'scope: turn\ntext: "Sure! {}"\n---\ntext: "```json\\n{\\"n\\": 3}\\n```"\n'
    home = write_home(tmp_path / "home", script)
    (tmp_path / "form.json").write_text('{"type": "object", "required": ["n"]}')
    done = quintet("run", "--output-schema", "form.json", "go", home=home, cwd=tmp_path)
    assert (done.code, done.out) == (0, '{"n": 3}\n'), done
    assert json.loads(done.out) == {"n": 3}


@pytest.mark.req("models:O2")
def test_an_answer_that_never_fits_is_1_and_nothing_on_stdout(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", "scope: turn\n" + "---\n".join(['text: "no"\n'] * 5))
    (tmp_path / "form.json").write_text('{"type": "object"}')
    done = quintet("run", "--output-schema", "form.json", "go", home=home, cwd=tmp_path)
    assert (done.code, done.out) == (1, ""), done
    assert "does not fit the schema after 3 tries" in done.err


@pytest.mark.req("models:O3")
def test_a_schema_that_is_none_is_2_before_anything_is_begun(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", WRITES)
    (tmp_path / "form.json").write_text('{"$ref": "https://example.org/x"}')
    for file in ("form.json", "missing.json"):
        done = quintet("run", "--output-schema", file, "go", home=home, cwd=tmp_path)
        assert done.out == ""
        assert file in one_line(done, 2)
    assert quintet("threads", "list", "--json", home=home).lines == []


@pytest.mark.req("models:X6")
def test_a_long_output_is_kept_whole_in_the_home_and_swept_with_its_thread(tmp_path: Path) -> None:
    script = 'scope: turn\ntool_call: shell {"command": "seq 20000"}\n---\ntext: "end"\n'
    home = write_home(tmp_path / "home", script, "[sandbox]\nrequired = false\n")
    done = quintet("run", "--mode", "allow", "go", home=home, cwd=tmp_path)
    assert done.code == 0, done
    (kept,) = (home / "results").rglob("res_*")
    assert kept.read_text() == "".join(f"{n}\n" for n in range(1, 20_001))
    assert quintet("gc", "--json", home=home).lines[0]["results"] == 0
    assert quintet("threads", "delete", kept.parent.name, home=home).code == 0
    assert quintet("gc", "--json", home=home).lines[0]["results"] == 1
    assert not kept.exists()
