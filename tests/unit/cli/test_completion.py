"""Completion and man page: made from the program's own parsers, and read by the programs they are made for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from quintet.cli import COMMANDS
from quintet.cli.completion import bash, fish, zsh
from quintet.cli.manual import manual
from quintet.cli.words import all_words

ROOT = Path(__file__).parents[3]
ASK = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _quintet; printf "%s\\n" "${COMPREPLY[@]}"'


def completed(script: Path, *words: str) -> list[str]:
    done = subprocess.run(
        ["bash", "--norc", "-c", ASK, "ask", str(script), "quintet", *words],
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    return done.stdout.split()


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "quintet.bash"
    path.write_text(bash(all_words()))
    return path


def test_a_command_is_completed_from_its_beginning(script: Path) -> None:
    assert completed(script, "thr") == ["threads"]
    assert completed(script, "") == list(COMMANDS)


def test_actions_flags_and_their_words_follow_their_command(script: Path) -> None:
    assert completed(script, "threads", "exp") == ["export"]
    assert completed(script, "threads", "export", "--fo") == ["--format", "--force"]
    assert completed(script, "threads", "export", "--format", "") == ["jsonl", "md", "html"]
    assert "--budget" in completed(script, "run", "--mode", "ask", "hello", "--")
    assert completed(script, "approvals", "allow", "x", "--for", "al") == ["always"]


def test_what_is_no_word_of_ours_is_completed_as_a_file(script: Path, tmp_path: Path) -> None:
    (tmp_path / "some-file").touch()
    assert completed(script, "run", f"{tmp_path}/so") == [f"{tmp_path}/some-file"]


@pytest.mark.parametrize(("shell", "make"), [("zsh", zsh), ("fish", fish)])
def test_the_script_is_sound_to_its_shell(shell: str, make: object, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(make(all_words()))  # type: ignore[operator]
    subprocess.run([shell, "-n", str(path)], check=True, timeout=10)


def test_every_command_action_and_flag_is_in_every_script() -> None:
    words = all_words()
    for script_text in (bash(words), fish(words)):
        for word in words:
            assert word.path[-1] in script_text
            assert all(flag.lstrip("-") in script_text for flag in word.flags)


def test_the_man_page_is_up_to_date_and_roff_has_nothing_to_say_of_it(tmp_path: Path) -> None:
    page = ROOT / "data" / "share" / "man" / "man1" / "quintet.1"
    assert page.read_text() == manual(), "run `make docs`"
    assert all(f".SS quintet {name}" in manual() for name in COMMANDS)
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z", str(page)], capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stderr == ""
