"""It stops when told: SIGTERM within five seconds, a cancel within one, and no process is left behind.

After SIGKILL of Quintet itself its confined commands die with it. Where no sandbox works nothing can end them then, and
that half of R13 is skipped with these words.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from quintet.app import open_app
from quintet.domain import event as ev
from quintet.domain.event import Event
from quintet.domain.item import TextPart, ToolCall
from quintet.domain.principal import local
from quintet.domain.thread import ThreadSettings
from quintet.domain.turn import Mode, TurnState
from quintet.workspace.environment import find_program
from tests.faults import tiers
from tests.faults.processes import (
    end_leftovers,
    figures,
    living_with,
    quintet,
    quintet_running,
    wait_until,
    write_home,
)

pytestmark = pytest.mark.fault
ME = local("stopping")
WITHOUT_WALL = '[sandbox]\nmode = "off"\nrequired = false\n'
SETTLING = {
    "checkpoint.settled",
    "turn.cancel_requested",
    "command.settled",
    "interaction.resolved",
    "item.added",
    "step.finished",
    "tool.finished",
    "tool.output_delta",
    "turn.steered",
    "turn.finished",
}


def tree(number: int) -> tuple[str, str]:
    """A command that leaves its session, forks twice, ignores SIGTERM; and the word all of it can be found by."""
    word = f"86399.{os.getpid()}{number:05d}"
    return f"trap '' TERM; setsid sleep {word} & (sleep {word} &) ; sleep {word}", word


def all_there(word: str) -> bool:
    return len(living_with(f"sleep\0{word}")) >= 3


@pytest.mark.req("reliability:R13", "mechanisms:M10.wall")
@pytest.mark.parametrize("wall", ["walled", "loose"])
@pytest.mark.parametrize(("part", "rounds"), tiers.shares("R13", 3))
@pytest.mark.timeout(tiers.limit_s(90))
def test_sigterm_ends_a_busy_run_within_five_seconds_and_leaves_nothing(
    tmp_path: Path, part: int, rounds: int, wall: str
) -> None:
    home = write_home(tmp_path / "home", config=WITHOUT_WALL if wall == "loose" else "")
    taken = []
    for number in range(rounds):
        command, word = tree(part * 10_000 + number + (5_000 if wall == "loose" else 0))
        try:
            with quintet_running("run", "--json", "--mode", "allow", f"run {command}", home=home, cwd=tmp_path) as run:
                _, started = run.event("tool.started")
                wait_until(lambda word=word: all_there(word), 10)
                begun = time.monotonic()
                run.popen.send_signal(signal.SIGTERM)
                code = run.wait(10)
                taken.append(time.monotonic() - begun)
                assert living_with(word) == [], run.words()
                assert code == 130, run.words()
                _, end = run.event("turn.finished")
                assert end["payload"]["state"] == "interrupted"
            assert taken[-1] < 5.0
            assert [name for name in os.listdir(home / "run") if name.startswith("own_")] == []
            shown = quintet("threads", "list", "--json", home=home).lines
            assert {t["state"] for t in shown} == {"idle"}
            assert started["turn"] == end["turn"]
        finally:
            end_leftovers(living_with(word))
    figures("SIGTERM to exit", taken)


@pytest.mark.req("reliability:R13", "mechanisms:M10.wall")
@pytest.mark.parametrize(("part", "rounds"), tiers.shares("R13", 3))
@pytest.mark.timeout(tiers.limit_s(90))
def test_after_kill_9_of_quintet_its_commands_are_dead_within_a_second(tmp_path: Path, part: int, rounds: int) -> None:
    if find_program("bwrap", os.environ) is None:
        pytest.skip("not covered without user namespaces: nobody is left to end the commands")
    taken = []
    for number in range(rounds):
        command, word = tree(60_000 + part * 1_000 + number)
        _, behind = tree(70_000 + part * 1_000 + number)
        calls = [{"command": command}, {"command": f"setsid sleep {behind} & sleep {behind}", "background": True}]
        script = "".join(f"tool_call: shell {json.dumps(call)}\n" for call in calls)
        home = write_home(tmp_path / f"home{number}", f"scope: turn\n{script}")
        try:
            with quintet_running("run", "--json", "--mode", "allow", "go", home=home, cwd=tmp_path) as run:
                wait_until(lambda word=word: all_there(word), 10)
                wait_until(lambda behind=behind: len(living_with(f"sleep\0{behind}")) >= 2, 10)
                begun = time.monotonic()
                run.kill()
                wait_until(lambda words=(word, behind): not any(map(living_with, words)), 5)
                taken.append(time.monotonic() - begun)
            assert taken[-1] < 1.0
        finally:
            end_leftovers([*living_with(word), *living_with(behind)])
    figures("SIGKILL to the last process gone", taken)


@pytest.mark.req("reliability:R13", "mechanisms:M10.wall")
@pytest.mark.parametrize("wall", ["walled", "loose"])
@pytest.mark.parametrize("how", ["its turn ends", "SIGTERM"])
def test_a_background_command_outlives_its_call_and_ends_with_the_process(tmp_path: Path, how: str, wall: str) -> None:
    _, word = tree(80_000 + len(how) * 10 + len(wall))
    call = json.dumps({"command": f"setsid sleep {word} & sleep {word}", "background": True})
    script = f"scope: turn\ntool_call: shell {call}\n---\ntext: waiting\nuntil: {tmp_path / 'go'}\ntext: over\n"
    home = write_home(tmp_path / "home", script, WITHOUT_WALL if wall == "loose" else "")
    try:
        with quintet_running("run", "--json", "--mode", "allow", "go", home=home, cwd=tmp_path) as run:
            run.event("text.delta")
            wait_until(lambda: len(living_with(f"sleep\0{word}")) == 2, 10)
            if how == "SIGTERM":
                run.popen.send_signal(signal.SIGTERM)
            else:
                (tmp_path / "go").touch()
            assert run.wait(10) == (130 if how == "SIGTERM" else 0), run.words()
            assert living_with(word) == []
    finally:
        end_leftovers(living_with(word))


@pytest.mark.req("reliability:R14")
async def test_a_cancelled_turn_leaves_earlier_background_commands_running(tmp_path: Path) -> None:
    _, word = tree(90_000)
    call = json.dumps({"command": f"sleep {word}", "background": True})
    script = f"scope: turn\ntool_call: shell {call}\n---\ntext: waiting\nuntil: never\n"
    try:
        async with open_app(str(write_home(tmp_path / "home", script)), "stopping") as app:
            thread = (await app.threads.create(ThreadSettings(str(tmp_path)))).id
            started = await app.turns.start(thread, (TextPart("go"),), app.starter(ME, mode=Mode.ALLOW))
            await asyncio.to_thread(wait_until, lambda: living_with(f"sleep\0{word}"), 10)
            assert (await app.turns.cancel(started.turn.id, ME, "enough")).state is TurnState.CANCELLED
            assert len(living_with(f"sleep\0{word}")) == 1
        assert living_with(word) == []
    finally:
        end_leftovers(living_with(word))


@pytest.mark.req("reliability:R14", "mechanisms:M10.cancel")
@pytest.mark.parametrize(("part", "rounds"), tiers.shares("R14", 4))
@pytest.mark.timeout(tiers.limit_s(90))
async def test_a_cancel_ends_the_turn_within_a_second_and_its_processes_within_two(
    tmp_path: Path, part: int, rounds: int
) -> None:
    home = write_home(tmp_path / "home")
    ends, trees = [], []
    async with open_app(str(home), "stopping") as app:
        thread = (await app.threads.create(ThreadSettings(str(tmp_path)))).id
        starter = app.starter(ME, mode=Mode.ALLOW)
        for number in range(rounds):
            command, word = tree(50_000 + part * 10_000 + number)
            try:
                started = await app.turns.start(thread, (TextPart(f"run {command}"),), starter)
                await asyncio.to_thread(wait_until, lambda word=word: all_there(word), 10)
                before = (await app.journal.marks()).last
                begun = time.monotonic()
                ended = await app.turns.cancel(started.turn.id, ME, "enough")
                ends.append(time.monotonic() - begun)
                await asyncio.to_thread(wait_until, lambda word=word: not living_with(word), 5)
                trees.append(time.monotonic() - begun)
                assert ended.state is TurnState.CANCELLED
                _only_settles(await app.journal.events(before), started.turn.id)
            finally:
                end_leftovers(living_with(word))
    figures("cancel to terminal event", ends)
    figures("cancel to the last process gone", trees)
    ends.sort()
    assert ends[int(len(ends) * 0.99)] < 1.0
    assert max(trees) < 2.0


@pytest.mark.req("reliability:R14", "mechanisms:M8.cancel")
@pytest.mark.timeout(tiers.limit_s(90))
async def test_a_cancel_while_files_are_put_aside_ends_the_turn_within_a_second(tmp_path: Path) -> None:
    work = tmp_path / "work"
    for room in range(40):
        (work / f"d{room}").mkdir(parents=True)
        for number in range(500):
            (work / f"d{room}" / f"{number}").touch()
    secured = asyncio.Event()
    async with open_app(str(write_home(tmp_path / "home")), "stopping") as app:
        thread = (await app.threads.create(ThreadSettings(str(work)))).id

        def listen(events: Sequence[Event]) -> None:
            if any(isinstance(e.payload, ev.ItemAdded) and isinstance(e.payload.item.body, ToolCall) for e in events):
                secured.set()  # the model has called; what the call could destroy is put aside next

        app.journal.listen(listen)
        started = await app.turns.start(thread, (TextPart("run touch ran"),), app.starter(ME, mode=Mode.ALLOW))
        await asyncio.wait_for(secured.wait(), 20)
        begun = time.monotonic()
        ended = await app.turns.cancel(started.turn.id, ME, "enough")
        taken = time.monotonic() - begun
    assert ended.state is TurnState.CANCELLED
    assert not (work / "ran").exists()
    figures("cancel while files are put aside", [taken])
    assert taken < 1.0


def _only_settles(events: list[Event], turn: str) -> None:
    mine = [e for e in events if e.turn == turn]
    asked = next(n for n, e in enumerate(mine) if isinstance(e.payload, ev.TurnCancelRequested))
    assert {e.kind for e in mine[asked:]} <= SETTLING, [e.kind for e in mine[asked:]]
    assert isinstance(mine[-1].payload, ev.TurnFinished)


@pytest.mark.req("reliability:R14", "mechanisms:M2.commands")
def test_threads_cancel_from_another_process_ends_the_turn_and_its_processes(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    command, word = tree(99_999)
    try:
        with quintet_running("run", "--json", "--mode", "allow", f"run {command}", home=home, cwd=tmp_path) as run:
            _, started = run.event("tool.started")
            wait_until(lambda: all_there(word), 10)
            done = quintet("threads", "cancel", started["thread"], "--reason", "enough", home=home)
            assert done.code == 0, done
            wait_until(lambda: not living_with(word), 2)
            assert run.wait(5) == 130, run.words()
            _, end = run.event("turn.finished")
            assert end["payload"]["state"] == "cancelled"
            assert "enough" in end["payload"]["error"]["message"]
    finally:
        end_leftovers(living_with(word))


@pytest.mark.req("reliability:R13", "mechanisms:M2.queue_death")
async def test_shutting_down_ends_what_runs_as_interrupted_and_cancels_what_waits(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", "scope: turn\ntext: begin\nuntil: never\n")
    async with open_app(str(home), "stopping") as app:
        thread = (await app.threads.create(ThreadSettings(str(tmp_path)))).id
        starter = app.starter(ME, mode=Mode.ASK)
        first, second = [await app.turns.start(thread, (TextPart(t),), starter) for t in ("first", "second")]
        begun = time.monotonic()
    assert time.monotonic() - begun < 5.0
    async with open_app(str(home), "after") as app:
        assert (await app.journal.turn(first.turn.id)).state in (TurnState.INTERRUPTED, TurnState.CANCELLED)
        assert (await app.journal.turn(second.turn.id)).state is TurnState.CANCELLED
        assert (await app.journal.recover()).turns == ()
