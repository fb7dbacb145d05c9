"""Matchers: searched for in a target, small enough to be quick whatever they say."""

from __future__ import annotations

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.hook import REASON_AT_MOST, blocked, bounded
from quintet.domain.hook_matcher import LONGEST, TARGET_AT_MOST, Matcher


@pytest.mark.req("models:H2")
@pytest.mark.parametrize(
    ("matcher", "target", "fits"),
    [
        ("", "anything", True),
        ("*", "anything", True),
        ("shell", "shell", True),
        ("shell", "shell_output", True),
        ("^shell$", "shell_output", False),
        ("^(write|edit)$", "edit", True),
        ("^(write|edit)$", "read", False),
        ("mcp__.*__(get|list)_.*", "mcp__git__list_all", True),
        (r"\(a\|b\)+", "(a|b)", True),
        ("[(*+|)]{2}", "(*", True),
        ("(?i)SHELL", "shell", True),
        ("(?P<x>sh)(?:ell)(?=x|$)", "shell", True),
        ("end$", "x" * TARGET_AT_MOST + "end", False),
    ],
)
def test_a_matcher_is_searched_for_in_the_beginning_of_its_target(matcher: str, target: str, fits: bool) -> None:
    assert Matcher(matcher).fits(target) is fits


@pytest.mark.req("models:H2")
@pytest.mark.parametrize(
    ("matcher", "why"),
    [
        ("(", "not a regular expression"),
        ("a" * (LONGEST + 1), "longer than"),
        ("(a+)+$", "a repeat around another repeat"),
        ("(a|a)*b", "a repeat around another repeat or a choice"),
        ("((a?)b){9}", "a repeat around another repeat"),
        ("(?:x|(y*))+", "a repeat around another repeat"),
        ("a*b*c*d*", "more than 3 repeats"),
        ("(a|a)" * 5 + "b", "choices in more than 4 places"),
        ("(a+)(?#c)+b", "a comment"),
        ("(?#[)(a+)(?#])+b", "a comment"),
        ("(?x)(a+) +b", "the flag x"),
        ("(?ix:(a+) +b)", "the flag x"),
    ],
)
def test_a_matcher_that_is_wrong_or_could_be_slow_is_refused(matcher: str, why: str) -> None:
    with pytest.raises(Invalid, match=why.replace("(", r"\(")):
        Matcher(matcher)


def test_a_block_has_words_and_not_too_many() -> None:
    assert blocked("  ", "config.toml hooks[0]").reason == "blocked by config.toml hooks[0]"
    assert blocked("x" * (REASON_AT_MOST + 1), "").reason.endswith(f"x [cut: {REASON_AT_MOST + 1} characters]")


def test_very_long_texts_are_cut_and_that_is_said_in_them_and_beside_them() -> None:
    told = bounded({"tool_input": {"content": "y" * 300_000, "n": [1]}, "tool_name": "write"})
    assert told["truncated"] == ["tool_input"]
    assert told["tool_input"]["content"].endswith("y [cut: 300000 characters]")
    assert "truncated" not in bounded({"tool_input": {"content": "short"}})
