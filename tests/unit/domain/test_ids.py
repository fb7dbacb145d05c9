"""Ids: prefixed, sorted by time, unique."""

from __future__ import annotations

import pytest

from quintet.domain import ids


def test_ids_of_one_process_ascend_even_when_the_clock_steps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([2_000_000_000_000_000_000, 1_000_000_000_000_000_000, 1_500_000_000_000_000_000] * 50)
    monkeypatch.setattr(ids.time, "time_ns", lambda: next(times))
    made = [ids.new_id("thr") for _ in range(150)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_an_unknown_prefix_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown id prefix"):
        ids.new_id("xyz")


def test_the_form_of_an_id_is_recognised() -> None:
    assert ids.has_prefix(ids.new_id("thr"), "thr")
    assert not ids.has_prefix(ids.new_id("trn"), "thr")
    assert not ids.has_prefix("thr_short", "thr")


def test_event_ids_sort_like_their_numbers() -> None:
    numbers = [1, 9, 10, 255, 256, 65_536, 2**40]
    assert sorted(ids.event_id(n) for n in numbers) == [ids.event_id(n) for n in numbers]


def test_an_id_is_a_number_of_128_bits_and_back() -> None:
    for _ in range(100):
        made = ids.new_id("thr")
        number = ids.number_of(made)
        assert 0 < number < 1 << 128
        assert ids.from_number("thr", number) == made
