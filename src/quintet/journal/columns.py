"""Columns of a row as SQLite gives them back. A flipped bit can change even a value's type, and what is printed as
damaged must still be printable: so each value is taken for what its column holds, or for nothing."""

from __future__ import annotations

from typing import Any

_LAST_MS = 253_402_300_799_999  # the end of the year 9999, the last one that a date can be made of


def number(value: Any) -> int:
    return value if type(value) is int else 0


def moment(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= _LAST_MS else 0


def blob(value: Any) -> bytes:
    return value if type(value) is bytes else b""


def text(value: Any) -> str:
    return value if type(value) is str else ""
