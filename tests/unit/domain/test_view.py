"""The view: what people and the model see of a thread's items."""

from __future__ import annotations

import pytest

from quintet.domain.view import View, ViewReason, changed, forked, settled


def hidden(view: View, last: int) -> list[int]:
    return [n for n in range(1, last + 1) if view.is_hidden(n)]


@pytest.mark.req("mechanisms:M5.revert")
def test_revert_hides_what_follows_until_unrevert() -> None:
    view = changed(View(), ViewReason.REVERT, last=6, keep_through=4)
    assert hidden(view, 6) == [5, 6]
    assert view.model_ordinals(6) == [1, 2, 3, 4]
    assert hidden(changed(view, ViewReason.UNREVERT, last=6), 6) == []


@pytest.mark.req("mechanisms:M5.revert")
def test_the_next_turn_makes_a_revert_final() -> None:
    view = settled(changed(View(), ViewReason.REVERT, last=6, keep_through=4))
    view = changed(view, ViewReason.UNREVERT, last=8)
    assert hidden(view, 8) == [5, 6]
    assert view.model_ordinals(8) == [1, 2, 3, 4, 7, 8]


@pytest.mark.req("mechanisms:M5.revert")
def test_a_second_revert_replaces_a_pending_one() -> None:
    view = changed(View(), ViewReason.REVERT, last=6, keep_through=4)
    assert hidden(changed(view, ViewReason.REVERT, last=6, keep_through=2), 6) == [3, 4, 5, 6]
    assert hidden(changed(view, ViewReason.REVERT, last=6, keep_through=6), 6) == []


@pytest.mark.req("mechanisms:M5.compaction")
def test_compaction_changes_only_where_the_model_starts_reading() -> None:
    view = changed(View(), ViewReason.COMPACTION, last=7, first_kept=5, summary=7)
    assert hidden(view, 9) == []
    assert view.model_ordinals(9) == [7, 5, 6, 8, 9]


@pytest.mark.req("mechanisms:M5.compaction", "mechanisms:M5.revert")
def test_reverting_past_a_compaction_brings_the_originals_back() -> None:
    view = changed(View(), ViewReason.COMPACTION, last=7, first_kept=5, summary=7)
    view = changed(view, ViewReason.REVERT, last=9, keep_through=3)
    assert view.model_ordinals(9) == [1, 2, 3]
    assert settled(view).marks == ()
    assert changed(view, ViewReason.UNREVERT, last=9).model_ordinals(9) == [7, 5, 6, 8, 9]


@pytest.mark.req("mechanisms:M5.compaction")
def test_a_later_compaction_wins_and_older_summaries_are_not_sent() -> None:
    view = changed(View(), ViewReason.COMPACTION, last=5, first_kept=4, summary=5)
    view = changed(view, ViewReason.COMPACTION, last=9, first_kept=5, summary=9)
    assert view.model_ordinals(10) == [9, 6, 7, 8, 10]


@pytest.mark.req("models:C2", "models:C11")
def test_an_older_item_that_stays_whole_stands_behind_the_summary_unless_it_is_hidden_or_kept_anyway() -> None:
    view = changed(View(), ViewReason.COMPACTION, last=9, first_kept=7, summary=9, also=(2, 3))
    assert view.model_ordinals(10) == [9, 2, 3, 7, 8, 10]
    assert forked(view, 10).model_ordinals(10) == [9, 2, 3, 7, 8, 10]
    assert changed(view, ViewReason.REVERT, last=10, keep_through=8).model_ordinals(10) == [1, 2, 3, 4, 5, 6, 7, 8]
    later = changed(view, ViewReason.COMPACTION, last=12, first_kept=10, summary=12, also=(3,))
    assert later.model_ordinals(12) == [12, 3, 10, 11]


@pytest.mark.req("mechanisms:M5.clear")
def test_clear_empties_the_models_view_and_hides_nothing_from_people() -> None:
    view = changed(View(), ViewReason.CLEAR, last=5)
    assert view.model_ordinals(5) == []
    assert view.model_ordinals(7) == [6, 7]
    assert hidden(view, 7) == []


@pytest.mark.req("mechanisms:M5.replace")
def test_replace_hides_everything_before_it() -> None:
    view = changed(View(), ViewReason.COMPACTION, last=4, first_kept=3, summary=4)
    view = changed(view, ViewReason.REPLACE, last=5)
    assert hidden(view, 7) == [1, 2, 3, 4, 5]
    assert view.model_ordinals(7) == [6, 7]
    assert changed(View(), ViewReason.REPLACE, last=0) == View()


@pytest.mark.req("mechanisms:M5.fork")
def test_a_fork_inside_a_compacted_stretch_takes_the_originals() -> None:
    view = changed(View(), ViewReason.COMPACTION, last=7, first_kept=5, summary=7)
    assert forked(view, 6).model_ordinals(6) == [1, 2, 3, 4, 5, 6]
    assert forked(view, 8).model_ordinals(8) == [7, 5, 6, 8]
