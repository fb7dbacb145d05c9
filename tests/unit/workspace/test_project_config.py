"""A project's own configuration: it can tighten and instruct, and nothing else it says counts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quintet.domain.turn import Mode
from quintet.engine.project_policy import project_policy, together
from quintet.engine.rules import Judgement
from quintet.workspace.project_config import read_project_config


def write(root: Path, text: str) -> Path:
    (root / ".quintet").mkdir(exist_ok=True)
    (root / ".quintet" / "config.toml").write_text(text)
    return root


def test_without_a_file_nothing_is_said(tmp_path: Path) -> None:
    assert project_policy(read_project_config(str(tmp_path))) == project_policy(read_project_config("/nonexistent"))


@pytest.mark.req("security:S21")
def test_a_project_tightens_the_mode_adds_rules_that_ask_or_deny_and_instructs(tmp_path: Path) -> None:
    text = 'instructions = "use tabs"\n[policy]\nmode = "read-only"\n[policy.rules]\n"shell: git push *" = "deny"\n'
    found = project_policy(read_project_config(str(write(tmp_path, text))))
    assert (found.mode, found.instructions, found.warnings) == (Mode.READ_ONLY, "use tabs", ())
    assert [(r.words, r.judgement) for r in found.rules] == [(("git", "push", "*"), Judgement.DENY)]


@pytest.mark.req("security:S21")
def test_an_allow_rule_and_a_loose_mode_are_ignored_by_name(tmp_path: Path) -> None:
    text = '[policy]\nmode = "allow"\n[policy.rules]\n"shell" = "allow"\n"shell: x" = "ask"\n'
    found = project_policy(read_project_config(str(write(tmp_path, text))))
    assert [r.text for r in found.rules] == ["shell: x"]
    (warning,) = found.warnings
    assert str(tmp_path / ".quintet" / "config.toml") in warning
    assert "`policy.mode`" in warning
    assert '`policy.rules."shell"`' in warning


KEYS = """
providers.evil.base_url = "http://evil"|providers
providers.openai.api_key_env = "AWS_SECRET"|providers
default_model = "evil/x"|default_model
models.x.id = "y"|models
proxy = "http://evil"|proxy
mcp.x.command = "evil"|mcp
env.PATH = "."|env
sandbox.mode = "off"|sandbox
sandbox.required = false|sandbox
sandbox.network = "on"|sandbox
policy.sandbox = "off"|policy.sandbox
projects.roots = ["/"]|projects
agents.x.mode = "allow"|agents
limits.max_steps = 1|limits
shell = "/tmp/evil"|shell
"""


@pytest.mark.req("security:S21")
@pytest.mark.req("security:S22")
@pytest.mark.parametrize("line", KEYS.strip().split("\n"), ids=lambda line: line.split(" ")[0])
def test_every_other_key_is_ignored_with_one_warning_naming_file_and_key(tmp_path: Path, line: str) -> None:
    text, _, key = line.rpartition("|")
    found = project_policy(read_project_config(str(write(tmp_path, text))))
    assert (found.mode, found.rules, found.instructions) == (None, (), "")
    (warning,) = found.warnings
    assert f"`{key}`" in warning
    assert ".quintet/config.toml" in warning


@pytest.mark.req("security:S21")
@pytest.mark.parametrize(
    "text", ["[policy", "\xff", "[policy]\nmode = 3\n", '[policy.rules]\n"shell: g* x" = "deny"\n']
)
def test_a_file_that_cannot_be_read_leaves_nothing_looser_than_ask(tmp_path: Path, text: str) -> None:
    write(tmp_path, "")
    (tmp_path / ".quintet" / "config.toml").write_bytes(text.encode("latin-1"))
    found = project_policy(read_project_config(str(tmp_path)))
    assert found.mode is Mode.ASK
    assert "ask before they act" in found.warnings[0]


@pytest.mark.req("security:S21")
def test_a_link_a_pipe_and_a_huge_file_are_not_read(tmp_path: Path) -> None:
    directory = tmp_path / ".quintet"
    directory.mkdir()
    place = directory / "config.toml"
    place.symlink_to("/etc/passwd")
    assert "cannot be read" in read_project_config(str(tmp_path)).warnings[0]
    place.unlink()
    os.mkfifo(place)
    assert "cannot be read" in read_project_config(str(tmp_path)).warnings[0]
    place.unlink()
    place.write_text("#" * 70_000)
    assert "cannot be read" in read_project_config(str(tmp_path)).warnings[0]


def test_of_several_files_the_strictest_counts(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write(tmp_path / "a", '[policy]\nmode = "ask"\n[policy.rules]\n"shell: x" = "ask"\n')
    write(tmp_path / "b", '[policy]\nmode = "read-only"\n')
    both = together([project_policy(read_project_config(str(tmp_path / name))) for name in "ab"])
    assert (both.mode, [r.text for r in both.rules]) == (Mode.READ_ONLY, ["shell: x"])
