"""The wall clock: who reads it, and what a day is here where clocks are set twice a year."""

from __future__ import annotations

import ast
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quintet.engine.spending import local_midnight_ms

SOURCES = Path(__file__).parents[2] / "src" / "quintet"
HOUR, DAY = 3600, 86_400


@pytest.mark.req("reliability:R12")
@pytest.mark.parametrize(("edge", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)], ids=["spring", "autumn"])
def test_a_day_at_an_edge_of_summer_time_is_as_long_as_it_is_here(
    monkeypatch: pytest.MonkeyPatch, edge: str, hours: int
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        noon = int(datetime.fromisoformat(f"{edge}T11:00:00").replace(tzinfo=UTC).timestamp() * 1000)
        begins = local_midnight_ms(noon)
        ends = begins + hours * HOUR * 1000
        assert {local_midnight_ms(at) for at in range(begins, ends, 600_000)} == {begins}
        assert local_midnight_ms(ends - 1) == begins
        assert local_midnight_ms(ends) == ends
        assert local_midnight_ms(begins - 1) == begins - DAY * 1000
    finally:
        monkeypatch.undo()
        time.tzset()


# Where the wall clock may be read: for people, for names, and for lives that outlast a process. Nothing waits by it.
READERS = {
    "journal/clock.py": "the clock itself",
    "domain/ids.py": "ids sort by time; made ascending where it steps back",
    "journal/home.py": "names a boot where the system does not",
    "journal/backup.py": "names a backup",
    "journal/repair.py": "dates what is salvaged",
    "journal/repair_files.py": "names what is put aside",
    "workspace/log.py": "dates lines",
    "workspace/git.py": "compared with times of files: a fresh one is looked at again",
    "workspace/history_age.py": "compared with times of files",
    "workspace/history_rooms.py": "compared with times of files: a fresh one is looked at again",
    "workspace/home_check.py": "compared with the time a file system gives: a check-up of the clock",
    "journal/examining.py": "a check-up: whether what is stored is dated in the future",
    "cli/overview.py": "says how long ago something was",
    "workspace/history_keeping.py": "compared with times of files: a fresh one is looked at again",
    "providers/attempts.py": "a server may name the moment to come back as a date",
    "engine/spending.py": "days",
    "engine/statistics.py": "days",
    "workspace/memory_files.py": "dates what is put aside; compared with times of files",
    "rpc/http/access.py": "dates lines",
    "serving/door.py": "failed attempts outlive the server; those dated in the future are forgotten",
}


@pytest.mark.req("reliability:R12")
def test_no_other_part_reads_the_wall_clock_so_that_none_can_wait_by_it() -> None:
    readers = set()
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in (
                "time.time", "time.time_ns", "time.localtime", "time.gmtime", "datetime.now", "datetime.utcnow",
            ):  # fmt: skip
                readers.add(path.relative_to(SOURCES).as_posix())
    new = readers - set(READERS)
    assert not new, f"{new} read the wall clock: wait by monotonic time, or say here what it is for"
