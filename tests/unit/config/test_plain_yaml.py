"""The plain part of YAML: what is read, and that everything else is refused by its line."""

from __future__ import annotations

from typing import Any

import pytest

from quintet.config.plain_yaml import parse_plain_yaml
from quintet.domain.errors import Invalid

WHOLE = """
---
# an agent
version: 1
agent:
  extend: default          # words behind it
  name: "with: a colon"
  when_to_use: |
    first line

    second # no comment
  folded: >-
    one
    two
  tools:
    - "kimi_cli.tools.shell:Shell"
    # - left out
    - 'b'
    - plain
  exclude_tools:
  - same depth
  empty:
  none: null
  yes: true
  nothing: []
"""


def test_tables_lists_and_texts_are_read() -> None:
    assert parse_plain_yaml(WHOLE, "it") == {
        "version": "1",
        "agent": {
            "extend": "default",
            "name": "with: a colon",
            "when_to_use": "first line\n\nsecond # no comment\n",
            "folded": "one two\n",
            "tools": ["kimi_cli.tools.shell:Shell", "b", "plain"],
            "exclude_tools": ["same depth"],
            "empty": None,
            "none": None,
            "yes": True,
            "nothing": [],
        },
    }


@pytest.mark.parametrize("text", ["", "\n# nothing\n---\n"])
def test_nothing_is_an_empty_table(text: str) -> None:
    assert parse_plain_yaml(text, "it") == {}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: &anchor b", 1),
        ("a: [1, 2]", 1),
        ("a: {b: c}", 1),
        ("a: *other", 1),
        ("a: !tag b", 1),
        ("just words", 1),
        ("a: b\n  c: d", 2),
        ("a:\n  - b: c", 2),
        ("a: 1\na: 2", 2),
        ("a:\n\tb: c", 2),
        ('a: "half', 1),
        ("- a\n- b", 3),
    ],
)
def test_what_goes_beyond_is_refused_by_its_line(text: str, line: int) -> None:
    with pytest.raises(Invalid, match=rf"^it, line {line}: "):
        parse_plain_yaml(text, "it")


def test_whatever_is_cut_off_ends_in_a_table_or_a_refusal() -> None:
    for end in range(len(WHOLE)):
        try:
            found: Any = parse_plain_yaml(WHOLE[:end], "it")
        except Invalid:
            continue
        assert isinstance(found, dict)
