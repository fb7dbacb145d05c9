"""Kimi's flags as `quintet wire` takes them: every name and short form, in any order, and what cannot be meant."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from quintet.cli import kimi, wire
from quintet.cli.invoke import parse
from quintet.cli.wire_flags import notes, refuse_unfit
from quintet.config import Config
from quintet.config.kimi import Chosen, parse_kimi, with_attempts
from quintet.domain.errors import Invalid
from quintet.providers.settings import ProviderKind, ProviderSettings


def flags(*words: str) -> argparse.Namespace:
    return parse(wire, "wire", ["wire", *words])


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        *[((flag, "s1"), "session", "s1") for flag in ("--session", "--resume", "-S", "-r")],
        *[((flag,), "go_on", True) for flag in ("--continue", "-C")],
        *[((flag,), "yolo", True) for flag in ("--yolo", "--yes", "--auto-approve", "-y")],
        *[((flag, "/d"), "work_dir", "/d") for flag in ("--work-dir", "-w")],
        *[((flag, "m"), "model", "m") for flag in ("--model", "-m")],
        *[((flag, "hi"), "prompt", "hi") for flag in ("--prompt", "--command", "-p", "-c")],
        (("--plan",), "plan", True),
        (("--afk",), "afk", True),
        (("--debug",), "debug", True),
        (("--verbose",), "verbose", True),
        (("--agent", "okabe"), "agent", "okabe"),
        (("--agent-file", "f"), "agent_file", "f"),
        (("--max-steps-per-turn", "3"), "max_steps_per_turn", 3),
        (("--max-retries-per-step", "3"), "max_retries_per_step", 3),
        (("--max-ralph-iterations", "-1"), "max_ralph_iterations", -1),
        (("--no-thinking",), "thinking", False),
        (("--skills-dir", "a", "--skills-dir", "b"), "skills_dir", ["a", "b"]),
    ],
)
def test_each_flag_is_known_by_all_its_names_before_and_behind_the_others(
    words: tuple[str, ...], name: str, value: object
) -> None:
    for given in (flags("--wire", *words), flags(*words, "--wire", "--home", "/h")):
        assert getattr(given, name) == value
        assert given.wire


@pytest.mark.parametrize("word", ["--agen", "--yol", "--con", "--sess"])
def test_the_beginning_of_a_flag_is_no_flag(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        flags(word, "x")
    assert word in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--session",), "--session without an id"),
        (("--resume", "--yolo"), "--session without an id"),
        (("-S", " "), "--session without an id"),
        (("--continue", "--session", "x"), "--continue and --session"),
        (("--config", "{}", "--config-file", "f"), "--config and --config-file"),
        (("--agent", "default", "--agent-file", "f"), "--agent and --agent-file"),
        (("--config", ""), "--config is empty"),
        (("--print",), "quintet run"),
        (("--quiet",), "quintet run"),
        (("--input-format", "text"), "quintet run"),
        (("--output-format", "stream-json"), "quintet run"),
        (("--final-message-only",), "quintet run"),
        (("--acp",), "ACP"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_way_out(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(Invalid) as refused:
        refuse_unfit(flags(*words))
    assert said in refused.value.line()
    assert refused.value.next_step


def test_what_does_not_hold_here_is_noted(tmp_path: Path) -> None:
    words = ("--skills-dir", str(tmp_path / "none"), "--skills-dir", str(tmp_path), "--agent", "okabe", "-p", "hi")
    said = notes(flags(*words, "--mcp-config", "{}"))
    named = [line.split()[1].strip(":") for line in said]
    assert named == ["--skills-dir", "--agent", "--prompt", "MCP"]
    assert str(tmp_path / "none") in said[0]
    assert notes(flags("--agent", "default")) == []


def test_how_often_a_prompt_is_given_is_said_by_the_flag_before_the_file() -> None:
    kimi = parse_kimi('{"loop_control": {"max_ralph_iterations": 3}}', "a file")
    assert [wire._repeats(given, kimi) for given in (None, 0, -1)] == [3, 0, -1]
    assert wire._repeats(None, None) == 0


def test_attempts_count_the_first_one_for_every_provider_also_of_the_environment() -> None:
    known = {"mine": ProviderSettings(ProviderKind.OPENAI_CHAT, max_retries=7)}
    chosen = Chosen("mine/m", config=Config(providers=known))
    bounded = with_attempts(chosen, 1, {"OPENAI_API_KEY": "k"}).config.providers
    assert {name: provider.max_retries for name, provider in bounded.items()} == {"mine": 0, "openai": 0}
    assert with_attempts(chosen, None, {}) is chosen


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--print"], "quintet run"),
        (["--work-dir", "/d", "--prompt=hi"], "quintet run"),
        (["-c", "hi"], "quintet run"),
        (["--acp"], "ACP"),
        (["acp"], "ACP"),
        (["export"], "quintet threads export"),
        (["plugin", "list"], "--skills-dir"),
        (["web"], "quintet serve"),
        (["vis"], "quintet events"),
        (["term"], "quintet chat"),
        (["--yolo"], "--wire"),
    ],
)
def test_the_other_faces_of_kimi_are_answered_with_what_does_the_same_here(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kimi.main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert said in told.err
    assert len(told.err.splitlines()) == 1


@pytest.mark.parametrize("words", [["--version"], ["-V"], ["--wire", "-V"], ["--yolo", "--version"]])
def test_the_version_is_told_wherever_it_is_asked_for(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert kimi.main(words) == 0
    assert capsys.readouterr().out == f"kimi, version {kimi.COMPATIBLE}\n"
