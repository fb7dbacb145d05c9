"""A storm of reconnects: whatever a reader was cut off from, its cursor brings it back to; the union is the log."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from quintet.app import App
from quintet.config import load_config
from quintet.domain.cursor import BEFORE_EVERYTHING, first_seq_to_read, frames_after, public_number
from quintet.domain.event import Event, Gap
from quintet.engine.subscription import replay
from quintet.journal.opening import open_journal
from tests.faults import tiers
from tests.faults.acks import is_fact, told
from tests.faults.ledger import all_events
from tests.faults.processes import python_running, quintet, quintet_running, write_home

pytestmark = pytest.mark.fault
READERS = 8


@contextlib.asynccontextmanager
async def opened(home: Path) -> AsyncIterator[App]:
    app = App(home, load_config(str(home)), await open_journal(home, protocol="reader"))
    try:
        yield app
    finally:
        await app.close()


def frames_of(event: Event) -> Sequence[list[Any]]:
    """A projection with one to four frames, a pure function of the event."""
    return [[event.kind, k, told(event)] for k in range(1 + event.seq % 4)]


class Reader:
    """Reads frames, is cut after any one of them, and comes back with the number of the last it has seen."""

    def __init__(self, app: App, dice: random.Random, *, slow: bool) -> None:
        self.app = app
        self.dice = dice
        self.slow = slow
        self.cursor = BEFORE_EVERYTHING
        self.got: list[tuple[int, list[Any]]] = []
        self.cuts_inside_an_event = 0

    async def connect(self, frames: int, until: int = 0) -> None:
        """One connection: so many frames, or up to this seq."""
        stream = aiter(self.app.feed.follow(first_seq_to_read(self.cursor)))
        try:
            async for entry in stream:
                assert isinstance(entry, Event), entry
                if self.slow:
                    await asyncio.sleep(self.dice.random() * 0.002)
                for number, frame in frames_after(self.cursor, [entry], frames_of):
                    self.got.append((number, frame))
                    self.cursor = number
                    frames -= 1
                    if not frames:
                        self.cuts_inside_an_event += number != public_number(entry.seq, len(frames_of(entry)) - 1)
                        return
                if until and entry.seq >= until:
                    return
        finally:
            await stream.aclose()  # type: ignore[attr-defined]


@pytest.mark.req("reliability:R4", "mechanisms:M1.cursor", "mechanisms:M1.publisher")
@pytest.mark.parametrize(("part", "reconnects"), tiers.shares("R4", 2))
@pytest.mark.timeout(tiers.limit_s(60))
async def test_readers_cut_anywhere_get_the_whole_log_in_order(tmp_path: Path, part: int, reconnects: int) -> None:
    dice = tiers.seeded(f"reconnect{part}")
    home = write_home(tmp_path / "home")
    with python_running("tests.faults.driver", str(home), str(dice.random()), "0") as writer:
        await asyncio.to_thread(writer.until, lambda line: line.startswith("ready"))
        async with opened(home) as app:
            readers = [Reader(app, dice, slow=n % 4 == 3) for n in range(READERS)]

            async def storm(reader: Reader, times: int) -> None:
                for _ in range(times):
                    await asyncio.wait_for(reader.connect(dice.randint(1, 120)), 30)

            share = -(-reconnects // READERS)
            await asyncio.gather(*(storm(reader, share) for reader in readers))
            writer.kill()
            await app.journal.recover()
            last = (await app.journal.marks()).last
            await asyncio.gather(*(asyncio.wait_for(r.connect(10**9, until=last), 30) for r in readers))
            log = await all_events(app.journal)
    expected = [(public_number(e.seq, k), frame) for e in log for k, frame in enumerate(frames_of(e))]
    for reader in readers:
        numbers = [number for number, _ in reader.got]
        assert numbers == sorted(set(numbers)), "out of order or twice"
        assert reader.got == expected
    inside = sum(r.cuts_inside_an_event for r in readers)
    assert inside
    print(f"{share * READERS} reconnects, {inside} inside an event; {len(log)} events, {len(expected)} frames each")


@pytest.mark.req("reliability:R4", "mechanisms:M1.cursor")
@pytest.mark.timeout(tiers.limit_s(60))
async def test_followers_on_the_command_line_killed_anywhere_go_on_at_their_cursor(tmp_path: Path) -> None:
    dice = tiers.seeded("followers")
    home = write_home(tmp_path / "home")
    got: list[dict[str, Any]] = []
    rounds = {"test": 4, "pr": 12, "long": 100}[tiers.TIER]
    with python_running("tests.faults.driver", str(home), str(dice.random()), "0") as writer:
        await asyncio.to_thread(writer.until, lambda line: line.startswith("ready"))
        for _ in range(rounds):
            await asyncio.to_thread(_follow, home, got, dice.randint(5, 200))
        writer.kill()
    async with opened(home) as app:
        await app.journal.recover()
        log = await all_events(app.journal)
    await asyncio.to_thread(_follow, home, got, len(log) - len(got))
    assert [line["cursor"] for line in got] == [public_number(e.seq) for e in log]
    assert [(line["kind"], line["turn"], line["id"]) for line in got] == [(e.kind, e.turn, e.id) for e in log]
    print(f"{rounds} followers killed; {len(log)} events")


def _follow(home: Path, got: list[dict[str, Any]], lines: int) -> None:
    after = str(got[-1]["cursor"]) if got else "0"
    with quintet_running("events", "--follow", "--json", "--after", after, home=home) as follower:
        index = 0
        for _ in range(lines):
            index, _, line = follower.until(lambda text: text.endswith("\n"), after=index)
            got.append(json.loads(line))
            index += 1
        follower.kill()


@pytest.mark.req("reliability:R4", "mechanisms:M1.gap")
async def test_nobody_is_told_of_a_gap_where_nothing_was_pruned(tmp_path: Path) -> None:
    """Housekeeping looks at a store whose deltas are all within the grace period; then they are pruned indeed."""
    home = write_home(tmp_path / "home", 'scope: turn\nrepeat: 20 text: "word "\n')
    lines = (await asyncio.to_thread(quintet, "run", "--json", "first", home=home)).lines
    async with opened(home) as app:
        now = app.clock.now_ms()
        assert (await app.journal.prune(now_ms=now)).deltas == 0
        assert [type(e) async for e in replay(app.journal, 0)] == [Event] * (
            len(lines) + 2
        )  # and project.added, thread.created
        assert (await app.journal.prune(now_ms=now + 3_600_000)).deltas == 20
        kept = [e async for e in replay(app.journal, 0)]
    assert isinstance(kept[0], Gap)
    assert not [e for e in kept[1:] if not isinstance(e, Event) or not is_fact(e.kind)]
    assert len(kept) == 1 + len(lines) + 2 - 20


@pytest.mark.req("reliability:R6")
async def test_a_reader_that_stops_reading_keeps_its_place_and_harms_nobody(tmp_path: Path) -> None:
    """In-process side of the bar: its live queue is bounded, the turn and the healthy reader never wait for it."""
    home = write_home(tmp_path / "home")
    with python_running("tests.faults.driver", str(home), "stopped", "0", "turns=15") as writer:
        await asyncio.to_thread(writer.until, lambda line: line.startswith("ready"))
        async with opened(home) as app:
            stopped = [app.feed.follow(0) for _ in range(50)]
            streams = [aiter(s) for s in stopped]
            for stream in streams:
                await anext(stream)  # one event each, then nothing more is taken
            assert await asyncio.to_thread(writer.wait, 40.0) == 0, writer.words()
            healthy = Reader(app, random.Random(0), slow=False)
            last = (await app.journal.marks()).last
            await asyncio.wait_for(healthy.connect(10**9, until=last), 20)
            assert max(len(s._queue) for s in stopped) <= 1_000
            rest = [event async for event in _up_to(streams[0], last)]
            assert [e.seq for e in rest] == [e.seq for e in (await all_events(app.journal))[1:]]
            for stream in streams:
                await stream.aclose()  # type: ignore[attr-defined]


async def _up_to(stream: AsyncIterator[Any], last: int) -> AsyncIterator[Event]:
    async for entry in stream:
        yield entry
        if entry.seq >= last:
            return
