"""The terminal: nothing from outside is obeyed, machine output stays plain."""

from __future__ import annotations

import io
import json

import pytest

from quintet.cli.event_json import encode_line, event_line
from quintet.cli.terminal import Screen, safe, safe_line
from quintet.domain.event import Event, Gap, TextDelta
from tests.fakes.hostile import ATTACKS, obeyed

HOSTILE = "a\x1b]0;title\x07b\x9bc\u202ed\u2066e\rf\x00g\u200fh"


@pytest.mark.req("security:S43a")
def test_control_and_direction_characters_are_shown_not_obeyed() -> None:
    shown = safe(HOSTILE)
    assert all(c.isprintable() for c in shown)
    assert "\\x1b" in shown
    assert "\\u202e" in shown


@pytest.mark.req("security:S43a")
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_each_attack_is_spelled_out_whole_and_in_pieces(attack: str) -> None:
    assert not obeyed(safe(attack))
    assert safe(attack) != attack
    assert "".join(map(safe, attack)) == safe(attack)
    assert safe(safe(attack)) == safe(attack)


def test_words_of_all_scripts_stay_as_they_are() -> None:
    for words in (
        "héllo wörld",
        "日本語　テスト",
        "مرحبا",
        "नमस्ते क\u094d\u200dष",
        "👩\u200d💻 ✅ ❤\ufe0f",
        "nbsp\u00a0here",
        "∑→│",
    ):
        assert safe(words) == words


def test_newlines_and_tabs_stay_in_text_and_go_in_lines() -> None:
    assert safe("a\n\tb") == "a\n\tb"
    assert safe_line("a\n\tb") == "a\\n b"


@pytest.mark.req("security:S43a")
def test_json_lines_hold_only_printable_characters_and_read_back_the_same() -> None:
    text = HOSTILE + "\u2028 \U0001f600 é"
    line = encode_line({"text": text})
    assert all(c.isprintable() for c in line.decode().rstrip("\n"))
    assert json.loads(line)["text"] == text


def test_an_event_line_carries_version_cursor_kind_and_fields() -> None:
    event = Event(5, "text.delta", 1_700_000_000_123, TextDelta("itm_1", 2, "hi"), "thr_1", "thr_1", "trn_1")
    line = json.loads(event_line(event))
    assert (line["v"], line["cursor"], line["kind"]) == (1, 80, "text.delta")
    assert line["at"] == "2023-11-14T22:13:20.123Z"
    assert line["payload"] == {"item": "itm_1", "index": 2, "text": "hi"}


def test_a_gap_is_a_line_of_its_own() -> None:
    assert json.loads(event_line(Gap(3, 9))) == {"v": 1, "kind": "gap", "from": 48, "to": 159, "signals": False}


def test_a_pipe_gets_no_colour() -> None:
    out, err = io.StringIO(), io.StringIO()
    Screen(out=out, err=err).note("working")
    assert err.getvalue() == "working\n"


@pytest.mark.parametrize(("environment", "color"), [({"NO_COLOR": "1"}, True), ({}, False)])
def test_colour_can_be_refused(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], color: bool) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    err = io.StringIO()
    err.isatty = lambda: True  # type: ignore[method-assign]
    Screen(color=color, out=io.StringIO(), err=err).note("working")
    assert err.getvalue() == "working\n"
