"""The manifests and the tests agree, both ways, and the published table is up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quintet.cli import docs
from tests import dependencies
from tests.requirement_index import PARTS, carried, of_page, requirements, table

ROOT = Path(__file__).parents[2]


def test_every_requirement_has_a_test_or_says_why_not() -> None:
    shown = carried()
    missing = [r.identity for r in requirements().values() if not r.deferred and r.identity not in shown]
    assert not missing


def test_every_mark_names_a_known_requirement_that_is_not_deferred() -> None:
    known = requirements()
    unknown = {i: tests for i, tests in carried().items() if i not in known or known[i].deferred}
    assert not unknown


def test_the_published_table_is_up_to_date() -> None:
    assert (ROOT / "docs" / "requirements.md").read_text() == table(), "run `make docs`"


@pytest.mark.req("first_minutes:F32")
@pytest.mark.parametrize("page", ["reliability", "security"])
def test_the_page_for_people_names_every_promise_once_shown_or_not(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    assert docs.renewed(text, PARTS) == text, "run `make docs`"
    for one in of_page(page):
        identity = one.identity.partition(":")[2]
        (row,) = re.findall(rf"^\| {identity} \|.*$", text, re.MULTILINE)
        assert (one.deferred or "`tests/") in row


@pytest.mark.req("first_minutes:F32")
def test_no_number_is_left_out_without_a_word() -> None:
    """R1 to R21 and S1 to S55 are all there: what is not shown is said to be not shown."""
    for letter, last, page in (("R", 21, "reliability"), ("S", 55, "security")):
        known = {one.identity.partition(":")[2] for one in of_page(page)}
        assert not [n for n in range(1, last + 1) if f"{letter}{n}" not in known]


def test_every_generated_part_has_somebody_who_writes_it() -> None:
    known = {*docs.PARTS, *PARTS, *dependencies.PARTS}
    found = {
        name
        for page in (ROOT / "docs").rglob("*.md")
        for name in re.findall(r"<!-- generated: (.*) -->", page.read_text())
    }
    assert found == known
