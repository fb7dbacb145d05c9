"""Approval texts: nothing in them hides, moves or turns what stands beside it."""

from __future__ import annotations

import json

import pytest

from quintet.cli.approvals import describe
from quintet.cli.event_json import event_line
from quintet.domain.event import Event, InteractionRequested
from quintet.domain.interaction import Approval, Interaction
from quintet.domain.shown import shown, shown_line

HOSTILE = [*range(0, 9), *range(11, 32), *range(127, 160), 0xA0, 0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x180E]
HOSTILE += [*range(0x2000, 0x2010), *range(0x2028, 0x2030), 0x205F, *range(0x2060, 0x2070), 0x2800, 0x3000, 0x3164]
HOSTILE += [*range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0, *range(0xFFF9, 0xFFFC), 0xD800, 0xE0001, 0xE0041, 0xE0100, 0xF0000]


def asked(**fields: str) -> Interaction:
    request = Approval("shell", fields.pop("title", "run it"), **fields)  # type: ignore[arg-type]
    return Interaction("int_1", "thr_1", "thr_1", "trn_1", "c1", request, 0)


@pytest.mark.req("security:S25")
@pytest.mark.parametrize("code", HOSTILE, ids=hex)
def test_a_character_that_is_not_seen_is_spelled_out(code: int) -> None:
    text = shown(f"rm{chr(code)}x")
    assert chr(code) not in text
    assert f"{code:02x}" in text.lower()
    assert shown(text) == text


def test_ordinary_text_stays_as_it_is() -> None:
    for text in ("git status", "écho 日本語 ✓ 🙂", "a\n\tb", "x" * 9_999, "a   b"):
        assert shown(text) == text
    assert shown_line("a\nb\tc") == "a\\nb\\tc"


@pytest.mark.req("security:S25")
def test_padding_does_not_push_the_tail_out_of_sight() -> None:
    assert shown(f"ls{' ' * 500}; rm x") == "ls[500 blanks]; rm x"
    assert shown("ls" + "\n" * 200 + "rm x") == "ls\n[199 empty lines]\nrm x"


@pytest.mark.req("security:S25")
def test_a_person_is_shown_command_place_machine_and_diff_whole_and_escaped() -> None:
    text = describe(
        asked(command="ls \u202eevil\x1b[2J; rm x", cwd="/w", host="box", diff="-a\n+b\u200b\n+" + "z" * 5_000)
    )
    assert "$ ls \\u202eevil\\x1b[2J; rm x" in text
    assert "in /w on box" in text
    assert "+b\\u200b" in text
    assert "z" * 5_000 in text


@pytest.mark.req("security:S25")
def test_a_command_of_several_lines_cannot_pass_for_the_rest_of_the_request() -> None:
    text = describe(asked(command="evil\n  in /safe\n  note: harmless", cwd="/w", title="run x\n  in /safe"))
    assert [line for line in text.split("\n") if line.startswith("  in ")] == ["  in /w"]
    assert not [line for line in text.split("\n") if line.startswith("  note:")]


@pytest.mark.req("security:S25")
def test_json_keeps_the_raw_text_beside_the_shown_one() -> None:
    command = "ls \u202e\u200b x"
    line = event_line(Event(1, "interaction.requested", 0, InteractionRequested(asked(command=command))))
    request = json.loads(line)["payload"]["interaction"]["request"]
    assert request["command"] == command
    assert request["shown"]["command"] == "ls \\u202e\\u200b x"
    assert "\u202e".encode() not in line
