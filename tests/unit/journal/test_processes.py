"""Real processes on one home: killed at every named point, racing each other, stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import msgspec
import pytest

from quintet.domain.errors import Busy
from quintet.journal import StoredJournal, failpoints, open_journal
from tests.unit.journal.nouns import a_turn, everything

ROOT = Path(__file__).parents[3]


def worker(home: Path, what: str, count: int = 0, *, failpoint: str = "") -> subprocess.Popen[str]:
    variables = {**os.environ, "QUINTET_FAILPOINT": failpoint, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.unit.journal.worker", str(home), what, str(count)]
    return subprocess.Popen(command, env=variables, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(output: str) -> list[tuple[int, str, str]]:
    lines = [line for line in output.splitlines() if line.startswith("[")]
    return [tuple(msgspec.json.decode(line)) for line in lines]  # type: ignore[misc]


async def opened(home: Path) -> StoredJournal:
    return await open_journal(home, protocol="test")


async def check_after_death(home: Path, heard: list[tuple[int, str, str]]) -> None:
    journal = await opened(home)
    try:
        await journal.recover()
        marks = await journal.marks()
        events = {e.seq: e for e in await everything(journal)}
        gone = {e.thread for e in events.values() if e.kind == "thread.deleted"}
        for seq, kind, thread in heard:
            pruned = kind.endswith("delta") and seq <= marks.pruned_through
            assert pruned or (thread in gone and kind != "thread.deleted") or events[seq].kind == kind
        assert not any(e.damaged for e in events.values())
        assert all(e.kind == "thread.deleted" for e in events.values() if e.thread in gone)
        ends = [e.turn for e in events.values() if e.kind == "turn.finished"]
        assert len(ends) == len(set(ends))
        begun = {e.turn for e in events.values() if e.kind in ("turn.queued", "turn.started")}
        assert begun == set(ends)
    finally:
        await journal.close()


@pytest.mark.req("reliability:R2")
@pytest.mark.parametrize("point", failpoints.POINTS)
async def test_killed_at_a_named_point_nothing_told_is_lost(tmp_path: Path, point: str) -> None:
    home = tmp_path / "home"
    # Somebody dies first, so that there is something to recover, and the ceiling is near.
    first = worker(home, "once", failpoint="settle.after_commit")
    heard, _ = await asyncio.to_thread(first.communicate, timeout=30)
    assert first.returncode == -signal.SIGKILL
    raw = apsw.Connection(str(home / "quintet.db"))
    raw.execute("UPDATE counter SET next = ceiling - 5000")
    raw.close()
    if point.startswith("ceiling"):
        raw = apsw.Connection(str(home / "quintet.db"))
        raw.execute("UPDATE counter SET next = ceiling - 4100")
        raw.close()
    second = worker(home, "once", failpoint=point)
    more, errors = await asyncio.to_thread(second.communicate, timeout=30)
    assert second.returncode == -signal.SIGKILL, (point, errors)
    numbers = [seq for seq, _, _ in told(heard) + told(more)]
    assert numbers == sorted(set(numbers))
    await check_after_death(home, told(heard) + told(more))


@pytest.mark.req("reliability:R2", "reliability:R3", "mechanisms:M1.walwalk")
async def test_a_kill_within_a_large_transaction_is_no_damage(tmp_path: Path) -> None:
    home = tmp_path / "home"
    killed = worker(home, "large", failpoint="create.before_commit:2")
    heard, errors = await asyncio.to_thread(killed.communicate, timeout=60)
    assert killed.returncode == -signal.SIGKILL, errors
    assert (home / "quintet.db-wal").stat().st_size > 2 * 1024 * 1024
    journal = await opened(home)
    report = journal.report
    await journal.close()
    assert report.wal_dropped > 0
    assert not report.damaged
    assert report.saved_as == ""
    assert not list(home.glob("*.damaged*"))
    await check_after_death(home, told(heard))


@pytest.mark.req("reliability:R16", "mechanisms:M1.counter")
async def test_eight_processes_write_one_home_without_a_refusal(tmp_path: Path) -> None:
    home = tmp_path / "home"
    crowd = [worker(home, "appends", 12) for _ in range(8)]
    outputs = [await asyncio.to_thread(p.communicate, timeout=60) for p in crowd]
    assert [p.returncode for p in crowd] == [0] * 8, [errors[-500:] for _, errors in outputs]
    journal = await opened(home)
    events = {e.seq: e for e in await everything(journal)}
    for output, _ in outputs:
        heard = told(output)
        assert [seq for seq, _, _ in heard] == sorted({seq for seq, _, _ in heard})
        assert all(events[seq].kind == kind for seq, kind, _ in heard)
    assert sorted(events) == list(range(1, len(events) + 1))
    await journal.close()


@pytest.mark.req("mechanisms:M2.liveness")
async def test_a_stopped_owner_stays_owner_and_a_killed_one_is_replaced(tmp_path: Path) -> None:
    home = tmp_path / "home"
    other = worker(home, "hold")
    assert other.stdout is not None
    while (await asyncio.to_thread(other.stdout.readline)).strip() != "held":
        assert other.poll() is None
    journal = await opened(home)
    (thread,) = [e.thread for e in await everything(journal) if e.kind == "turn.started"]
    os.kill(other.pid, signal.SIGSTOP)
    mine = (await journal.enqueue(a_turn(thread))).turn
    with pytest.raises(Busy):
        await journal.claim(mine.id, mode="ask", model="")
    assert (await journal.recover()).turns == ()
    other.kill()
    await asyncio.to_thread(other.communicate, timeout=30)
    lease = await journal.claim(mine.id, mode="ask", model="")
    assert lease.epoch > 1
    await journal.close()


@pytest.mark.req("mechanisms:M2.liveness")
async def test_a_lock_does_not_outlive_its_process_in_a_forked_child(tmp_path: Path) -> None:
    code = (
        "import asyncio, os, sys, time\n"
        "from pathlib import Path\n"
        "from quintet.journal import open_journal\n"
        "async def main():\n"
        "    journal = await open_journal(Path(sys.argv[1]), protocol='x')\n"
        "    if os.fork() == 0:\n"
        "        os.close(1); time.sleep(60); os._exit(0)\n"
        "    print(journal.owner, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, process_group=0
    )
    try:
        output, _ = await asyncio.to_thread(parent.communicate, timeout=30)
        journal = await opened(tmp_path)
        assert output.startswith("own_")
        assert not await journal.alive(output.strip())
        await journal.close()
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
