"""What commands say, in terminals of any width."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from quintet.cli import COMMANDS, main
from quintet.cli.layout import entry, sentence
from quintet.cli.parser import actions_of
from quintet.cli.styled import plain, text_of, wrapped
from quintet.cli.words import parser_of

WORDS = "a text of some more words than fit"


@pytest.mark.req("first_minutes:F16")
def test_a_text_stands_beside_its_name_below_it_or_unbroken_where_no_terminal_is() -> None:
    assert entry("  name  ", WORDS, 0) == [f"  name  {WORDS}"]
    assert entry("  name  ", WORDS, 80) == [f"  name  {WORDS}"]
    assert entry("  name  ", WORDS, 30) == ["  name  a text of some more", "        words than fit"]
    assert entry("  a longer name  ", WORDS, 30) == [
        "  a longer name",
        "      a text of some more",
        "      words than fit",
    ]
    assert entry("name  ", "", 30) == ["name"]
    assert entry("na\x1bme ", "te\x1bxt", 80) == ["na\\x1bme te\\x1bxt"]


@pytest.mark.req("first_minutes:F16")
def test_a_sentence_is_broken_between_words_and_set_in() -> None:
    assert sentence(f"  {WORDS}", 20) == ["  a text of some", "      more words", "      than fit"]
    assert sentence(WORDS, 0) == sentence(WORDS, 80) == [WORDS]


@pytest.mark.req("first_minutes:F16")
def test_words_on_both_sides_of_a_wide_gap_stay_two() -> None:
    assert [text_of(row) for row in wrapped(plain("one" + " " * 30 + "two"), 20)] == ["one", "two"]


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    monkeypatch.setattr("quintet.cli.terminal.terminal_width", lambda stream: request.param)
    monkeypatch.setattr("quintet.cli.parser.terminal_width", lambda stream: request.param)
    monkeypatch.setenv("COLUMNS", str(request.param))  # what argparse goes by
    return int(request.param)


LOOKING = [
    [],
    ["--help"],
    ["models"],
    ["agents"],
    ["stats"],
    ["audit", "list"],
    ["audit", "verify"],
    ["events"],
    ["threads", "list"],
    ["threads", "search", "hello"],
    ["policy", "explain", "shell", "git push --force origin a-branch"],
    ["methods"],
    ["methods", "wire"],
    ["gc"],
    ["auth", "list"],
    ["approvals", "rules"],
    ["undo"],
    ["threads", "nonsense"],
    ["run", "--mode", "alow", "x"],
    *([name] for name in COMMANDS if actions_of(parser_of(name))),
]


@pytest.mark.req("first_minutes:F16")
@pytest.mark.parametrize("columns", [40, 200], indirect=True)
def test_no_command_tears_its_words_apart(
    columns: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home = ["--home", str(tmp_path / "home")]
    assert main([*home, "run", "echo hello"]) == 0
    capsys.readouterr()
    for words in LOOKING:
        with contextlib.suppress(SystemExit):  # a mistake
            main(words if words == ["--help"] else [*home, *words])
        told = capsys.readouterr()
        assert told.out + told.err, words
        for line in (told.out + told.err).splitlines():
            # A word that fits into no row is all that may be in one that is full.
            assert len(line) <= columns or len(line.split()) == 1, (words, line)
