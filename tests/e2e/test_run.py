"""`quintet run` as scripts meet it: exit codes, `--json`, being stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.faults.processes import (
    QUINTET,
    environment,
    living_with,
    no_traceback,
    one_line,
    quintet,
    quintet_running,
    running,
    wait_until,
    write_home,
)

ASKS = 'scope: turn\ntool_call: shell {"command": "echo hi > made"}\n---\ntext: "end"\n'
HOLDS = 'scope: turn\ntext: "begin "\nuntil: never\n'


def check_lines(lines: list[dict[str, Any]]) -> None:
    assert all(line["v"] == 1 and line["kind"] and line["cursor"] > 0 for line in lines)
    cursors = [line["cursor"] for line in lines]
    assert cursors == sorted(set(cursors))
    assert lines[-1]["kind"] == "turn.finished"
    assert sum(line["kind"] == "turn.finished" for line in lines) == 1


def test_a_run_that_works_is_0_and_its_json_ends_with_the_turn(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", 'scope: turn\nthink: "hm"\ntext: "one "\ntext: "two"\nusage: in=3 out=2\n')
    plain = quintet("run", "prompt", home=home)
    assert (plain.code, plain.out) == (0, "one two\n"), plain
    done = quintet("run", "--json", "prompt", home=home)
    assert done.code == 0, done
    assert done.err == ""
    check_lines(done.lines)
    kinds = [line["kind"] for line in done.lines]
    assert {"turn.queued", "turn.started", "reasoning.delta", "text.delta", "step.finished"} <= set(kinds)


def test_without_a_model_a_replacement_is_read_edited_and_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    home = tmp_path / "home"
    home.mkdir()
    words = ("run", "--mode", "allow", "--json", "replace one with two in a.txt")
    done = quintet(*words, home=home, cwd=tmp_path)
    assert done.code == 0, done
    assert [line["payload"]["name"] for line in done.lines if line["kind"] == "tool.started"] == ["read", "edit"]
    assert (tmp_path / "a.txt").read_text() == "two\n"
    again = quintet("run", "--mode", "allow", "replace one with two in a.txt", home=home, cwd=tmp_path)
    assert "the old text does not occur" in again.out, again


@pytest.mark.req("mechanisms:M4.onask", "mechanisms:M4.expiry", "security:S27a")
@pytest.mark.parametrize(("on_ask", "state"), [("deny", "done"), ("fail", "failed"), ("wait:0.2", "done")])
def test_an_approval_nobody_gives_is_3_and_nothing_happened(tmp_path: Path, on_ask: str, state: str) -> None:
    home = write_home(tmp_path / "home", ASKS)
    done = quintet("run", "--json", "--on-ask", on_ask, "prompt", home=home, cwd=tmp_path)
    no_traceback(done)
    assert done.code == 3, done
    check_lines(done.lines)
    assert done.lines[-1]["payload"]["state"] == state
    assert any(line["kind"] == "interaction.requested" for line in done.lines)
    assert not (tmp_path / "made").exists()


@pytest.mark.req("mechanisms:M4.onask")
def test_with_nobody_at_the_terminal_asking_is_denying_and_never_hangs(tmp_path: Path) -> None:
    done = quintet("run", "prompt", home=write_home(tmp_path / "home", ASKS), cwd=tmp_path, timeout_s=10)
    assert done.code == 3, done
    assert not (tmp_path / "made").exists()


def test_a_failing_provider_is_5_and_keeps_what_it_said(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", 'scope: turn\ntext: "half of "\nerror: 529 overloaded\n')
    done = quintet("run", "--json", "prompt", home=home)
    assert done.code == 5, done
    check_lines(done.lines)
    assert done.lines[-1]["payload"]["error"]["code"] == "provider_failed"
    partial = [li["payload"]["item"]["body"] for li in done.lines if li["kind"] == "item.added"][-1]
    assert (partial["text"], partial["partial"]) == ("half of ", True)


@pytest.mark.req("mechanisms:M3.model")
def test_an_unknown_model_is_5_in_one_line_that_names_those_that_work(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    done = quintet("run", "-m", "nobody/nothing", "help", home=home)
    assert "offline/offline" in one_line(done, 5)
    assert quintet("threads", "list", "--json", home=home).out == "", "a thread was begun"


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--no-such-flag", "x"),
        ("run", "--on-ask", "perhaps", "x"),
        ("run", "--on-ask", "wait:nan", "x"),
        ("run", "--max-steps", "0", "x"),
        ("run", "--max-steps", "many", "x"),
        ("run", "--timeout", "soon", "x"),
        ("run", "--timeout", "-1", "x"),
        ("run", "--timeout", "nan", "x"),
        ("run", "@/no/such/file"),
        ("run",),
        ("nothing",),
        ("threads", "nothing"),
        ("events", "--after", "x"),
        ("threads", "show", "ab"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2_in_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = quintet(*words, home=write_home(tmp_path / "home"), timeout_s=10)
    one_line(done, 2)


def test_too_many_steps_are_1(tmp_path: Path) -> None:
    script = "scope: turn\n" + "\n---\n".join(['tool_call: list {"path": "."}'] * 4)
    done = quintet("run", "--json", "--max-steps", "2", "x", home=write_home(tmp_path / "home", script))
    assert done.code == 1, done
    check_lines(done.lines)
    assert done.lines[-1]["payload"]["error"]["code"] == "step_limit"


def test_a_time_limit_is_124_and_leaves_a_cancelled_turn(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", HOLDS)
    done = quintet("run", "--json", "--timeout", "0.3", "x", home=home, timeout_s=10)
    assert done.code == 124, done
    assert done.seconds < 3
    check_lines(done.lines)
    assert done.lines[-1]["payload"]["state"] == "cancelled"


@pytest.mark.parametrize(
    ("number", "state"), [(signal.SIGINT, "cancelled"), (signal.SIGTERM, "interrupted"), (signal.SIGHUP, "interrupted")]
)
def test_a_signal_is_130_and_leaves_one_finished_turn(tmp_path: Path, number: signal.Signals, state: str) -> None:
    home = write_home(tmp_path / "home", HOLDS)
    with quintet_running("run", "--json", "x", home=home) as run:
        run.event("text.delta")
        run.popen.send_signal(number)
        assert run.wait(5) == 130, run.words()
        check_lines([json.loads(line) for _, line in run.lines])
        assert json.loads(run.lines[-1][1])["payload"]["state"] == state
        assert run.err == [], run.words()


def test_a_hang_up_that_was_to_be_ignored_is_ignored(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", 'scope: turn\ntext: "begin "\nuntil: go\ntext: "end"\n')
    words = ("env", "--ignore-signal=HUP", QUINTET, "run", "--json", "x", "--home", str(home))
    with running(*words) as run:
        run.event("text.delta")
        run.popen.send_signal(signal.SIGHUP)
        (home / "go").touch()
        assert run.wait(10) == 0, run.words()


def test_a_second_ctrl_c_ends_the_process_at_once_with_what_it_had_started(tmp_path: Path) -> None:
    home, word = write_home(tmp_path / "home"), f"20.{os.getpid()}"
    command = f"run trap '' TERM; touch started; sleep {word}"
    with quintet_running("run", "--json", "--mode", "allow", command, home=home, cwd=tmp_path) as run:
        wait_until((tmp_path / "started").exists, 10)
        run.popen.send_signal(signal.SIGINT)
        run.event("turn.cancel_requested")
        run.popen.send_signal(signal.SIGINT)  # within the moment of grace that the command has
        assert run.wait(5) == 130, run.words()
        assert "turn.finished" not in "".join(line for _, line in run.lines), run.words()
        assert run.err == [], run.words()
    wait_until(lambda: not living_with(word), 5)
    (thread,) = quintet("threads", "list", "--json", home=home).lines
    assert thread["state"] == "interrupted"


@pytest.mark.parametrize("words", [("events", "--follow"), ("events", "--follow", "--json")], ids=" ".join)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_follower_is_stopped_by_a_signal_without_a_word(
    tmp_path: Path, words: tuple[str, ...], number: signal.Signals
) -> None:
    home = write_home(tmp_path / "home")
    assert quintet("run", "help", home=home).code == 0
    with quintet_running(*words, "--after", "0", home=home) as follower:
        follower.until(lambda line: "turn.finished" in line)
        follower.popen.send_signal(number)
        code = follower.wait(5)
        assert code in (130, -signal.SIGTERM), follower.words()
        assert follower.err == [], follower.words()


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", 'scope: turn\nrepeat: 500 every 0.002 text: "word "\n')
    line = f"{QUINTET} run --json x --home {home} | head -n 3"
    done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=20, env=environment(), check=False)
    assert len(done.stdout.splitlines()) == 3
    assert b"Traceback" not in done.stderr, done.stderr
    listed = quintet("threads", "list", "--json", home=home).lines
    assert "running" not in {t["state"] for t in listed}


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (HOLDS, "--json x"),
        (HOLDS, "x"),
        (ASKS, "--json --on-ask wait:60 x"),
        ('scope: turn\nrepeat: 60000 every 0.001 text: "word "\n', "x"),
    ],
    ids=["silent", "text", "asking", "talking"],
)
def test_a_reader_that_goes_away_ends_the_turn_also_when_nothing_more_is_said(
    tmp_path: Path, script: str, words: str
) -> None:
    home = write_home(tmp_path / "home", script)
    line = f"{QUINTET} run {words} --home {home} | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=20, env=environment(), check=False)
    assert done.returncode == 1, done
    assert b"Traceback" not in done.stderr, done.stderr
    (thread,) = quintet("threads", "list", "--json", home=home).lines
    assert thread["state"] == "idle"
    assert quintet("approvals", "list", "--json", home=home).out == ""
    assert "cancelled" in quintet("threads", "show", thread["id"], home=home).out


def test_going_on_with_a_thread_and_the_newest_one(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    first = quintet("run", "--json", "echo one", home=home, cwd=tmp_path).lines[-1]["thread"]
    assert quintet("run", "--json", "-c", "echo two", home=home, cwd=tmp_path).lines[-1]["thread"] == first
    assert quintet("run", "--json", "--thread", first, "echo three", home=home).lines[-1]["thread"] == first
    other = tmp_path / "other"
    other.mkdir()
    one_line(quintet("run", "-c", "echo four", home=home, cwd=other), 1)
