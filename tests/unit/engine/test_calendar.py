"""Ranges in words, as periods of the UTC calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from quintet.domain.errors import Invalid
from quintet.engine.calendar import USAGE, range_of

NOW = datetime(2026, 3, 18, 14, 35, 42, 500, tzinfo=UTC)  # a Wednesday


@pytest.mark.req("kward:120")
@pytest.mark.parametrize(
    ("said", "start"),
    [
        ("1 month", "2026-03-01T00:00:00"),
        ("2 months", "2026-02-01T00:00:00"),
        ("3 months", "2026-01-01T00:00:00"),
        ("4 months", "2025-12-01T00:00:00"),
        ("1 week", "2026-03-16T00:00:00"),
        ("2 weeks", "2026-03-09T00:00:00"),
        ("1 minute", "2026-03-18T14:35:00"),
        ("10 minutes", "2026-03-18T14:26:00"),
        ("15 hours", "2026-03-18T00:00:00"),
        ("1 day", "2026-03-18T00:00:00"),
        ("18 days", "2026-03-01T00:00:00"),
        ("1 year", "2026-01-01T00:00:00"),
        ("2 years", "2025-01-01T00:00:00"),
        ("", "2026-03-16T00:00:00"),
    ],
)
def test_a_range_begins_with_a_whole_period_and_ends_now(said: str, start: str) -> None:
    found = range_of(said, NOW)
    assert (found.start.isoformat(), found.end) == (f"{start}+00:00", NOW)


@pytest.mark.req("kward:120")
def test_it_is_the_calendar_of_utc_whatever_the_clock_s_zone_and_a_monday_begins_its_week() -> None:
    elsewhere = datetime(2026, 4, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert range_of("1 month", elsewhere).start == datetime(2026, 3, 1, tzinfo=UTC)
    monday = datetime(2026, 3, 16, 0, 0, 1, tzinfo=UTC)
    assert range_of("1 week", monday).start == datetime(2026, 3, 16, tzinfo=UTC)


@pytest.mark.req("kward:121")
def test_units_are_one_or_many_in_any_case() -> None:
    assert {range_of(said, NOW).start for said in ("3 DAYS", "3 day", " 3  Days ")} == {range_of("3 days", NOW).start}


@pytest.mark.req("kward:119")
@pytest.mark.parametrize(
    "said", ["banana", "0 days", "5 fortnights", "-1 days", "days", "1", "1.5 days", "99999 years", "999999999 weeks"]
)
def test_anything_else_is_refused_with_the_usage(said: str) -> None:
    with pytest.raises(Invalid) as told:
        range_of(said, NOW)
    assert told.value.line() == USAGE
