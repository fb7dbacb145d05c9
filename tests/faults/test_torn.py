"""Torn and flipped files: the last valid commit, or a clear refusal; a damaged row is never served as good."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.cursor import public_number
from quintet.domain.errors import StorageDamaged
from quintet.domain.item import Damaged, Item
from quintet.domain.thread import ThreadQuery
from quintet.journal.opening import open_journal
from quintet.journal.stored import StoredJournal
from tests.fakes.memory_disk import in_memory
from tests.faults import tiers
from tests.faults.acks import told
from tests.faults.ledger import all_events
from tests.faults.processes import Process, no_traceback, python_running, quintet, wait_until, write_home

pytestmark = pytest.mark.fault
DATABASE, LOG = "quintet.db", "quintet.db-wal"


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """What is torn here is torn by hand, so this tier needs no disk; the larger ones run on one."""
    if tiers.TIER != "test":
        yield tmp_path
        return
    with in_memory() as place:
        yield place


class Truth:
    """A home as a killed process left it, and everything that can be read from it while it is whole."""

    def __init__(self, home: Path, events: dict[int, list[Any]], items: dict[str, Item], threads: list[str]) -> None:
        self.home = home
        self.events = events
        self.items = items
        self.threads = threads

    def copy(self, to: Path) -> Path:
        to.mkdir(mode=0o700)
        for name in (DATABASE, LOG, "config.toml"):
            if (self.home / name).exists():
                shutil.copy(self.home / name, to / name)
        return to


async def everything(journal: StoredJournal) -> tuple[dict[int, Any], dict[str, Item], list[str], int]:
    """Events by number (None where damaged), items by id, threads; how many of both were shown as damaged."""
    damaged = 0
    events: dict[int, Any] = {}
    for event in await all_events(journal):
        damaged += event.damaged
        events[event.seq] = None if event.damaged else told(event)
    items: dict[str, Item] = {}
    threads = [t.id for t in await journal.threads(ThreadQuery(children=True, limit=1000))]
    for thread in threads:
        for item in await journal.items(thread, limit=100_000):
            if isinstance(item.body, Damaged):
                damaged += 1
            else:
                items[item.id] = item
    return events, items, threads, damaged


async def make_truth(directory: Path, name: str, *, clean_first: bool, turns: int, seed: str) -> Truth:
    """Turns that ended, folded into the file if asked, then more turns whose commits lie in the log alone."""
    home = write_home(directory / name)
    if clean_first:
        with python_running("tests.faults.driver", str(home), seed, "0", "turns=3") as process:
            assert await asyncio.to_thread(process.wait, 40.0) == 0, process.words()
    if turns:
        turns += _ended(directory / f"{name}.acks")
        with python_running("tests.faults.driver", str(home), seed, "1") as process:
            await asyncio.to_thread(process.until, lambda line: line.startswith("ready"))
            await asyncio.to_thread(_until_ended, process, directory / f"{name}.acks", turns)
            process.kill()
    truth = Truth(home, {}, {}, [])
    look = truth.copy(directory / f"{name}.look")
    journal = await open_journal(look, protocol="truth")
    truth.events, truth.items, truth.threads, damaged = await everything(journal)
    await journal.close()
    assert not damaged
    return truth


def _ended(acks: Path) -> int:
    return acks.read_text().count('"what": "ended"') if acks.exists() else 0


def _until_ended(process: Process, acks: Path, turns: int) -> None:
    wait_until(lambda: _ended(acks) >= turns, 30, 0.02)
    assert process.popen.poll() is None, process.words()


def damage(path: Path, dice: random.Random) -> str:
    size = path.stat().st_size
    at = dice.randrange(size)
    if dice.random() < 0.35:
        os.truncate(path, at)
        return f"{path.name} cut at {at} of {size}"
    bit = 1 << dice.randrange(8)
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ bit]))
    return f"{path.name}, byte {at} of {size} xor {bit}"


def names_repair(refusal: StorageDamaged) -> None:
    assert "quintet repair" in refusal.line(), refusal.line()


async def look(home: Path, truth: Truth, what: str, *, log: bool, seen: Counter[str]) -> None:
    try:
        journal = await open_journal(home, protocol="look")
    except StorageDamaged as refusal:
        names_repair(refusal)
        seen["refused"] += 1
        return
    try:
        try:
            events, items, _, damaged = await everything(journal)
        except StorageDamaged as refusal:
            names_repair(refusal)
            seen["refused while reading"] += 1
            return
    finally:
        await journal.close()
    wrong = {s: (e, truth.events.get(s)) for s, e in events.items() if e is not None and e != truth.events.get(s)}
    assert not wrong, f"{what}: served as good: {list(wrong.items())[:2]}"
    falsified = [(i, truth.items.get(key)) for key, i in items.items() if i != truth.items.get(key)]
    assert not falsified, f"{what}: served as good: {falsified[:2]}"
    missing = len(truth.events) - len(events)
    if log:
        prefix = list(truth.events)[: len(events)]
        assert list(events) == prefix, f"{what}: not the state of any commit"
        assert not damaged, what
        if missing and "cut" not in what:
            assert journal.report.wal_dropped, f"{what}: {missing} events were dropped without a word"
        seen["back to an earlier commit" if missing else "whole"] += 1
    elif damaged:
        seen["damaged rows shown"] += 1
    else:
        seen["rows missing, not noticed by reading" if missing else "whole"] += 1


def look_from_outside(home: Path, truth: Truth, what: str) -> None:
    """The command line on the same home: the answer or one line, never a traceback, never a false event."""
    for words in (("threads", "list"), ("events",), ("threads", "show", truth.threads[0])):
        done = quintet(*words, "--json", home=home)
        no_traceback(done)
        gone = words[1:2] == ("show",) and done.code == 1 and "There is no thread" in done.err  # lost with the log
        assert done.code in (0, 6) or gone, f"{what}: {words}: {done}"
        if done.code:
            assert len(done.err.strip().splitlines()) == 1, f"{what}: {words}: {done}"
            continue
        lines = done.lines
        if words == ("events",):
            known = {public_number(seq): said for seq, said in truth.events.items()}
            for line in lines:
                if line["cursor"] in known and not line.get("damaged"):
                    said = known[line["cursor"]]
                    assert [line["kind"], line["thread"], line["turn"]] == [said[0], said[2], said[4]], (
                        f"{what}: {line}"
                    )


@pytest.mark.req("reliability:R3", "mechanisms:M1.checksum", "mechanisms:M1.walwalk")
@pytest.mark.parametrize(("part", "rounds"), tiers.shares("R3", 5))
@pytest.mark.timeout(tiers.limit_s(90))
async def test_a_torn_or_flipped_file_gives_the_last_valid_commit_or_a_clear_refusal(
    tmp_path: Path, part: int, rounds: int
) -> None:
    """Even parts damage the file, odd ones the log."""
    dice = tiers.seeded(f"torn{part}")
    log = part % 2 == 1
    truth = await make_truth(
        tmp_path, "truth", clean_first=part != 3, turns=2 if log or part == 2 else 0, seed=str(dice.random())
    )
    seen: Counter[str] = Counter()
    for number in range(rounds):
        home = truth.copy(tmp_path / f"home{number}")
        what = damage(home / (LOG if log else DATABASE), dice)
        outside = truth.copy(tmp_path / f"outside{number}")
        shutil.copy(home / (LOG if log else DATABASE), outside / (LOG if log else DATABASE))
        await look(home, truth, what, log=log, seen=seen)
        await asyncio.to_thread(look_from_outside, outside, truth, what)
        shutil.rmtree(home)
        shutil.rmtree(outside)
    print(f"{rounds} damaged {'logs' if log else 'files'} of {len(truth.events)} events: {dict(seen)}")


@pytest.mark.req("reliability:R3", "mechanisms:M1.walwalk")
async def test_a_bad_frame_in_the_middle_of_the_log_is_reported_with_what_it_cost_and_kept(tmp_path: Path) -> None:
    truth = await make_truth(tmp_path, "truth", clean_first=True, turns=2, seed="middle")
    home = truth.copy(tmp_path / "home")
    flip_in_the_middle(home / LOG)
    before = (home / LOG).read_bytes()
    journal = await open_journal(home, protocol="look")
    report = journal.report
    await journal.close()
    assert report.damaged
    assert report.wal_dropped >= report.wal_lost > 0
    assert Path(report.saved_as).read_bytes() == before
    assert Path(report.saved_as).stat().st_mode & 0o777 == 0o600


@pytest.mark.req("reliability:R3", "mechanisms:M1.ceiling")
async def test_numbers_lost_with_a_bad_frame_are_not_given_to_other_events(tmp_path: Path) -> None:
    """Clients have seen them: an old cursor must stay true."""
    truth = await make_truth(tmp_path, "truth", clean_first=True, turns=2, seed="middle")
    home = truth.copy(tmp_path / "home")
    flip_in_the_middle(home / LOG)
    journal = await open_journal(home, protocol="look")
    try:
        assert journal.report.damaged
        await journal.recover()
        fresh = [e.seq for e in await all_events(journal) if told(e) != truth.events.get(e.seq)]
    finally:
        await journal.close()
    assert fresh, "nothing was recovered"
    assert min(fresh) > max(truth.events)


def flip_in_the_middle(path: Path) -> None:
    at = path.stat().st_size // 2
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


@pytest.mark.req("reliability:R3")
@pytest.mark.parametrize("content", [b"", b"not a database at all", os.urandom(8192)], ids=["empty", "text", "noise"])
def test_a_journal_that_is_no_database_is_refused_in_one_line_and_left_alone(tmp_path: Path, content: bytes) -> None:
    home = write_home(tmp_path / "home")
    (home / DATABASE).write_bytes(content)
    done = quintet("threads", "list", "--json", home=home)
    no_traceback(done)
    if not content:
        assert done.code == 0, done  # nothing was ever in it
        return
    assert done.code == 6, done
    assert "quintet repair" in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert (home / DATABASE).read_bytes() == content


def test_json_of_a_damaged_event_says_so(tmp_path: Path) -> None:
    """A flipped payload byte in one row: that row is marked, all others are served."""
    home = write_home(tmp_path / "home")
    assert quintet("run", "echo the-needle-to-be-flipped", home=home).code == 0
    data = bytearray((home / DATABASE).read_bytes())
    at = data.find(b"the-needle-to-be-flipped")
    assert at > 0
    while at > 0:
        data[at + 4] ^= 1
        at = data.find(b"the-needle-to-be-flipped", at)
    (home / DATABASE).write_bytes(data)
    done = quintet("events", "--json", home=home)
    no_traceback(done)
    assert done.code == 0, done
    assert any(line.get("damaged") for line in done.lines), done
    assert "eedle-to-be-flipped" not in done.out
    assert any(line["kind"] == "turn.finished" and not line.get("damaged") for line in done.lines)
