"""The clock's part of a check-up: whether the time of day can be true, and whether time passes evenly."""

from __future__ import annotations

from datetime import UTC, datetime

from quintet.domain.checkup import Row, fail, ok
from quintet.domain.ports import Clock

NOT_BEFORE_MS = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)  # older than this program
NOT_AFTER_MS = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp() * 1000)
UNEVEN_MS = 1_000  # more than that in so short a look is a jump, not a busy machine
_SET = "sudo timedatectl set-ntp true"


class ClockCheck:
    """Begun at the start of a check-up and read at its end: what passed meanwhile must be the same by both clocks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall_ms = clock.now_ms()
        self._steady_s = clock.monotonic_s()

    def row(self) -> Row:
        now_ms = self._clock.now_ms()
        day = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
        if not NOT_BEFORE_MS <= now_ms <= NOT_AFTER_MS:
            return fail("clock", f"it says {day}, which cannot be: keys expire and budgets count by it", _SET)
        passed_ms = (self._clock.monotonic_s() - self._steady_s) * 1000
        apart_ms = now_ms - self._wall_ms - passed_ms
        if abs(apart_ms) > UNEVEN_MS:
            words = f"the time of day jumped by {apart_ms / 1000:+.0f} s while this ran"
            return fail("clock", words, f"{_SET}, then look again")
        return ok("clock", f"{day}, and it passes evenly")
