"""Winding back: how far a path can go back through what a thread did to it, without losing what others did."""

from __future__ import annotations

import pytest

from quintet.domain.checkpoint import FileKind, FileState
from quintet.engine.changes import CHANGED, LATE, SHARED, UNKNOWN, Move, by_path, wind_back


def state(name: str) -> FileState:
    return FileState(FileKind.FILE, 0o644, len(name), name) if name else FileState()


def move(before: str, after: str, begin: int, end: int = 0, **how: bool) -> Move:
    return Move("/w", "f", state(before), state(after), begin, end or begin + 1, **how)


def wound(now: str, *moves: Move, force: bool = False, named: bool = False) -> tuple[str, str]:
    (newest_first,) = by_path(moves).values()
    target, why = wind_back(newest_first, state(now), force=force, named=named)
    return target.digest, why


@pytest.mark.req("mechanisms:M8.undo")
@pytest.mark.parametrize(
    ("now", "moves", "without", "with_force"),
    [
        pytest.param("b", [move("a", "b", 1)], ("a", ""), "a", id="as it was left"),
        pytest.param("", [move("a", "", 1)], ("a", ""), "a", id="removed, comes back"),
        pytest.param("b", [move("", "b", 1)], ("", ""), "", id="made, goes away"),
        pytest.param("c", [move("a", "b", 1), move("b", "c", 3)], ("a", ""), "a", id="through several calls"),
        pytest.param("u", [move("a", "b", 1)], ("u", CHANGED), "a", id="changed since"),
        pytest.param("a", [move("a", "b", 1)], ("a", ""), "a", id="put back by hand"),
        pytest.param("c", [move("a", "b", 1), move("u", "c", 3)], ("u", CHANGED), "a", id="changed in between"),
        pytest.param("b", [move("a", "b", 1, shared=True)], ("b", SHARED), "a", id="perhaps another's"),
        pytest.param("b", [move("a", "b", 1, known=False)], ("b", UNKNOWN), "a", id="cut off"),
        pytest.param("a", [move("a", "b", 1, known=False)], ("a", ""), "a", id="cut off before it did anything"),
        pytest.param("c", [move("a", "c", 1, 6), move("b", "c", 2, 4)], ("a", ""), "a", id="at once, same end"),
        pytest.param("c", [move("a", "b", 1, 4), move("a", "c", 2, 6)], ("a", ""), "a", id="at once, later wins"),
    ],
)
def test_a_path_goes_back_as_far_as_it_is_what_was_left(
    now: str, moves: list[Move], without: tuple[str, str], with_force: str
) -> None:
    assert wound(now, *moves) == without
    assert wound(now, *moves, force=True) == (with_force, "")


@pytest.mark.req("mechanisms:M8.killed")
def test_what_changed_after_a_call_was_cut_off_is_taken_back_only_where_it_is_named() -> None:
    late = move("a", "b", 1, known=False, late=True)
    for force in (False, True):
        assert wound("b", late, force=force) == ("b", LATE)
        assert wound("b", late, force=force, named=True) == ("a", "")
    assert wound("a", late, force=True) == ("a", "")
    later = move("b", "c", 3)
    assert wound("c", late, later, force=True) == ("b", LATE), "a later call that is known goes back all the same"


@pytest.mark.req("mechanisms:M8.redo")
@pytest.mark.parametrize("now", ["b", "a"], ids=["cut off before", "cut off after"])
def test_a_restoration_that_was_said_and_perhaps_not_done_can_be_done_again(now: str) -> None:
    call, said = move("a", "b", 1), move("b", "a", 3, 3, restored=True)
    assert wound(now, call, said) == ("a", "")


def test_an_undo_in_between_does_not_keep_from_going_further_back() -> None:
    first, undone, second = move("a", "b", 1), move("b", "a", 3, 3, restored=True), move("a", "c", 5)
    assert wound("c", first, undone, second) == ("a", "")
    assert wound("b", undone) == ("b", ""), "not done, so there is nothing to take back"
    assert wound("a", undone) == ("b", ""), "a redo"
    assert wound("u", undone) == ("u", CHANGED)
