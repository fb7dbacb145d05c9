"""Steps: what a sequence of undos and redos amounts to."""

from __future__ import annotations

import pytest

from quintet.domain.event import FilesRestored
from quintet.domain.view import ViewReason
from quintet.engine.changes import Restore
from quintet.engine.steps import END, steps_of

pytestmark = pytest.mark.req("mechanisms:M8.redo")


def restores(*said: tuple[str, int]) -> list[Restore]:
    """From "undo" or "redo" and the place it led to, numbered from 1."""
    reason = {"undo": ViewReason.REVERT, "redo": ViewReason.UNREVERT}
    return [
        Restore(number, FilesRestored(f"/d{number}", reason[word], "trn", (), keep_through=place))
        for number, (word, place) in enumerate(said, 1)
    ]


def numbers(found: list[Restore]) -> list[int]:
    return [restore.seq for restore in found]


def test_a_redo_in_two_directories_is_one_redo() -> None:
    steps = steps_of(restores(("undo", 3), ("undo", 3), ("redo", END), ("redo", END)))
    assert (steps.at, steps.back) == (END, [])
    assert numbers(steps.redone) == [1, 2, 3, 4]


def test_an_undo_after_a_redo_leaves_nothing_to_be_redone_again() -> None:
    steps = steps_of(restores(("undo", 3), ("redo", END), ("undo", 5)))
    assert (steps.at, steps.redone) == (5, [])
    assert numbers(steps.since(END)) == [3]


def test_a_redo_takes_one_of_several_steps_and_the_others_stay() -> None:
    steps = steps_of(restores(("undo", 5), ("undo", 3), ("redo", 5)))
    assert (steps.at, steps.before, numbers(steps.redone)) == (5, END, [2, 3])
