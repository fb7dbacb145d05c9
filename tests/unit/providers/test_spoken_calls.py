"""Calls that a local model says as text: every form, in any pieces; and what only looks like one."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable

import pytest

from quintet.domain.model import Chunk, TextChunk
from quintet.providers.spoken_calls import HELD_LIMIT, SpokenCalls
from tests.fakes.requests import calls_in, text_in

CALL = '{"name": "read", "arguments": {"path": "a.txt"}}'
SEEDS = range(20)
TICKS = "```"


def spoken(pieces: Iterable[str], tools: tuple[str, ...] = ("read", "shell")) -> tuple[str, list[tuple[str, object]]]:
    """(what stayed text, the calls as name and input)."""
    parser = SpokenCalls(tools)
    chunks: list[Chunk] = [chunk for piece in pieces for chunk in parser.add(piece)]
    chunks += parser.end()
    calls = calls_in(chunks)
    assert parser.found == bool(calls)
    assert len({call_id for call_id, _, _ in calls}) == len(calls)
    return text_in(chunks), [(name, json.loads(given)) for _, name, given in calls]


def pieces(text: str, seed: int) -> list[str]:
    chance = random.Random(seed)
    cuts = sorted(chance.choices(range(len(text) + 1), k=chance.randrange(len(text) + 1)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


READ = ("read", {"path": "a.txt"})
FORMS = {
    "hermes": (f"<tool_call>\n{CALL}\n</tool_call>", "", [READ]),
    "hermes behind words": (f"I look.\n<tool_call>{CALL}</tool_call>", "I look.\n", [READ]),
    "hermes on the same line": (f"I look. <tool_call>{CALL}</tool_call> There.", "I look.  There.", [READ]),
    "hermes without an end": (f"<tool_call>{CALL}", "", [READ]),
    "two of them": (f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>", "", [READ, READ]),
    "parameters": (f"<tool_call>{CALL.replace('arguments', 'parameters')}</tool_call>", "", [READ]),
    "arguments as text": (
        '<tool_call>{"name": "read", "arguments": "{\\"path\\": \\"a.txt\\"}"}</tool_call>',
        "",
        [READ],
    ),
    "xml": ("<function=read>\n<parameter=path>\na.txt\n</parameter>\n</function>", "", [READ]),
    "xml in tool_call": (
        "<tool_call>\n<function=read>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>",
        "",
        [READ],
    ),
    "xml with values": (
        "<function=shell><parameter=command>ls -l\ncd</parameter><parameter=limit>3</parameter></function>",
        "",
        [("shell", {"command": "ls -l\ncd", "limit": 3})],
    ),
    "xml with json": ('<function=read>{"path": "a.txt"}</function>', "", [READ]),
    "xml without input": ("<function=read></function>", "", [("read", {})]),
    "mistral": (f"[TOOL_CALLS][{CALL}, {CALL}]", "", [READ, READ]),
    "llama": (f"<|python_tag|>{CALL.replace('arguments', 'parameters')}", "", [READ]),
    "bare": (CALL, "", [READ]),
    "bare and pretty": (json.dumps(json.loads(CALL), indent=2) + "\n", "", [READ]),
    "bare, another word": ('{"tool": "read", "args": {"path": "a.txt"}}', "", [READ]),
    "bare, a function": (f'{{"function": {CALL}}}', "", [READ]),
    "fenced": (f"{TICKS}json\n{CALL}\n{TICKS}", "", [READ]),
    "fenced by name": (f"\n{TICKS}tool_call\n{CALL}\n{TICKS}\n", "", [READ]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_call_is_found_in_whatever_pieces_it_comes(form: str, seed: int) -> None:
    text, words, calls = FORMS[form]
    assert spoken(pieces(text, seed)) == (words, calls)
    assert spoken(list(text)) == (words, calls)


TEXTS = {
    "prose": "No call here: a < b, [TOOL is cut, <tool_calls> is another word, `<function` too.",
    "explained in backticks": f"You write `<tool_call>{CALL}</tool_call>` to read a file.",
    "explained in quotes": f'It says "<tool_call>{CALL}</tool_call>" there.',
    "explained in a block": f"Like this:\n{TICKS}xml\n<tool_call>{CALL}</tool_call>\n{TICKS}\nThat is all.",
    "a block about json": f"Like this:\n\n{TICKS}json\n{CALL}\n{TICKS}\nand then wait.",
    "bare, then words": f"{CALL}\nis how one reads a file.",
    "a package": '{"name": "my-app", "version": "1.0.0"}',
    "a package in a block": f'{TICKS}json\n{{"name": "my-app", "version": "1"}}\n{TICKS}\nHere it is.',
    "not offered": '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
    "one of two not offered": f'[TOOL_CALLS][{CALL}, {{"name": "rm", "arguments": {{}}}}]',
    "no json": "<tool_call>read the file a.txt please</tool_call>",
    "cut": '<tool_call>{"name": "read", "argum',
    "nothing but a mark": "<tool_call>",
    "a list": '["name", "read"]',
    "empty": "",
}


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_not_a_call_stays_text_to_the_letter(form: str, seed: int) -> None:
    assert spoken(pieces(TEXTS[form], seed)) == (TEXTS[form], [])
    assert spoken(list(TEXTS[form])) == (TEXTS[form], [])


def test_without_tools_nothing_is_looked_for() -> None:
    assert spoken([CALL], tools=()) == (CALL, [])


def held(text: str) -> str:
    """What of a text is still held back behind its last character."""
    parser = SpokenCalls(("read",))
    said = "".join(c.text for piece in text for c in parser.add(piece) if isinstance(c, TextChunk))
    assert text.startswith(said)
    return text[len(said) :]


@pytest.mark.parametrize(
    ("text", "waiting"),
    [
        ("Hello", ""),
        ("Hello <", "<"),
        ("Hello <tool", "<tool"),
        ("Hello <table", ""),
        ("Look [TOOL_", "[TOOL_"),
        ("Look [1]", ""),
        (f"{TICKS}python\nprint(1)", ""),
        (f"{TICKS}json\n[1, 2", ""),
        (f'{TICKS}json\n{{"na', f'{TICKS}json\n{{"na'),
        (f'{TICKS}json\n{{"name": "my-app"', ""),
        ('{"version": 1', ""),
        (CALL, CALL),
        (f"{CALL}\nis how", ""),
        (f"As text: {CALL}", ""),
    ],
)
def test_text_is_held_back_only_while_it_can_still_become_a_call(text: str, waiting: str) -> None:
    assert held(text) == waiting


def test_a_call_that_never_ends_is_given_up_and_shown() -> None:
    text = "<tool_call>" + "x" * (HELD_LIMIT + 10)
    assert held(text).strip("x") == ""
    assert spoken([text[place : place + 1000] for place in range(0, len(text), 1000)]) == (text, [])
