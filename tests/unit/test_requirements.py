"""The manifests and the tests agree, both ways, and the published table is up to date."""

from __future__ import annotations

from pathlib import Path

from tests.requirement_index import carried, requirements, table

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
