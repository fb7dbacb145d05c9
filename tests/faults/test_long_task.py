"""A long task through the real executable and model servers over HTTP: more than 200 steps, compactions, subagents, an
outage; undisturbed, and killed at random points and gone on with. Its effects are counted in the file it writes.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quintet.cli.event_json import event_line
from quintet.domain.event import CompactionFinished, Event, StepFellBack, StepFinished, StepStarted, TurnFinished
from quintet.domain.turn import TurnState
from quintet.journal.opening import open_journal
from tests.faults import tiers
from tests.faults.ledger import Ledger, all_events
from tests.faults.long_task import LAST, LEDGER, SHARES, TOP, goal
from tests.faults.processes import Process, python_running, quintet_running, write_home

OUTAGE_AT = 100  # requests
RETRIES = 1
PARTS = 4
HELPED, RESUMED = "another model helps out", "somebody goes on later"  # what comes after an outage
WAYS = [HELPED] if tiers.TIER == "test" else [HELPED, RESUMED]
LONGEST_STEP_S = 0.08
STARTING = "nothing yet"
PROVIDER_FAILED = 5
CONFIG = """
default_model = "far/m"
[providers.far]
kind = "openai-chat"
base_url = "{far}"
max_retries = {retries}
[providers.spare]
kind = "anthropic"
base_url = "{spare}"
[models."far/m"]
context_window = {window}
{fallback}
[models."spare/m"]
context_window = {window}
"""
WINDOW = 18_000  # room for about sixty steps
pytestmark = pytest.mark.fault


@contextmanager
def model_server(*words: str) -> Iterator[str]:
    with python_running("tests.fakes.model_server", "--mind", "tests.faults.long_task:answer", *words) as process:
        _, _, line = process.until(lambda text: text.startswith("{"))
        yield json.loads(line)["url"]


class Task:
    """The task, from its beginning to its end, whatever happens to the processes that work on it."""

    def __init__(self, directory: Path, far: str, spare: str, *, falls_back: bool) -> None:
        fallback = 'fallback = "spare/m"' if falls_back else ""
        config = CONFIG.format(far=far, spare=spare, fallback=fallback, retries=RETRIES, window=WINDOW)
        self.home = write_home(directory / "home", config=config)
        self.workspace = directory / "workspace"
        self.workspace.mkdir()
        (self.workspace / LEDGER).write_text(TOP)
        self.thread = ""
        self.told: list[str] = []  # every line any process has told
        self.steps = 0
        self.codes: list[int | None] = []

    def go_on(self, until: Any = None) -> int | None:
        """Another process works on it, to its end or until it is killed. Returns its exit code; None: killed."""
        words = ["--thread", self.thread, "Go on."] if self.thread else [goal(1, LAST, SHARES)]
        flags = ["run", "--json", "--mode", "allow", "--max-steps", "400", *words]
        with quintet_running(*flags, home=self.home, cwd=self.workspace) as process:
            code = process.wait(100.0) if until is None else until(process)
            if code is None:
                process.kill()
        self._take(process)
        self.codes.append(code)
        assert code in (0, None, PROVIDER_FAILED), process.words()
        return code

    def _take(self, process: Process) -> None:
        lines = [line for _, line in process.lines if line.endswith("\n")]
        self.told += lines
        self.steps += sum(map(begins_a_step, lines))
        self.thread = self.thread or next((t for line in lines if (t := json.loads(line)["thread"])), "")

    def written(self) -> list[str]:
        return (self.workspace / LEDGER).read_text().splitlines()[1:]

    async def events(self) -> list[Event]:
        journal = await open_journal(self.home, protocol="check")
        try:
            return await all_events(journal)
        finally:
            await journal.close()

    async def check(self) -> Counter[str]:
        """It is done; each line was written once; all that was told is true; every turn and every call ended once."""
        written = Counter(self.written())
        assert not (twice := [line for line, times in written.items() if times > 1]), f"written twice: {twice}"
        assert self.written() == [str(number) for number in range(1, LAST + 1)]
        ledger = Ledger(self.home)
        await ledger.check(marked=False)
        events = await self.events()
        there = {event_line(event).decode() for event in events}
        lost = [line for line in self.told if line not in there]
        assert not lost, f"told and not there: {lost[:3]}"
        steps = [e for e in events if isinstance(e.payload, StepStarted) and e.payload.number]
        compactions = [e for e in events if isinstance(e.payload, CompactionFinished) and e.payload.summary_item]
        children = {e.thread for e in events if e.thread and e.thread != self.thread}
        ended = [e.payload for e in events if isinstance(e.payload, TurnFinished) and e.thread == self.thread]
        failed = [e for e in events if isinstance(e.payload, StepFinished) and e.payload.error]
        fallen = [e for e in events if isinstance(e.payload, StepFellBack)]
        assert len(steps) >= 200
        assert len(compactions) >= 3
        assert len(children) >= len(SHARES)
        ledger.counts.update(steps=len(steps), subagents=len(children), fallen_back=len(fallen))
        ledger.counts.update(failed_steps=len(failed))
        ledger.counts["interrupted"] = sum(end.state is TurnState.INTERRUPTED for end in ended)
        return ledger.counts


@contextmanager
def a_task(directory: Path, *, falls_back: bool) -> Iterator[Task]:
    outage = f"503 times {RETRIES + 1} at {OUTAGE_AT}"
    with model_server("--fault", outage) as far, model_server() as spare:
        yield Task(directory, far, spare, falls_back=falls_back)


@pytest.mark.req("models:L1")
@pytest.mark.parametrize("after", WAYS)
@pytest.mark.timeout(tiers.limit_s(120))
async def test_a_long_task_ends_right_through_compactions_subagents_and_an_outage(tmp_path: Path, after: str) -> None:
    falls_back = after == HELPED
    with a_task(tmp_path, falls_back=falls_back) as task:
        begun = time.monotonic()
        while task.go_on() != 0:
            pass
        took = time.monotonic() - begun
        assert task.codes == ([0] if falls_back else [PROVIDER_FAILED, 0])
        counts = await task.check()
    assert (counts["compactions"], counts["fallen_back"], counts["failed_steps"]) == (3, falls_back, 1)
    print(f"{took:.1f} s: {shown(counts)}")


def shown(counts: Counter[str]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


class Killing:
    """kill -9 at random points: so many steps into the task, and a random moment later."""

    def __init__(self, task: Task, dice: random.Random, kills: int) -> None:
        self.task = task
        self.dice = dice
        self.points = sorted(dice.sample(range(1, LAST), kills))
        self.fell: list[str] = []

    def until(self, process: Process) -> int | None:
        wanted = self.points[0] - self.task.steps
        at = -1
        while wanted > 0:
            try:
                at, _, _ = process.until(begins_a_step, within_s=30.0, after=at + 1)
            except AssertionError:
                return process.wait(30.0)  # over before
            wanted -= 1
        time.sleep(self.dice.random() * LONGEST_STEP_S)
        if process.popen.poll() is not None:
            return process.wait(30.0)
        self.points.pop(0)
        self.fell.append(json.loads(process.lines[-1][1])["kind"] if process.lines else STARTING)
        return None


def begins_a_step(line: str) -> bool:
    return '"kind":"step.started"' in line


@pytest.mark.req("models:L1", "reliability:R1")
@pytest.mark.parametrize(("part", "kills"), tiers.shares("L1", PARTS))  # none in the smallest tier
@pytest.mark.timeout(tiers.limit_s(120))
async def test_a_long_task_that_is_killed_again_and_again_ends_right_without_a_doubled_effect(
    tmp_path: Path, part: int, kills: int
) -> None:
    dice = tiers.seeded(f"long-task{part}")
    with a_task(tmp_path, falls_back=part % 2 == 0) as task:
        killing = Killing(task, dice, kills)
        while task.go_on(killing.until if killing.points else None) != 0:
            assert len(task.codes) <= kills + 5, task.codes
        counts = await task.check()
    early = killing.fell.count(STARTING)  # perhaps before there was a turn
    assert kills - early <= counts["interrupted"] <= kills
    print(f"killed {kills} times, behind {killing.fell}: {shown(counts)}")
