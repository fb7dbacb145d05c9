"""One row of a check-up: what was looked at, how it is, and what mends it. Plain data, made by the rooms that look."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Health(StrEnum):
    OK = "ok"
    WARN = "warn"  # Quintet works, but not as well as it could
    FAIL = "fail"  # something does not work until it is mended


class Row(msgspec.Struct, frozen=True):
    name: str
    health: Health
    detail: str
    fix: str = ""  # the command that mends it; where all is well, what would make it better

    def __post_init__(self) -> None:
        if self.health is not Health.OK and not self.fix:
            raise ValueError(f"the row {self.name!r} does not say what mends it")


def ok(name: str, detail: str, better: str = "") -> Row:
    return Row(name, Health.OK, detail, better)


def warn(name: str, detail: str, fix: str) -> Row:
    return Row(name, Health.WARN, detail, fix)


def fail(name: str, detail: str, fix: str) -> Row:
    return Row(name, Health.FAIL, detail, fix)
