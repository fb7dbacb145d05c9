"""`quintet chat` at a bare pty: without tmux, at terminals that can do little, and what is left when it ends badly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.terminals import at_pty
from tests.faults.processes import QUINTET, one_line, quintet, wait_until, write_home

pytestmark = pytest.mark.timeout(90)

CALL = 'scope: turn\ntext: "so "\ntool_call: shell {"command": "echo one > first"}\n---\ntext: "the **end**"\n'
CANONICAL = 3  # index of the local flags in what tcgetattr gives


def argv(tmp_path: Path, *words: str) -> list[str]:
    return [QUINTET, "chat", *words, "--home", str(tmp_path / "home")]


def test_without_a_terminal_one_line_names_run(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    assert "quintet run PROMPT" in one_line(quintet("chat", home=home), 2)
    refused = quintet("chat", "--json", home=home)
    assert refused.code == 2
    assert "quintet run --json" in json.loads(refused.err)["error"]["next_step"]


def test_the_terminals_library_is_imported_by_no_other_command() -> None:
    code = "import sys, quintet.cli.run, quintet.cli.chat, quintet.cli.docs; print('prompt_toolkit' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=True)
    assert done.stdout == b"False\n"


def test_a_pty_without_anybody_behind_it_is_enough(tmp_path: Path) -> None:
    write_home(tmp_path / "home", CALL)
    with at_pty(argv(tmp_path), tmp_path) as terminal:
        terminal.until("/help lists commands")
        terminal.type("go\r")
        assert "$ echo one > first" in terminal.until("allow>")
        assert terminal.settings() != terminal.before
        terminal.type("y\r")
        terminal.until("the end")
        terminal.type("\x04")
        assert terminal.ended() == 0
        assert terminal.settings() == terminal.before
        assert "WARNING" not in terminal.shown  # nothing was asked of the terminal that it did not answer
    assert (tmp_path / "first").exists()


@pytest.mark.parametrize("typed", ["y", "n"])
def test_a_dumb_terminal_gets_lines_and_nothing_else(tmp_path: Path, typed: str) -> None:
    write_home(tmp_path / "home", CALL)
    with at_pty(argv(tmp_path), tmp_path, TERM="dumb") as terminal:
        terminal.until("/help lists commands")
        terminal.type("go\n")
        terminal.until("allow? [y]es, [n]o:")
        terminal.type(f"{typed}\n")
        terminal.until("the end")
        terminal.type("/nonsense\n")
        terminal.until("There is no command /nonsense.")
        terminal.type("\x03")
        terminal.until("Ctrl-C again")
        terminal.type("\x04")
        assert terminal.ended() == 0
        assert "\x1b" not in terminal.shown
    assert (tmp_path / "first").exists() == (typed == "y")


def test_attached_files_go_with_the_next_thing_that_is_said_and_are_named_not_told(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", 'scope: turn\ntext: "the end"\n')
    (tmp_path / "a.txt").write_text("alpha-content\n")
    (tmp_path / "b c.txt").write_text("beta-content\n")
    with at_pty(argv(tmp_path), tmp_path, TERM="dumb") as terminal:
        terminal.until("/help lists commands")
        terminal.type("/attach a.txt\n")
        terminal.until("goes with what you say next: a.txt")
        terminal.type("/attach /etc/passwd\n")
        terminal.until("lies outside the workspace")
        terminal.type("/attach 'b c.txt'\n")
        terminal.until("goes with what you say next: a.txt, b c.txt")
        terminal.type("look\n")
        terminal.until("[attached: b c.txt]")
        terminal.until("the end")
        assert "alpha-content" not in terminal.shown
        terminal.type("/attach a.txt\n/attach\n")
        terminal.until("nothing is attached")
        terminal.type("again\n")
        terminal.until("the end")
        terminal.type("\x04")
        assert terminal.ended() == 0
    lines = quintet("events", "--json", home=home).lines
    turns = [line["payload"]["turn"]["parts"] for line in lines if line["kind"] == "turn.queued"]
    assert [[part.get("attached", {}).get("name", "") for part in parts] for parts in turns] == [
        ["", "a.txt", "b c.txt"],
        [""],
    ]


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_it_leaves_the_terminal_as_it_was_and_a_finished_turn(
    tmp_path: Path, term: str, number: signal.Signals
) -> None:
    home = write_home(tmp_path / "home", 'scope: turn\ntext: "before\\n"\nuntil: never\n')
    with at_pty(argv(tmp_path), tmp_path, TERM=term) as terminal:
        terminal.until("/help lists commands")
        terminal.type("go\r" if term != "dumb" else "go\n")
        terminal.until("before")
        os.kill(terminal.popen.pid, number)
        assert terminal.ended() == 130
        assert terminal.settings() == terminal.before
    states = [
        e["payload"]["state"] for e in quintet("events", "--json", home=home).lines if e["kind"] == "turn.finished"
    ]
    assert states == ["interrupted"]


def test_a_terminal_that_goes_away_ends_the_conversation(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", 'scope: turn\ntext: "before\\n"\nuntil: never\n')
    with at_pty(argv(tmp_path), tmp_path) as terminal:
        terminal.until("/help lists commands")
        terminal.type("go\r")
        terminal.until("before")
        terminal.hang_up()
        wait_until(lambda: terminal.popen.poll() is not None, 20)
    assert quintet("threads", "list", "--json", home=home).lines[0]["state"] == "idle"


def test_a_defect_ends_with_one_line_a_restored_terminal_and_a_log(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    program = (
        "import sys\n"
        "from quintet.cli.chat.voice import Voice\n"
        "Voice.show = lambda self, payload: 1 / 0\n"
        "from quintet.cli import main\n"
        f"sys.exit(main(['chat', '--home', {str(home)!r}]))\n"
    )
    with at_pty([sys.executable, "-c", program], tmp_path) as terminal:
        terminal.until("/help lists commands")
        terminal.type("help\r")
        terminal.until("quintet: failed unexpectedly (ZeroDivisionError)")
        assert terminal.ended() == 1
        assert terminal.settings() == terminal.before
        assert "Traceback" not in terminal.shown
    assert "ZeroDivisionError" in (home / "quintet.log").read_text()


def test_a_program_of_the_agent_holds_no_conversation(tmp_path: Path) -> None:
    from quintet.workspace.environment import MARKER

    write_home(tmp_path / "home")
    with at_pty(argv(tmp_path), tmp_path, **{MARKER: "1"}) as terminal:
        terminal.until("may not hold a conversation")
        assert terminal.ended() == 3


@pytest.mark.parametrize(("words", "env"), [((), {"NO_COLOR": "1"}), (("--no-color",), {"NO_COLOR": ""})])
def test_colours_can_be_refused_and_are_there_otherwise(
    tmp_path: Path, words: tuple[str, ...], env: dict[str, str]
) -> None:
    write_home(tmp_path / "home", 'scope: turn\ntext: "**bold** `code`\\n"\n')
    painted = "\x1b[36m`code`\x1b[0m"
    for flags, expected in ((words, False), ((), not env["NO_COLOR"])):
        environment = {name: value for name, value in env.items() if value}
        with at_pty(
            argv(tmp_path, *flags), tmp_path, unset=() if environment else ("NO_COLOR",), **environment
        ) as terminal:
            terminal.until("/help lists commands")
            terminal.type("go\r")
            terminal.until("code")
            terminal.type("\x04")
            terminal.ended()
            assert (painted in terminal.shown) == expected, terminal.shown
