"""Streams that are missing, full or of a small alphabet, and defects of ours: an exit code, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.processes import QUINTET, environment, one_line, quintet, write_home

FULL = "/dev/full"
COMMANDS = [
    "run 'echo hi'",
    "run --json 'echo hi'",
    "threads list",
    "approvals list",
    "version",
    "methods",
    "--help",
    "run --help",
    "threads list --help",
]


def shell(line: str, home: Path, **env: str) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        ["bash", "-c", line.replace("quintet", QUINTET, 1)],
        capture_output=True,
        timeout=30,
        cwd=home,
        env=environment(QUINTET_HOME=str(home), **env),
        check=False,
    )
    said = done.stdout + done.stderr
    assert b"Traceback" not in said, said
    assert b"Exception ignored" not in said, said
    return done


@pytest.mark.parametrize("words", COMMANDS)
def test_a_closed_stream_is_as_good_as_dev_null(tmp_path: Path, words: str) -> None:
    home = write_home(tmp_path / "home")
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        assert shell(f"quintet {words} {closed}", home).returncode == 0, closed
    assert shell("quintet threads list --json", home).returncode == 0, "something was written into the journal"


def test_a_prompt_from_a_closed_stdin_is_wrong_usage(tmp_path: Path) -> None:
    done = shell("quintet run <&-", write_home(tmp_path / "home"))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(not Path(FULL).exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("words", ["--version", *(c for c in COMMANDS if c not in ("threads list", "approvals list"))])
def test_output_for_which_there_is_no_space_is_6_and_one_line(tmp_path: Path, words: str, unbuffered: str) -> None:
    done = shell(f"quintet {words} >{FULL}", write_home(tmp_path / "home"), PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 6, done
    assert b"no space" in done.stderr.splitlines()[-1]


@pytest.mark.skipif(not Path(FULL).exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["run 'echo hi'", "threads show abcdefgh", "nothing", "threads", "run --wrong"])
def test_an_error_that_cannot_even_be_told_keeps_its_exit_code(tmp_path: Path, words: str) -> None:
    done = shell(f"quintet {words} 2>{FULL}", write_home(tmp_path / "home"))
    expected = {"run 'echo hi'": 6, "threads show abcdefgh": 1}.get(words, 2)
    assert done.returncode == expected, done


@pytest.mark.parametrize("words", ["run 'echo grün — ✓'", "threads list"])
def test_what_the_encoding_cannot_take_is_written_escaped(tmp_path: Path, words: str) -> None:
    home = write_home(tmp_path / "home")
    assert quintet("run", "echo grün — ✓", home=home).code == 0
    done = shell(f"quintet {words}", home, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done
    assert b"gr\\xfcn \\u2014 \\u2713" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("gc", "--grace", "nan"),
        ("gc", "--grace", "inf"),
        ("gc", "--grace", "-1"),
        ("gc", "--grace", "1e300"),
        ("threads", "list", "-n", "99999999999999999999"),
        ("threads", "search", "-n", "99999999999999999999", "x"),
        ("threads", "list", "-n", "9" * 5_000),
        ("run", "--max-steps", "99999999999999999999", "x"),
        ("run", "--timeout", "inf", "x"),
        ("events", "--after", "9" * 30),
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_a_number_out_of_all_bounds_is_wrong_usage(tmp_path: Path, words: tuple[str, ...]) -> None:
    one_line(quintet(*words, home=write_home(tmp_path / "home")), 2)


DEFECT = """
import sys
from quintet.cli import main
import quintet.cli.{module} as module
async def broken(invocation):
    {how}
module.run = broken
sys.exit(main(sys.argv[1:]))
"""


def defect(home: Path, how: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", DEFECT.format(module="version", how=how), "version", "--home", str(home)],
        capture_output=True,
        text=True,
        timeout=30,
        env=environment(**env),
        check=False,
    )


@pytest.mark.parametrize("error", ["ZeroDivisionError", "OSError", "RecursionError", "MemoryError"])
def test_a_defect_is_one_line_that_names_the_log_and_the_log_has_it_without_secrets(tmp_path: Path, error: str) -> None:
    home = write_home(tmp_path / "home")
    done = defect(home, f"raise {error}('with a-very-secret-value')", MY_API_KEY="a-very-secret-value")
    log = home / "quintet.log"
    assert done.returncode == 1
    where = "(docs/errors.md#internal)"
    assert done.stderr == f"quintet: failed unexpectedly ({error}); the log has more: {log} {where}\n"
    assert "Traceback" in log.read_text()
    assert error in log.read_text()
    assert "a-very-secret-value" not in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_defect_without_a_home_is_still_one_line(tmp_path: Path) -> None:
    done = defect(tmp_path / "nowhere", "raise ZeroDivisionError")
    assert (done.returncode, done.stderr) == (
        1,
        "quintet: failed unexpectedly (ZeroDivisionError) (docs/errors.md#internal)\n",
    )
    assert not (tmp_path / "nowhere").exists()


def test_a_defect_in_a_callback_goes_to_the_log_alone(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    how = "import asyncio; asyncio.get_running_loop().call_soon(lambda: 1 / 0); await asyncio.sleep(0.01); return 0"
    done = defect(home, how)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ZeroDivisionError" in (home / "quintet.log").read_text()
