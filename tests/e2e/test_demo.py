"""`quintet demo`: what it shows has really happened, the person is asked once, and nothing is left of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_prompt import Terminal
from tests.faults.disks import fill, small_disk
from tests.faults.processes import (
    QUINTET,
    Done,
    environment,
    living_with,
    no_traceback,
    one_line,
    quintet,
    running,
    wait_until,
)

ALLOW = "allow? [y]es, [n]o"


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """Where the demo puts its things, and nobody else does."""
    made = tmp_path / "room"
    made.mkdir()
    return made


def demo(tmp_path: Path, room: Path, *flags: str, **env: str) -> Done:
    done = quintet("demo", *flags, home=tmp_path / "home", TMPDIR=str(room), **env)
    no_traceback(done)
    return done


def nothing_left(tmp_path: Path, room: Path) -> None:
    assert list(room.iterdir()) == []
    assert not (tmp_path / "home").exists(), "the person's own home is not touched"


@contextlib.contextmanager
def terminal(tmp_path: Path, room: Path, *flags: str) -> Iterator[Terminal]:
    screen = Terminal(tmp_path / "home", tmp_path, ("demo", *flags), TMPDIR=str(room))
    try:
        yield screen
    finally:
        screen.close()


@pytest.mark.req("first_minutes:F2", "first_minutes:F3", "first_minutes:F4")
def test_at_a_terminal_one_request_is_asked_and_everything_happens(tmp_path: Path, room: Path) -> None:
    with terminal(tmp_path, room) as screen:
        asked = screen.until(ALLOW)
        assert "unittest test_prices" in asked
        assert "edit prices.py" in asked
        screen.type("y\n")
        rest = screen.until("Nothing is left of it")
        assert screen.wait() == 0, screen.shown
    assert "allowed by" in rest
    assert "Ran 1 test" in rest
    assert "OK" in rest
    assert "-    return price * count - discount" in rest
    assert "+    return (price - discount) * count" in rest
    assert "prices.py is what it was, byte for byte" in rest
    assert screen.shown.count(ALLOW) == 1
    assert "itself" not in screen.shown
    nothing_left(tmp_path, room)


@pytest.mark.req("first_minutes:F3", "first_minutes:F4")
def test_a_no_is_obeyed_and_ends_as_denied(tmp_path: Path, room: Path) -> None:
    with terminal(tmp_path, room) as screen:
        screen.until(ALLOW)
        screen.type("n\n")
        assert screen.wait() == 3, screen.shown
    assert "was not allowed" in screen.shown
    assert "Ran 1 test" not in screen.shown
    assert "byte for byte" in screen.shown, "the edit is shown and undone all the same"
    nothing_left(tmp_path, room)


@pytest.mark.req("first_minutes:F3")
def test_with_yes_it_answers_itself_at_a_terminal_too_and_says_so(tmp_path: Path, room: Path) -> None:
    with terminal(tmp_path, room, "--yes") as screen:
        assert screen.wait(30) == 0, screen.shown
    assert "the demo answers this itself, with yes (--yes)" in screen.shown
    assert ALLOW not in screen.shown


@pytest.mark.req("first_minutes:F3", "first_minutes:F4")
def test_without_a_terminal_it_answers_itself_and_says_so(tmp_path: Path, room: Path) -> None:
    done = demo(tmp_path, room)
    assert done.code == 0, done
    assert "the demo answers this itself, with yes (nobody can be asked here)" in done.err
    assert "Ran 1 test" in done.out
    assert "\x1b" not in done.out + done.err
    nothing_left(tmp_path, room)


@pytest.mark.req("first_minutes:F2")
def test_its_events_are_those_of_real_turns_tools_and_answers(tmp_path: Path, room: Path) -> None:
    done = demo(tmp_path, room, "--json")
    assert done.code == 0, done
    *events, last = done.lines
    kinds = [event["kind"] for event in events]
    assert kinds.count("turn.finished") == 2
    assert kinds.count("interaction.requested") == kinds.count("interaction.resolved") == 1
    started = [event["payload"]["name"] for event in events if event["kind"] == "tool.started"]
    assert started == ["read", "edit", "shell"]
    asked = next(event["payload"]["interaction"] for event in events if event["kind"] == "interaction.requested")
    assert "unittest" in asked["request"]["command"]
    assert kinds.index("interaction.resolved") < len(kinds) - 1 - kinds[::-1].index("tool.started")
    answered = next(event["payload"]["decision"] for event in events if event["kind"] == "interaction.resolved")
    assert "by the demo itself" in answered["reason"]
    facts = {name: last[name] for name in ("v", "kind", "edited", "approved", "tested", "undone", "kept")}
    assert facts == {
        "v": 1, "kind": "demo.finished", "edited": True, "approved": True, "tested": True, "undone": True, "kept": ""
    }  # fmt: skip


@pytest.mark.req("first_minutes:F4")
def test_with_keep_everything_is_where_it_says(tmp_path: Path, room: Path) -> None:
    done = demo(tmp_path, room, "--keep")
    assert done.code == 0, done
    [kept] = room.iterdir()
    assert str(kept) in done.out
    shown = done.out.partition("quintet threads show ")[2].split()
    thread, home = shown[0], shown[2]
    again = quintet("threads", "show", thread, home=home)
    assert again.code == 0, again
    assert "prices.py" in again.out
    assert "price * count - discount" in (kept / "project" / "prices.py").read_text()
    assert quintet("undo", thread, "--redo", home=home).code == 0, "the undo was a real one, and can be undone"
    assert "(price - discount) * count" in (kept / "project" / "prices.py").read_text()


@pytest.mark.req("first_minutes:F2")
def test_it_works_without_git_and_whatever_model_and_git_settings_the_person_has(tmp_path: Path, room: Path) -> None:
    (tmp_path / "bin").mkdir()
    plain = demo(tmp_path, room, PATH=str(tmp_path / "bin"), QUINTET_MODEL="anthropic/claude-sonnet-4-5")
    assert plain.code == 0, plain
    assert "a git repository" not in plain.out
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "hooks" / "pre-commit").chmod(0o755)
    (tmp_path / ".gitconfig").write_text(f"[core]\nhooksPath = {tmp_path / 'hooks'}\n[commit]\ngpgsign = true\n")
    there = demo(tmp_path, room, HOME=str(tmp_path), GIT_DIR=str(tmp_path / "nowhere"))
    assert there.code == 0, there
    assert "a git repository" in there.out
    nothing_left(tmp_path, room)


@pytest.mark.req("first_minutes:F2")
def test_it_needs_no_network_not_even_loopback(tmp_path: Path, room: Path) -> None:
    if os.geteuid() or subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces cannot be made here")
    argv = ["unshare", "-n", QUINTET, "demo", "--json", "--home", str(tmp_path / "home")]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, env=environment(TMPDIR=str(room)), check=False
    )
    assert done.returncode == 0, done
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["tested"]
    assert last["seconds"] < 30, "the promise of the first minutes, with room for a busy machine"


@pytest.mark.req("first_minutes:F4")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_while_it_asks_it_leaves_nothing(tmp_path: Path, room: Path, number: int) -> None:
    with terminal(tmp_path, room) as screen:
        screen.until(ALLOW)
        assert list(room.iterdir()), "its things are there now"
        os.kill(screen.popen.pid, number)
        assert screen.wait() == 130, screen.shown
    nothing_left(tmp_path, room)


@pytest.mark.req("first_minutes:F4")
def test_interrupted_twice_it_still_leaves_nothing_and_no_process(tmp_path: Path, room: Path) -> None:
    with terminal(tmp_path, room) as screen:
        screen.until(ALLOW)
        for _ in range(5):
            with contextlib.suppress(ProcessLookupError):
                os.kill(screen.popen.pid, signal.SIGINT)
        assert screen.wait() == 130, screen.shown
    nothing_left(tmp_path, room)
    wait_until(lambda: not living_with(str(room)), 10)


@pytest.mark.req("first_minutes:F4")
def test_a_reader_that_leaves_takes_the_demo_along_and_nothing_is_left(tmp_path: Path, room: Path) -> None:
    script = f"{QUINTET} demo --home {tmp_path / 'home'} | head -n 1"
    done = subprocess.run(
        ["bash", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, timeout=30,
        env=environment(TMPDIR=str(room)), check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr
    nothing_left(tmp_path, room)


@pytest.mark.req("first_minutes:F4")
@pytest.mark.parametrize("shown", ["A project to try", "1. It edits", "you say: run"])
def test_interrupted_at_any_step_it_leaves_nothing(tmp_path: Path, room: Path, shown: str) -> None:
    with running(QUINTET, "demo", "--home", str(tmp_path / "home"), TMPDIR=str(room)) as process:
        process.until(lambda line: shown in line)
        os.kill(process.pid, signal.SIGINT)
        code = process.wait(30)
    assert code in (0, 130), process.words()  # it may have been over before the signal came
    nothing_left(tmp_path, room)
    wait_until(lambda: not living_with(str(room)), 10)


@pytest.mark.req("first_minutes:F2")
def test_where_no_sandbox_works_it_says_so_in_the_request_and_works_all_the_same(tmp_path: Path, room: Path) -> None:
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mount namespaces cannot be made here")
    (tmp_path / "empty").write_text("")
    script = f'mount --bind {tmp_path / "empty"} /usr/bin/bwrap && exec "$0" demo --home {tmp_path / "home"}'
    argv = ["unshare", "-m", "sh", "-c", script, QUINTET]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, env=environment(TMPDIR=str(room)), check=False
    )
    assert done.returncode == 0, done
    assert b"NOT SANDBOXED" in done.stderr
    assert b"Ran 1 test" in done.stdout + done.stderr
    nothing_left(tmp_path, room)


@pytest.mark.req("first_minutes:F4")
def test_a_disk_that_is_too_small_is_one_line_and_nothing_is_left(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        fill(disk, leave=65_536)
        assert "space" in one_line(demo(tmp_path, disk), 6)
        assert [path.name for path in disk.iterdir()] == ["filler"]
