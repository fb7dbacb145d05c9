"""What a thread remembers of its compactions, so that one that does not help is not paid for again at every step.

Pure. Distance is counted in items: it needs no clock and goes on across turns and processes.
"""

from __future__ import annotations

import msgspec

EFFECTIVE = 0.9  # of the size before: what is left must be smaller than that
CLOSE = 6  # items: two or three steps
FIRST_WAIT = 4  # items; doubled with each try that did not help
LONGEST_WAIT = 4096
NOT_ITS_FAULT = ("cancelled", "interrupted")  # somebody stopped the turn; the next one may try at once


class CompactionRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    at: int = 0  # the thread's last ordinal when the last try was over
    failed: int = 0  # tries in a row that gave no summary
    ineffective: int = 0  # tries in a row whose summary hardly made the thread smaller

    @property
    def wait(self) -> int:
        """How many items must come before the next automatic one."""
        misses = self.failed + self.ineffective
        return min(FIRST_WAIT * 2**misses, LONGEST_WAIT) if misses else 0

    def may_try(self, last: int) -> bool:
        """Whether an automatic one is due again; a person may always ask."""
        return last - self.at >= self.wait


def recorded(
    record: CompactionRecord, *, last: int, before: int, after: int, summarised: bool, error: str = ""
) -> CompactionRecord:
    """The record after one more compaction; `error` is the code of what it failed with."""
    if error in NOT_ITS_FAULT or not (summarised or error):
        return record  # stopped from outside, or old results were left out without a model
    # Needed again as soon as it was allowed: the one before has not helped, however small its summary was.
    again = record.at and not record.failed and last - record.at <= record.wait + CLOSE
    if summarised and after <= before * EFFECTIVE and not again:
        return CompactionRecord(last, 0, record.ineffective if record.failed else 0)
    if after:
        return CompactionRecord(last, record.failed, record.ineffective + 1)
    return CompactionRecord(last, record.failed + 1, record.ineffective)
