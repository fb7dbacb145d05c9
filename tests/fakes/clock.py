"""A clock that a test sets: it stands still until told otherwise."""

from __future__ import annotations


class SettableClock:
    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.ms = now_ms
        self.passed_s = 0.0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_s(self) -> float:
        return self.passed_s

    def step(self, seconds: float) -> None:
        """Time passes: both hands move."""
        self.ms += int(seconds * 1000)
        self.passed_s += seconds
