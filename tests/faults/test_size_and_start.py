"""Size and start: a large store is as quick as a small one, and starting costs little.

What else the machine does is not ours: of times measured several times the quickest counts, and of a start not the
part in which others had the processor. `make bench` publishes plain medians. A tenth of the store is built for every
run, all of it for a change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from bench.large_store import EVENTS, LONGEST, THREADS, build, reading
from bench.starting import Started, bare_s, server_ready, version_s

from quintet.domain.thread import ThreadQuery
from quintet.journal.opening import open_journal
from tests.faults import tiers
from tests.faults.processes import write_home

pytestmark = pytest.mark.fault
SCALE = 0.1 if tiers.TIER == "test" else 1.0
STARTS = 5


def own_s(starts: Sequence[Started]) -> float:
    print(", ".join(f"{one.took_s * 1000:.0f} ms ({one.queued_s * 1000:.0f} in line)" for one in starts))
    return min(one.took_s - one.queued_s for one in starts)


async def counts(home: Path, longest: str) -> tuple[int, int, int]:
    """(threads, events, events of the longest thread)"""
    journal = await open_journal(home, protocol="count")
    try:
        threads = len(await journal.threads(ThreadQuery(limit=2 * THREADS)))
        last, after, events = (await journal.marks()).last, 0, 0
        while page := await journal.events(after, root=longest, limit=10_000):
            after, events = page[-1].seq, events + len(page)
        return threads, last, events
    finally:
        await journal.close()


@pytest.mark.req("reliability:R17")
@pytest.mark.timeout(tiers.limit_s({"test": 120, "pr": 480}.get(tiers.TIER, 0)))
def test_a_large_store_starts_pages_and_searches_within_its_bounds(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    longest = asyncio.run(build(home, SCALE))
    threads, events, of_longest = asyncio.run(counts(home, longest))
    assert threads == THREADS * SCALE
    assert events >= EVENTS * SCALE
    assert of_longest >= LONGEST * SCALE
    # Each round looks at seven things; of the rounds the quickest counts, of the things in it the slowest.
    pages, searches = asyncio.run(reading(home, longest, STARTS))
    page = max(min(pages[n::3]) for n in range(3))
    search = max(min(searches[n::4]) for n in range(4))
    start = own_s([server_ready(home) for _ in range(STARTS)])
    print(
        f"{threads} threads, {events} events, {of_longest} in the longest: start {start * 1000:.0f} ms, "
        f"last page {page:.1f} ms (slowest seen {max(pages):.1f}), search {search:.1f} ms ({max(searches):.1f})"
    )
    assert start <= 2
    assert page <= 100
    assert search <= 200


@pytest.mark.req("reliability:R18")
def test_saying_the_version_takes_at_most_three_times_a_bare_python(tmp_path: Path) -> None:
    version_s()  # byte code and disk
    bare, version = [], []
    for _ in range(2 * STARTS):  # alternating, so that a slow moment of the machine hits both
        bare.append(bare_s())
        version.append(version_s())
    ratio = min(version) / min(bare)
    print(f"--version {min(version) * 1000:.0f} ms, bare Python {min(bare) * 1000:.0f} ms: {ratio:.2f} x")
    assert ratio <= 3


@pytest.mark.req("reliability:R18")
def test_the_server_is_ready_soon_and_small_while_idle(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    server_ready(home)  # makes the store
    starts = [server_ready(home) for _ in range(STARTS)]
    ready, memory = own_s(starts), max(one.memory_mib for one in starts)
    print(f"ready after {ready * 1000:.0f} ms, {memory:.1f} MiB while idle")
    assert ready <= 0.5
    assert memory <= 70
