"""Agents written as files: the person's, and what a project may say with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintet.domain.agent import Agent
from quintet.domain.turn import Mode
from quintet.workspace.agent_files import BYTES_AT_MOST, AgentFiles

REVIEWER = """---
name: reviewer
description: Looks at   changes.
model: fake/large
tools: read, grep
mode: read-only
---
Find what is wrong.
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "agents").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".quintet" / "agents").mkdir(parents=True)
    return tmp_path / "project"


@pytest.mark.req("models:A1")
def test_a_file_s_front_says_what_it_may_and_its_body_what_it_is_told(home: Path) -> None:
    path = home / "agents" / "r.md"
    path.write_text(REVIEWER)
    (home / "agents" / "plain.md").write_text("Just words.\n")
    (home / "agents" / "notes.txt").write_text("no agent")
    found = AgentFiles(str(home)).own()
    assert found.problems == found.notes == ()
    assert found.agents == (
        Agent("plain", "", "Just words.", source=str(home / "agents" / "plain.md")),
        Agent(
            "reviewer",
            "Looks at changes.",
            "Find what is wrong.",
            "fake/large",
            ("read", "grep"),
            Mode.READ_ONLY,
            str(path),
        ),
    )


@pytest.mark.req("models:A3")
def test_a_project_s_agent_chooses_no_model_and_is_known_as_the_project_s(home: Path, project: Path) -> None:
    (project / ".quintet" / "agents" / "reviewer.md").write_text(REVIEWER)
    found = AgentFiles(str(home)).of_project(str(project))
    (agent,) = found.agents
    assert agent.of_project
    assert agent.model == ""
    assert agent.tools == ("read", "grep")
    assert found.notes[0].endswith("reviewer.md: model ignored.")


@pytest.mark.req("models:A3")
def test_links_of_a_project_lead_nowhere_outside_of_it(home: Path, project: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("canary")
    (project / ".quintet" / "agents" / "a.md").symlink_to(tmp_path / "outside.md")
    found = AgentFiles(str(home)).of_project(str(project))
    assert found.agents == ()
    assert "lies outside the workspace" in dict(found.problems)["a"]
    other = tmp_path / "other"
    (other / ".quintet").mkdir(parents=True)
    (other / ".quintet" / "agents").symlink_to(home / "agents")
    (home / "agents" / "mine.md").write_text("mine")
    assert AgentFiles(str(home)).of_project(str(other)).agents == ()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"---\nmode: everything\n---\nx", "its mode is none of read-only, ask, allow."),
        (b"---\nname: a b\n---\nx", "its name may hold"),
        (b"\xff\xfe", "it is not UTF-8 text."),
        (b"x" * (BYTES_AT_MOST + 1), "it is longer than 64 KiB."),
    ],
)
def test_one_that_cannot_be_understood_is_named_with_what_is_wrong(home: Path, content: bytes, says: str) -> None:
    (home / "agents" / "odd.md").write_bytes(content)
    found = AgentFiles(str(home)).own()
    assert found.agents == ()
    assert says in dict(found.problems)["odd"]


def test_what_is_not_known_in_the_front_is_said_and_control_characters_are_replaced(home: Path) -> None:
    (home / "agents" / "odd.md").write_bytes(b"---\ncolor: red\ntools:\n---\r\na\x00b\x1bc")
    found = AgentFiles(str(home)).own()
    assert found.agents[0].instructions == "a\ufffdb\ufffdc"
    assert found.agents[0].tools == ()
    assert found.notes[0].endswith("odd.md: color ignored.")


def test_two_files_of_one_name_are_not_silently_one(home: Path) -> None:
    (home / "agents" / "a.md").write_text("---\nname: x\n---\none")
    (home / "agents" / "b.md").write_text("---\nname: x\n---\ntwo")
    found = AgentFiles(str(home)).own()
    assert [a.instructions for a in found.agents] == ["one"]
    assert "another file is named x too" in dict(found.problems)["b"]
