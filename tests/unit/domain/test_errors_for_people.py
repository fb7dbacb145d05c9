"""Every error says what happened, what to do next, and where to read on; and what it names exists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from quintet.cli import COMMANDS
from quintet.cli.docs import what_happened
from quintet.cli.parser import actions_of
from quintet.cli.words import parser_of
from quintet.domain.errors import QuintetError, all_error_classes
from tests.faults.processes import one_line, quintet, write_home
from tests.unit.test_docs import anchors

ROOT = Path(__file__).parents[3]
CLASSES = all_error_classes()
# Where the thing to do is done elsewhere than in Quintet.
DEEDS = {
    "invalid": "Correct the request",
    "cancelled": "Send the request again",
    "conflict": "Use another idempotency key",
    "drifted": "Look at what is there now",
    "expired": "Ask again",
    "overloaded": "Send fewer requests",
    "version_mismatch": "Use the newer Quintet",
}


@pytest.mark.req("first_minutes:F30")
@pytest.mark.parametrize("error", CLASSES, ids=lambda e: e.code)
def test_every_error_says_what_happened_in_a_sentence(error: type[QuintetError]) -> None:
    words = what_happened(error)
    assert words.endswith(".")
    assert words != what_happened(QuintetError), "it has no words of its own"


@pytest.mark.req("first_minutes:F30")
@pytest.mark.parametrize("error", CLASSES, ids=lambda e: e.code)
def test_every_error_names_a_command_or_a_concrete_deed(error: type[QuintetError]) -> None:
    step = error.next_step
    assert step.endswith(".")
    named = re.findall(r"`([^`]+)`", step)
    assert named or step.startswith(DEEDS[error.code])
    flags = {flag for name in COMMANDS for flag in _flags(name)}
    for words in (code.split() for code in named):
        if words[0] == "quintet":
            assert words[1] in COMMANDS, step
            actions = actions_of(parser_of(words[1]))
            assert not actions or words[2] in actions, step
        elif words[0].startswith("-"):
            assert words[0] in flags, step


def _flags(command: str) -> set[str]:
    parser = parser_of(command)
    parsers = [parser, *actions_of(parser).values()]
    return {flag for one in parsers for flag in one._option_string_actions}


@pytest.mark.req("first_minutes:F30")
@pytest.mark.parametrize("error", CLASSES, ids=lambda e: e.code)
def test_every_error_leads_to_a_place_in_the_documentation(error: type[QuintetError]) -> None:
    page, _, anchor = error("It happened.").docs.partition("#")
    assert anchor == error.code
    assert anchor in anchors(ROOT / page)
    assert error("It happened.").info().docs == f"{page}#{anchor}"


@pytest.mark.req("first_minutes:F30")
@pytest.mark.parametrize("error", CLASSES, ids=lambda e: e.code)
def test_the_manual_has_every_error_for_whoever_has_no_clone(error: type[QuintetError]) -> None:
    page = (ROOT / "data" / "share" / "man" / "man1" / "quintet.1").read_text()
    assert f".TP\n.B {error.code}\n" in page.partition(".SH ERRORS")[2].partition(".SH FILES")[0]


@pytest.mark.req("first_minutes:F30")
def test_on_a_terminal_an_error_is_one_line_that_ends_with_its_place(tmp_path: Path) -> None:
    line = one_line(quintet("threads", "show", "thr_nothing", home=write_home(tmp_path / "home")), 1)
    assert "`quintet threads list`" in line
    assert line.endswith("(docs/errors.md#not_found)")


@pytest.mark.req("first_minutes:F30")
def test_with_json_an_error_is_one_object_on_stderr(tmp_path: Path) -> None:
    done = quintet("threads", "show", "thr_nothing", "--json", home=write_home(tmp_path / "home"))
    assert (done.code, done.out) == (1, "")
    assert done.err.count("\n") == 1
    said = json.loads(done.err)["error"]
    assert said["code"] == "not_found"
    assert said["docs"] == "docs/errors.md#not_found"
    assert "quintet threads list" in said["next_step"]
    assert said["exit"] == 1


@pytest.mark.req("first_minutes:F30")
def test_a_turn_that_fails_says_where_to_read_on(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", "scope: turn\nerror: 503 tired\n")
    done = quintet("run", "go", home=home)
    assert done.code == 5, done
    assert "(docs/errors.md#provider_failed)" in done.err
