"""Times as the wire writes them: UTC, milliseconds, `Z`. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def in_file_name(at_ms: int) -> str:
    """No colons: they mean something to other file systems."""
    return iso(at_ms).replace(":", "-")


def ms_of(text: object) -> int:
    """The time somebody else wrote; 0 where it is none."""
    if not isinstance(text, str):
        return 0
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0
