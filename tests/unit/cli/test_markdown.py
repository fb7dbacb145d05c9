"""Markdown on a terminal: the same however it is cut, never wider than the terminal, a line that is whole is final."""

from __future__ import annotations

import pytest

from quintet.cli.markdown import Growing, rendered
from quintet.cli.styled import Line, columns, paint, plain, text_of, wrapped
from tests.fakes.hostile import ATTACKS, corpus, obeyed

DOCUMENT = """# Title with **weight**

Some *soft* and **strong `code`** words, ~~gone~~, a [link](https://a.example/b_(c)) and ![picture](p.png).
snake_case_names and 2 * 3 * 4 stay; \\*so do these\\*, and unclosed **this.

- one item that is rather long and therefore has to be broken somewhere
  1. inner
- [x] done
- [ ] open

> quoted *words* that go on for longer than a narrow terminal is wide

| name | value |
|:-----|------:|
| `a`  | 1 \\| 2 |

```python
def f():
\treturn "日本語" * 3  # a line that is wider than the terminal and has to be cut
# no heading **here**
```
~~~
``` still inside
~~~
---
漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字 e\u0301nd \U0001f468\u200d\U0001f4bb
the last line has no newline"""


def shown(pieces: list[str], width: int = 40) -> list[Line]:
    text = Growing(lambda: width)
    lines: list[Line] = []
    for piece in pieces:
        lines += text.feed(piece)
        text.growing()  # looking at it changes nothing
    return lines + text.end()


def rows(source: str, width: int = 40) -> list[str]:
    return [text_of(line) for line in shown([source], width)]


@pytest.mark.parametrize("source", [DOCUMENT, corpus(nul=True)], ids=["document", "hostile"])
def test_text_cut_at_any_place_gives_the_same_lines(source: str) -> None:
    whole = shown([source])
    for place in range(len(source)):
        assert shown([source[:place], source[place:]]) == whole, source[:place]
    assert shown(list(source)) == whole


@pytest.mark.parametrize("width", [12, 20, 40, 79, 200])
def test_no_row_is_wider_than_the_terminal_and_no_word_is_lost(width: int) -> None:
    lines = shown([DOCUMENT], width)
    assert max(columns(text_of(line)) for line in lines) <= width
    letters = "".join("".join(text_of(line) for line in lines).split())
    for word in ("Title", "therefore", "somewhere", "terminal", "日本語", "https://a.example/b_(c)", "hasnonewline"):
        assert word in letters.replace("│", ""), word


def test_blocks_look_like_what_they_are() -> None:
    assert rows("- [x] done\n- [ ] open\n* star\n3) third") == ["☑ done", "☐ open", "• star", "3) third"]
    assert rows("| a | b |\n|---|:-:|\n| 1 | 2 |") == ["a │ b", "─" * 40, "1 │ 2"]
    assert rows("> > deep") == ["│ │ deep"]
    assert rows("```py\n# x **y**\n```\n# z") == ["```py", "# x **y**", "```", "# z"]
    assert rows("- a b c d e f g h i j k l m n o p q r s t u v")[1].startswith("  ")


def test_emphasis_code_and_links_are_styled_and_a_link_shows_where_it_leads() -> None:
    assert rendered("a **b** *c* `d` ~~e~~", "", 80)[0] == [
        (("", "a "), ("bold", "b"), ("", " "), ("italic", "c"), ("", " "), ("cyan", "`d`"), ("", " "), ("strike", "e"))
    ]
    (link,) = rendered("[your bank](https://evil.example)", "", 80)[0]
    assert link == (("underline", "your bank"), ("dim", " (https://evil.example)"))
    assert rows("`**not bold**`") == ["`**not bold**`"]
    assert rows("**bold *and soft* words**") == ["bold and soft words"]


def test_what_is_no_markdown_is_shown_as_it_was_written() -> None:
    for text in ("a * b * c", "snake_case_name", "**open", "[no](link", "#no heading", "5 < 6 > 4", "1.5 is a number"):
        assert rows(text) == [text]


def test_the_growing_line_is_shown_before_it_is_whole() -> None:
    text = Growing(lambda: 40)
    assert text.feed("first\nsec") == [plain("first")]
    assert text.growing() == [plain("sec")]
    assert text.feed("ond\n") == [plain("second")]
    assert text.growing() == []


@pytest.mark.parametrize("piece", ["*a", "**", "[a", "`a", "`", "[a](", "_a ", "~~a", "![a]((", "**a *b ", "> ", "- "])
def test_a_line_made_to_be_slow_is_not(piece: str) -> None:
    """Ends at all, without deep recursion; how fast is what the suite's time limit says."""
    for size in (4_000, 100_000):
        assert rendered(piece * (size // len(piece)) + "x", "", 80)[0]


@pytest.mark.req("security:S43a")
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_nothing_in_markdown_reaches_a_terminal_unspelled(attack: str) -> None:
    for source in (
        attack,
        f"# {attack}",
        f"**{attack}**",
        f"`{attack}`",
        f"[{attack}]({attack})",
        f"```\n{attack}",
        f"| {attack} |",
    ):
        for line in shown([source]):
            assert not obeyed(paint(line, color=False))
            assert not obeyed(paint(line, color=True), drawing=True)
            assert not obeyed(text_of(line))  # before painting: what is laid out is what is shown


@pytest.mark.req("security:S43a")
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_painting_spells_out_whatever_comes_in_a_span(attack: str) -> None:
    for style in ("", "bold cyan"):
        assert not obeyed(paint(((style, attack),), color=False))
        assert not obeyed(paint(((style, attack),), color=True), drawing=True)


def test_wrapping_keeps_styles_and_hangs_what_follows() -> None:
    line: Line = (("bold", "one two"), ("", " three "), ("cyan", "four"))
    assert wrapped(line, 11, plain("- "), plain("  ")) == [
        (("", "- "), ("bold", "one two")),
        (("", "  three"),),
        (("", "  "), ("cyan", "four")),
    ]
    assert [text_of(row) for row in wrapped(plain("x" * 25), 10)] == ["x" * 10, "x" * 10, "x" * 5]
    assert [text_of(row) for row in wrapped(plain("漢" * 7), 11)] == ["漢" * 5, "漢" * 2]
