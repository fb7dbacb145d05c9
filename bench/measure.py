"""What every bench shares: a result row, a fresh home, percentiles. Figures are ratios taken in one run."""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table: what was measured, the figure, the bar it has to meet, and against what."""

    name: str
    value: float
    unit: str
    bar: float
    beside: str = ""
    at_least: bool = False  # the bar is a minimum instead of a maximum

    @property
    def met(self) -> bool:
        return self.value >= self.bar if self.at_least else self.value <= self.bar


@contextlib.contextmanager
def fresh_home() -> Iterator[Path]:
    """On the disk of the working tree: /tmp may be memory, and then syncing would cost nothing."""
    place = Path(os.environ.get("QUINTET_BENCH_DIR", Path(__file__).parent / "results"))
    place.mkdir(exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="home-", dir=place))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def rss_mib(pid: str = "self") -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0
