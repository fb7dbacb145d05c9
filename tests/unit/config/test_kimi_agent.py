"""Kimi's agent files: which tools and instructions an agent has by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintet.config.kimi_agent import read_agent
from quintet.domain.errors import Invalid
from quintet.engine.agents import may_use


def write(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines))
    return str(path)


def test_excluded_tools_are_gone_and_all_others_stay(tmp_path: Path) -> None:
    file = write(
        tmp_path / "agent.yaml",
        "version: 1",
        "agent:",
        "  extend: default",
        "  exclude_tools:",
        '    - "kimi_cli.tools.shell:Shell"',
    )
    agent = read_agent(file, "/w").agent
    assert not may_use(agent, "shell")
    assert may_use(agent, "write")
    assert may_use(agent, "a_tool_of_the_client")
    assert agent.instructions == ""


def test_named_tools_are_the_only_ones_and_unknown_ones_are_told(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.yaml",
        "agent:",
        "  name: looker",
        "  tools:",
        "    - kimi_cli.tools.file:ReadFile",
        "    - kimi_cli.tools.dmail:SendDMail",
    )
    found = read_agent(file, "/w")
    assert (found.agent.name, found.agent.tools) == ("looker", ("read",))
    assert [note.rpartition(": ")[2] for note in found.notes] == [
        "there is no tool kimi_cli.tools.dmail:SendDMail.",
    ]


@pytest.mark.req("wire:T7")
def test_the_subagents_of_a_file_are_agents_with_paths_from_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "look.md").write_text("Look.\n")
    write(
        tmp_path / "base" / "look.yaml",
        "agent:",
        "  extend: default",
        "  system_prompt_path: ./look.md",
        "  when_to_use: when in doubt",
        "  allowed_tools:",
        "    - kimi_cli.tools.file:ReadFile",
        "    - kimi_cli.tools.think:Think",
    )
    write(
        tmp_path / "base" / "agent.yaml",
        "agent:",
        "  subagents:",
        "    explore:",
        "      path: ./look.yaml",
        "    looker:",
        "      path: ./look.yaml",
        "      description: Looks.",
    )
    found = read_agent(write(tmp_path / "agent.yaml", "agent:", "  extend: ./base/agent.yaml"), "/w")
    assert [(a.name, a.description, a.instructions, a.tools) for a in found.subagents] == [
        ("explorer", "when in doubt", "Look.", ("read",)),
        ("looker", "Looks.", "Look.", ("read",)),
    ]
    assert len(found.notes) == 2  # each says that there is no Think
    with pytest.raises(Invalid, match=r"gone\.yaml cannot be read"):
        lost = ("agent:", "  subagents:", "    x:", "      path: gone.yaml")
        read_agent(write(tmp_path / "lost.yaml", *lost), "/w")


def test_an_agent_extends_another_field_by_field_with_paths_from_where_each_lies(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "system.md").write_text("In ${KIMI_WORK_DIR} you are ${ROLE}, ${KIMI_NOW}. ${OTHER} $X\n")
    write(
        tmp_path / "base" / "agent.yaml",
        "agent:",
        "  name: base",
        "  system_prompt_path: ./system.md",
        "  system_prompt_args:",
        "    ROLE: nobody",
        "  tools:",
        "    - x:Grep",
    )
    file = write(
        tmp_path / "agent.yaml",
        "agent:",
        "  extend: ./base/agent.yaml",
        "  name: mine",
        "  system_prompt_args:",
        "    ROLE: somebody",
    )
    agent = read_agent(file, "/w").agent
    assert (agent.name, agent.tools) == ("mine", ("grep",))
    assert agent.instructions == "In /w you are somebody, (see below). ${OTHER} $X"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("version: 2",), "version 2 of agent files"),
        (("agent:", "  tools: Shell"), "tools"),
        (("agent:", "  extend: ./self.yaml"), "extend one another too often"),
        (("agent:", "  system_prompt_path: ./nowhere.md"), r"nowhere\.md cannot be read"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, lines: tuple[str, ...], words: str) -> None:
    file = write(tmp_path / "self.yaml", *lines)
    with pytest.raises(Invalid, match=words):
        read_agent(file, "/w")
