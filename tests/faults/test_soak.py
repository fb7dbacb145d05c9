"""A soak: one process works on and on, readers come and go, and it is as large at the end as near the beginning.

The run is cut into fifths, which are the minutes of the five-minute run: the last is held against the second.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw
import pytest

from quintet.app import open_app
from tests.faults import tiers
from tests.faults.ledger import all_events
from tests.faults.processes import QUINTET, Process, python_running, quintet, running, write_home

pytestmark = pytest.mark.fault
TURNS, A_SECOND = {"test": (100, 8.0), "pr": (300, 1.0), "long": (8 * 3600, 1.0)}[tiers.TIER]
EARLY = 2 if tiers.TIER == "test" else 1  # so short a run is still warming up in its second fifth
GRACE_S = 900.0
COUNTS = ("descriptors", "threads", "children")
Sample = dict[str, float]


@contextlib.contextmanager
def soaking(home: Path) -> Iterator[Process]:
    with python_running("tests.faults.soak", str(home), str(TURNS), str(A_SECOND)) as process:
        yield process


class Follower:
    """Other processes on the same home: each follows, is killed, and the next goes on behind its last whole line."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.cursor = 0
        self.lines = 0
        self.processes = 0

    def follow(self, soak: Process) -> None:
        """Until the soak is over."""
        while soak.popen.poll() is None:
            argv = (QUINTET, "events", "--follow", "--json", "--after", str(self.cursor), "--home", str(self.home))
            with running(*argv) as process:
                self.processes += 1
                with contextlib.suppress(subprocess.TimeoutExpired):
                    soak.popen.wait(3.0)
                process.kill()
                self.take([text for _, text in process.lines if text.endswith("\n")])

    def rest(self) -> None:
        self.take(
            quintet("events", "--json", "--after", str(self.cursor), home=self.home, timeout_s=60).out.splitlines()
        )

    def take(self, lines: Sequence[str]) -> None:
        got = [json.loads(line)["cursor"] for line in lines]
        assert got == sorted(set(got)), "out of order or twice"
        assert all(number > self.cursor for number in got), "a line from before the cursor"
        self.cursor, self.lines = max([self.cursor, *got]), self.lines + len(got)


def fifth(samples: Sequence[Sample], number: int) -> Sequence[Sample]:
    return samples[len(samples) * number // 5 : len(samples) * (number + 1) // 5]


def slope_mib_an_hour(samples: Sequence[Sample]) -> float:
    """Of the straight line through all but the first eighth."""
    late = samples[len(samples) // 8 :]
    line = statistics.linear_regression([s["at_s"] / 3600 for s in late], [s["rss_mib"] for s in late])
    return line.slope


def size_on_disk(home: Path, *, index: bool) -> int:
    if not index:
        connection = apsw.Connection(str(home / "quintet.db"))
        connection.execute("DROP TABLE words")
        connection.execute("VACUUM").fetchall()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.close()
    return sum(file.stat().st_size for file in home.glob("quintet.db*"))


async def pruned(home: Path) -> int:
    """One gc after the grace period; how many deltas went."""
    async with open_app(str(home), "after") as app:
        report = await app.journal.prune(now_ms=app.clock.now_ms() + int(GRACE_S * 1000) + 1, grace_s=GRACE_S)
    return report.deltas


async def count_events(home: Path) -> int:
    async with open_app(str(home), "count") as app:
        return len(await all_events(app.journal))


@pytest.mark.req("reliability:R8")
@pytest.mark.timeout(tiers.limit_s({"test": 90, "pr": 480}.get(tiers.TIER, 0)))
def test_a_soak_of_turns_reconnects_and_forks_leaves_everything_flat(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    follower = Follower(home)
    with soaking(home) as process:
        follower.follow(process)
        code = process.wait(30)
        assert code == 0, process.words()
        *samples, last = [json.loads(line) for _, line in process.lines]
    assert len(samples) == TURNS
    early_part, late_part = fifth(samples, EARLY), fifth(samples, 4)
    early, late = (statistics.fmean(s["rss_mib"] for s in part) for part in (early_part, late_part))
    print(f"{TURNS} turns in {samples[-1]['at_s']:.0f} s; RSS {early:.1f} then {late:.1f} MiB ({late / early:.1%})")
    if tiers.TIER == "long":
        slope = slope_mib_an_hour(samples)
        print(f"RSS grew by {slope:.2f} MiB an hour")
        assert slope < 1
    else:
        assert late <= 1.05 * early
    for what in COUNTS:
        before, after = (max(s[what] for s in part) for part in (early_part, late_part))
        print(f"{what}: {before:.0f} then {after:.0f}")
        assert after <= before, what
    if tiers.TIER != "long":  # there the oldest deltas are pruned by the process itself
        follower.rest()
        events = asyncio.run(count_events(home))
        assert last["readers_saw"] == [events], "a reader missed something or got it twice"
        assert follower.lines == events, "a follower missed something or got it twice"
    print(
        f"{last['connections']} connections inside, {follower.processes} followers with {follower.lines} lines outside"
    )
    assert follower.processes > 1
    before_pruning = size_on_disk(home, index=True) / last["payload"]
    deltas = asyncio.run(pruned(home))
    assert deltas
    with_index = size_on_disk(home, index=True) / last["payload"]
    without = size_on_disk(home, index=False) / last["payload"]
    print(
        f"payload {last['payload'] / 1024:.0f} KiB; disk {before_pruning:.2f} x before pruning, {with_index:.2f} x "
        f"after it, {without:.2f} x without the index"
    )
    assert before_pruning <= 30
    assert with_index <= 2
    assert without <= 1.5
