"""kill -9 in the middle of turns: what was acknowledged is there, nothing ran twice, every turn ended once."""

from __future__ import annotations

import asyncio
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.app import App
from quintet.config import load_config
from quintet.domain.errors import QuintetError
from quintet.domain.interaction import Verdict
from quintet.domain.principal import local
from quintet.engine.interactions import Answer
from quintet.journal import failpoints
from quintet.journal.opening import open_journal
from tests.fakes.memory_disk import in_memory
from tests.faults import tiers
from tests.faults.ledger import Ledger
from tests.faults.processes import Process, python_running, write_home
from tests.faults.syncs import lose_unsynced

LONGEST_ROUND_S = 0.9
ROUNDS_PER_HOME = 25
pytestmark = pytest.mark.fault


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """A kill leaves what the system has been given, on a disk or not; the larger tiers run on one."""
    if tiers.TIER != "test":
        yield tmp_path
        return
    with in_memory() as place:
        yield place


def driver(home: Path, seed: str, number: int, failpoint: str = "", **options: str):  # type: ignore[no-untyped-def]
    words = [f"{k}={v}" for k, v in options.items()]
    return python_running("tests.faults.driver", str(home), seed, str(number), *words, QUINTET_FAILPOINT=failpoint)


async def kill_somewhere(process: Process, dice: random.Random) -> None:
    """Mostly in the middle of the work, now and then while the home is being opened."""
    if dice.random() < 0.9:
        await asyncio.to_thread(process.until, lambda line: line.startswith("ready"))
        await asyncio.sleep(dice.random() * LONGEST_ROUND_S)
    else:
        await asyncio.sleep(0.1 + dice.random() * 0.3)
    assert process.popen.poll() is None, process.words()
    process.kill()


class OutsideAnswers:
    """Another process on the same home that allows whatever is asked. (Here: the test's own.)"""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.answered: list[str] = []

    async def __aenter__(self) -> OutsideAnswers:
        journal = await open_journal(self.home, protocol="outside")
        self._app = App(self.home, load_config(str(self.home)), journal)
        self._task = asyncio.ensure_future(self._answer())
        return self

    async def _answer(self) -> None:
        async for _ in self._app.feed.follow(None):
            for asked in await self._app.interactions.pending():
                try:
                    await self._app.interactions.answer(asked.id, Answer(Verdict.ALLOW), local("outside"))
                    self.answered.append(asked.id)
                except QuintetError:
                    continue  # its turn ended in this moment

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._app.close()


@pytest.mark.req("reliability:R1")
@pytest.mark.parametrize(("part", "rounds"), tiers.shares("R1", 5))
@pytest.mark.timeout(tiers.limit_s(60))
async def test_a_kill_at_a_random_moment_loses_nothing_and_repeats_nothing(
    tmp_path: Path, part: int, rounds: int
) -> None:
    """Parts 0 and 1 answer their own approvals, 2 has them answered by another process, 3 and 4 also lose power."""
    dice = tiers.seeded(f"kill{part}")
    seed = str(dice.random())
    ledger = Ledger(write_home(tmp_path / "home"))
    for number in range(rounds):
        if number and number % ROUNDS_PER_HOME == 0:
            print(ledger.words())
            shutil.rmtree(ledger.home)
            ledger = Ledger(write_home(tmp_path / f"home{number}"))
        if part == 2:
            await _round_with_outside_answers(ledger, seed, number, dice)
        else:
            boot = f"boot-{number}" if part >= 3 else None
            more = {"boot": boot} if boot else {}
            if number == rounds - 1:
                more["large"] = "1"
            with driver(ledger.home, seed, number, **more) as process:
                await kill_somewhere(process, dice)
            if boot:
                ledger.counts["bytes cut off"] += lose_unsynced(ledger.home)
            await ledger.check(boot=f"boot-{number}-after" if boot else None, cut=bool(boot))
    print(f"{rounds} kills: {ledger.words()}")


async def _round_with_outside_answers(ledger: Ledger, seed: str, number: int, dice: random.Random) -> None:
    async with OutsideAnswers(ledger.home) as outside:
        with driver(ledger.home, seed, number, answers="outside") as process:
            await kill_somewhere(process, dice)
    for interaction in outside.answered:
        ledger.acks.append({"what": "answered", "interaction": interaction})
    await ledger.check()


@pytest.mark.req("reliability:R2")
@pytest.mark.parametrize("point", failpoints.POINTS)
@pytest.mark.timeout(tiers.limit_s(60))
async def test_a_kill_at_a_named_point_loses_nothing_and_repeats_nothing(tmp_path: Path, point: str) -> None:
    dice = tiers.seeded(f"point-{point}")
    seed = str(dice.random())
    for number in range(tiers.figure("R2")):
        ledger = Ledger(write_home(tmp_path / f"home{number}"))
        job = point.partition(".")[0]
        times = 1
        if job in ("push", "append", "claim", "enqueue", "finish", "publish", "create"):
            times = dice.randint(1, {"push": 40, "append": 20, "publish": 60}.get(job, 4))
        if job == "recover":
            with driver(ledger.home, seed, 1000) as process:
                await asyncio.to_thread(process.until, lambda line: line.startswith("ready"))
                await _some_turns_begun(ledger)
                process.kill()
        if job == "ceiling":
            await _near_the_ceiling(ledger.home)
        extras = {"prune": "prune", "delete": "delete", "erase": "delete"}.get(job, "")
        turns = "1" if extras else "12"
        large = {"large": "1"} if job == "create" and number == 0 else {}
        if large:
            times = 1  # the first thread of all
        with driver(ledger.home, seed, number, f"{point}:{times}", turns=turns, extras=extras, **large) as process:
            code = await asyncio.to_thread(process.wait, 40.0)
            assert code == -9, f"{point}:{times} was never passed; {process.words()}"
        await ledger.check()
        with driver(ledger.home, seed, number + 500, turns="1") as process:  # and work goes on
            assert await asyncio.to_thread(process.wait, 40.0) == 0, process.words()
        await ledger.check()
        print(f"{point}:{times}: {ledger.words()}")


async def _some_turns_begun(ledger: Ledger) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if ledger.acks_path.exists() and ledger.acks_path.read_text().count('"tool.started"') >= 2:
            return
        await asyncio.sleep(0.005)
    raise AssertionError("no turn began")


async def _near_the_ceiling(home: Path) -> None:
    """Most numbers under the synced ceiling are used up, as after 60,000 events."""
    import apsw

    await (await open_journal(home, protocol="prepare")).close()
    connection = apsw.Connection(str(home / "quintet.db"))
    connection.execute("UPDATE counter SET next = ceiling - 4200")
    connection.close()


@pytest.mark.req("reliability:R14", "mechanisms:M2.steer")
@pytest.mark.parametrize("part", range(2))
@pytest.mark.timeout(tiers.limit_s(60))
async def test_a_steer_and_a_cancel_at_any_moment_leave_one_result_per_call_and_one_end_per_turn(
    tmp_path: Path, part: int
) -> None:
    dice = tiers.seeded(f"storm{part}")
    ledger = Ledger(write_home(tmp_path / "home"))
    turns = {"test": "20", "pr": "80", "long": "800"}[tiers.TIER]
    with driver(ledger.home, str(dice.random()), 0, turns=turns, storm="1") as process:
        assert await asyncio.to_thread(process.wait, 3600.0 if tiers.TIER == "long" else 50.0) == 0, process.words()
    await ledger.check()
    print(ledger.words())
