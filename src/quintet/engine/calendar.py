"""Ranges in words, such as "2 weeks", as whole periods of the UTC calendar up to now. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import msgspec

from quintet.domain.errors import Invalid

UNITS = ("minutes", "hours", "days", "weeks", "months", "years")
USUAL = "1 week"
USAGE = f"Usage: N {'|'.join(UNITS)}, such as `10 minutes` or `1 year` (default: {USUAL})"
_RANGE = re.compile(r"([0-9]{1,9})\s+([A-Za-z]+)")


class Range(msgspec.Struct, frozen=True):
    said: str
    count: int
    unit: str  # minute, hour, …
    start: datetime
    end: datetime


def range_of(said: str, now: datetime) -> Range:
    """ "1 month" is the current month so far, "2 months" the one before and the current one. Invalid with the usage."""
    words = said.strip() or USUAL
    found = _RANGE.fullmatch(words)
    unit = found[2].lower().removesuffix("s") if found else ""
    count = int(found[1]) if found else 0
    if f"{unit}s" not in UNITS or count < 1:
        raise Invalid(USAGE, next_step="")
    now = now.astimezone(UTC)
    try:
        return Range(words, count, unit, _start(now, count, unit), now)
    except (ValueError, OverflowError):
        raise Invalid(USAGE, next_step="") from None  # further back than there are years


def _start(now: datetime, count: int, unit: str) -> datetime:
    earlier = count - 1
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "minute":
            return now.replace(second=0, microsecond=0) - timedelta(minutes=earlier)
        case "hour":
            return now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=earlier)
        case "day":
            return day - timedelta(days=earlier)
        case "week":
            return day - timedelta(days=day.weekday(), weeks=earlier)
        case "month":
            months = now.year * 12 + now.month - 1 - earlier
            return day.replace(year=months // 12, month=months % 12 + 1, day=1)
    return day.replace(year=now.year - earlier, month=1, day=1)
