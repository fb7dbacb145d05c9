"""quintet alone: the state of things, and the next commands that fit it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quintet.cli import main
from quintet.cli.overview import Overview, look, next_commands
from quintet.journal.peeking import Glance
from quintet.workspace.credentials import Credentials
from quintet.workspace.key_store import KeyStore
from tests.faults.disks import small_disk

LATE = (
    "httpx2",
    "h11",
    "uvicorn",
    "tree_sitter",
    "pathspec",
    "cryptography",
    "quintet.app",
    "quintet.workspace.history",
)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith(("QUINTET_", "OPENAI", "ANTHROPIC", "OPENROUTER"))]:
        monkeypatch.delenv(name)


def commands(state: Overview) -> list[str]:
    return [command for command, _ in next_commands(state)]


def state(**given: object) -> Overview:
    return Overview("/h", True, model="offline/offline", bubblewrap=True, **given)  # type: ignore[arg-type]


@pytest.mark.req("first_minutes:F1")
def test_alone_it_says_in_a_dozen_lines_what_it_is_and_what_to_do_and_makes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--home", str(tmp_path / "home")]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert shown.err == ""
    assert 10 <= len(lines) <= 16
    assert "coding-agent server" in lines[0]
    assert [line.split()[1] for line in lines if line.startswith("  quintet ")] == ["demo", "auth", "models"]
    assert not (tmp_path / "home").exists()


@pytest.mark.req("first_minutes:F1")
def test_as_json_it_is_one_versioned_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "--home", str(tmp_path / "home")]) == 0
    [line] = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert (told["v"], told["there"], told["threads"], told["keys"]) == (1, False, None, [])
    assert len(told["next"]) == 3


@pytest.mark.req("first_minutes:F1")
def test_it_imports_nothing_that_only_a_turn_or_a_network_needs(tmp_path: Path) -> None:
    look_at = f"print([m for m in {LATE} if m in sys.modules])"
    script = f"import sys; from quintet.cli import main; main(['--home', {str(tmp_path / 'home')!r}]); {look_at}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.req("first_minutes:F1")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["quintet demo", "quintet auth set anthropic", "quintet models --local"]),
        ({"threads": Glance(3, waiting=2)}, ["quintet approvals list", "quintet auth set anthropic"]),
        ({"threads": Glance(3, interrupted=1)}, ["quintet threads list"]),
        ({"problem": "config.toml is wrong"}, ["quintet doctor", "quintet demo"]),
        ({"keys": ("openai",)}, ["quintet demo", 'quintet run "explain this repository"']),
        (
            {"keys": ("openai",), "threads": Glance(3), "newest_is_here": True},
            ['quintet run "explain this repository"', 'quintet run -c "go on"'],
        ),
    ],
)
def test_the_next_commands_fit_the_state(given: dict[str, object], expected: list[str]) -> None:
    found = commands(state(**given))
    assert found[: len(expected)] == expected
    assert len(found) == len(set(found)) == 3


@pytest.mark.req("first_minutes:F1")
def test_it_tells_threads_keys_and_models_of_a_real_home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "home"
    assert main(["run", "echo what there is", "--home", str(home)]) == 0
    Credentials(str(home), KeyStore({})).set("openai", "canary-key-0123456789")
    capsys.readouterr()
    found = look(str(home))
    assert found.threads is not None
    assert (found.threads.threads, found.threads.newest) == (1, "echo what there is")
    assert found.keys == ("openai",)
    main(["--home", str(home)])
    shown = capsys.readouterr().out
    assert "canary" not in shown
    assert "the newest: echo what there is (just now)" in shown
    assert "keys found: openai" in shown


@pytest.mark.req("first_minutes:F1")
@pytest.mark.parametrize("broken", ["config.toml", "quintet.db"])
def test_what_is_broken_is_one_line_and_the_first_command_is_the_doctor(
    tmp_path: Path, broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / broken).write_bytes(b"this is neither TOML nor a database" * 200)
    assert main(["--home", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "  problem  " in shown
    assert shown.partition("Next:\n")[2].split()[:2] == ["quintet", "doctor"]


def test_a_title_that_would_drive_the_terminal_is_shown_harmless(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "echo \x1b[31mred\x1b]0;owned\x07", "--home", str(tmp_path / "home")]) == 0
    capsys.readouterr()
    main(["--home", str(tmp_path / "home")])
    assert "\x1b" not in capsys.readouterr().out


def test_a_flag_it_does_not_know_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--wrong"])
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_that_the_home_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        (disk / "home").mkdir(mode=0o700)
        assert look(str(disk / "home")).problem == ""
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True, timeout=10)
        seen = look(str(disk / "home"))
    assert "cannot be written" in seen.problem
    assert commands(seen)[0] == "quintet doctor"


@pytest.mark.req("first_minutes:F1")
def test_going_on_is_offered_only_where_the_newest_thread_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = str(tmp_path / "home")
    assert main(["--home", home, "run", "--cwd", str(tmp_path), "echo a"]) == 0
    monkeypatch.chdir("/")
    assert not any("run -c" in command for command in commands(look(home)))
    monkeypatch.chdir(tmp_path)
    assert any("run -c" in command for command in commands(look(home)))
