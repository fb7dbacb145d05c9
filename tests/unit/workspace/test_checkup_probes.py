"""Clock, programs, leftovers and kept contents in a check-up."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from quintet.domain.checkup import Health, Row, ok
from quintet.journal.clock import SystemClock
from quintet.workspace.blob_check import look_at_blobs
from quintet.workspace.blobs import Blobs
from quintet.workspace.clock_check import ClockCheck
from quintet.workspace.leftovers import clear_leftovers, leftovers, look_at_leftovers
from quintet.workspace.program_check import look_at_programs
from quintet.workspace.sandbox.diagnosis import Facts
from quintet.workspace.server_lock import ServerLock, announced, server_runs

NOON = 1_780_000_000_000  # some day in 2026


class Hands:
    """A clock whose hands are set by the test."""

    def __init__(self, now_ms: int) -> None:
        self.wall_ms = now_ms
        self.steady_s = 100.0

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_s(self) -> float:
        return self.steady_s


@pytest.mark.req("first_minutes:F6")
def test_no_row_can_warn_or_fail_without_saying_what_mends_it() -> None:
    assert ok("x", "fine").fix == ""
    for health in (Health.WARN, Health.FAIL):
        with pytest.raises(ValueError, match="mends"):
            Row("x", health, "broken")


@pytest.mark.req("first_minutes:F5")
def test_the_clock_of_this_machine_is_fine() -> None:
    assert ClockCheck(SystemClock()).row().health is Health.OK


@pytest.mark.req("first_minutes:F6")
@pytest.mark.parametrize("now_ms", [0, 946_684_800_000, 4_200_000_000_000])
def test_a_time_that_cannot_be_fails(now_ms: int) -> None:
    row = ClockCheck(Hands(now_ms)).row()
    assert row.health is Health.FAIL
    assert "timedatectl" in row.fix


@pytest.mark.req("first_minutes:F6")
@pytest.mark.parametrize(("jump_ms", "health"), [(3_600_000, Health.FAIL), (-60_000, Health.FAIL), (400, Health.OK)])
def test_a_jump_of_the_time_of_day_during_the_look_fails(jump_ms: int, health: Health) -> None:
    hands = Hands(NOON)
    check = ClockCheck(hands)
    hands.steady_s += 2.0
    hands.wall_ms += 2_000 + jump_ms
    assert check.row().health is health


def program(directory: Path, name: str, text: str) -> dict[str, str]:
    """PATH with one program in a directory that, as far as the look can tell, only an administrator writes."""
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(text)
    (directory / name).chmod(0o755)
    return {"PATH": str(directory)}


@pytest.mark.req("first_minutes:F5")
def test_git_and_ripgrep_are_found_with_their_versions() -> None:
    rows = {row.name: row for row in look_at_programs(os.environ)}
    assert rows["git"].health is Health.OK
    assert "git version" in rows["git"].detail
    assert "ripgrep" in rows["ripgrep"].detail


@pytest.mark.req("first_minutes:F6")
@pytest.mark.parametrize(
    ("system", "line"),
    [
        (("debian",), "sudo apt-get install ripgrep"),
        (("gentoo",), "sudo emerge sys-apps/ripgrep"),
        ((), "Install the package `ripgrep` of your distribution."),
    ],
)
def test_a_missing_program_warns_with_the_line_that_installs_it(
    tmp_path: Path, system: tuple[str, ...], line: str
) -> None:
    rows = {row.name: row for row in look_at_programs({"PATH": str(tmp_path)}, Facts(system))}
    assert (rows["ripgrep"].health, rows["ripgrep"].fix) == (Health.WARN, line)
    assert rows["git"].health is Health.WARN


@pytest.mark.req("first_minutes:F6")
def test_a_program_that_does_not_say_its_version_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.workspace.environment.SYSTEM", frozenset({str(tmp_path / "bin")}))
    environment = program(tmp_path / "bin", "git", "#!/bin/sh\nexit 3\n")
    git = look_at_programs(environment)[0]
    assert git.health is Health.WARN
    assert "exit 3" in git.detail


@pytest.mark.req("first_minutes:F6", "first_minutes:F8")
def test_what_a_dead_server_left_is_told_and_removed_and_what_a_living_one_needs_is_not(tmp_path: Path) -> None:
    home = tmp_path
    with ServerLock(home) as lock:
        lock.announce({"pid": os.getpid(), "knp": {"url": "http://127.0.0.1:4096"}}, None)
        (home / ".server.json.4711").write_text("{}")
        assert server_runs(home)
        assert announced(home)["knp"] == {"url": "http://127.0.0.1:4096"}
        assert leftovers(str(home)) == []
        left = (home / "server.json").read_bytes()
    (home / "server.json").write_bytes(left)  # as after a kill: the lock is gone, the file is not
    (home / "credentials").mkdir()
    (home / "credentials" / ".0123456789ab.tmp").write_text("half a key")
    (home / "credentials" / "openai").write_text("whole")
    assert not server_runs(home)
    assert announced(home) == {}
    [row] = look_at_leftovers(str(home))
    assert (row.health, row.fix) == (Health.WARN, "quintet doctor --fix")
    gone = clear_leftovers(str(home))
    assert sorted(gone) == [".server.json.4711", "credentials/.0123456789ab.tmp", "server.json"]
    assert look_at_leftovers(str(home)) == []
    assert (home / "credentials" / "openai").exists()


def test_looking_for_a_server_makes_nothing(tmp_path: Path) -> None:
    assert not server_runs(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "run").mkdir()
    with (tmp_path / "run" / "server.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert server_runs(tmp_path)


@pytest.mark.req("first_minutes:F9")
def test_contents_that_undo_would_miss_are_counted(tmp_path: Path) -> None:
    clock = SystemClock()
    digests = Blobs(str(tmp_path), clock).put_all([b"one", b"two", b"three"])
    told: list[tuple[str, int, int]] = []
    look = lambda: look_at_blobs(str(tmp_path), clock, set(digests), lambda *said: told.append(said))  # noqa: E731
    assert look().health is Health.OK
    assert told[0] == ("checking kept contents", 0, 3)
    (tmp_path / "blobs" / digests[0][:2] / digests[0]).unlink()
    (tmp_path / "blobs" / digests[1][:2] / digests[1]).write_bytes(b"something else")
    row = look()
    assert row.health is Health.FAIL
    assert "1 are missing and 1 damaged" in row.detail
