"""Approvals and questions at a real terminal: one at a time, each answered by what was typed after it was shown."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.processes import QUINTET, environment, quintet, write_home

ALLOW = "allow? [y]es, [n]o:"
TWO = (
    'scope: turn\ntool_call: shell {"command": "echo one > first"}\n'
    'tool_call: shell {"command": "echo two > second"}\n---\ntext: "end"\n'
)
COMMANDS = {"first": "echo one > first", "second": "echo two > second"}
QUESTIONS = (
    'scope: turn\ntool_call: ask_user {"questions": ['
    '{"question": "Which way?", "options": [{"label": "left"}, {"label": "right"}]}, '
    '{"question": "Which colours?", "multiple": true, '
    '"options": [{"label": "red"}, {"label": "green"}, {"label": "blue"}]}]}\n---\ntext: "end"\n'
)


class Terminal:
    """A command, `quintet run` unless said otherwise, on a terminal of its own; what it shows is read as it comes."""

    def __init__(self, home: Path, cwd: Path, words: tuple[str, ...] = ("run", "prompt"), **env: str) -> None:
        self._master, slave = pty.openpty()
        self.popen = subprocess.Popen(
            [QUINTET, *words, "--home", str(home)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env=environment(**env),
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ""
        self._read_to = 0

    def _more(self, within_s: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], within_s)
        if not ready:
            return True
        try:
            data = os.read(self._master, 65_536)
        except OSError:
            return False
        self.shown += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)

    def until(self, words: str, within_s: float = 15.0) -> str:
        """What was shown since the last call up to and with these words."""
        deadline = time.monotonic() + within_s
        while (at := self.shown.find(words, self._read_to)) < 0:
            assert time.monotonic() < deadline, f"{words!r} was not shown:\n{self.shown}"
            assert self._more(0.2) or self.shown.find(words, self._read_to) >= 0, f"ended:\n{self.shown}"
        begun, self._read_to = self._read_to, at + len(words)
        return self.shown[begun : self._read_to]

    def type(self, words: str) -> None:
        os.write(self._master, words.encode())

    def wait(self, within_s: float = 15.0) -> int:
        deadline = time.monotonic() + within_s
        while self._more(0.1) and time.monotonic() < deadline:
            pass
        return self.popen.wait(within_s)

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGKILL)
            self.popen.wait(15)
        os.close(self._master)


@contextlib.contextmanager
def terminal(tmp_path: Path, script: str) -> Iterator[Terminal]:
    made = Terminal(write_home(tmp_path / "home", script), tmp_path)
    try:
        yield made
    finally:
        made.close()


def named_in(shown: str) -> str:
    """The file of the one command that is shown whole. Which of two calls asks first is left to chance."""
    (name,) = [n for n, command in COMMANDS.items() if f"$ {command}" in shown]
    return name


def made(tmp_path: Path) -> list[str]:
    return sorted(n for n in ("first", "second") if (tmp_path / n).exists())


@pytest.mark.parametrize(("typed", "code"), [("yy", 0), ("yn", 3), ("ny", 3), ("nn", 3)])
def test_of_two_requests_at_once_each_is_shown_whole_and_gets_its_own_answer(
    tmp_path: Path, typed: str, code: int
) -> None:
    with terminal(tmp_path, TWO) as screen:
        asked = []
        for word in typed:
            asked.append(named_in(screen.until(ALLOW)))
            screen.type(f"{word}\n")
        assert screen.wait() == code, screen.shown
        assert sorted(asked) == ["first", "second"]
        assert made(tmp_path) == sorted(n for n, word in zip(asked, typed, strict=True) if word == "y"), screen.shown


def test_what_was_typed_before_a_request_was_shown_does_not_answer_it(tmp_path: Path) -> None:
    script = 'scope: turn\ntext: "thinking "\nuntil: go\ntool_call: shell {"command": "echo one > first"}\n'
    with terminal(tmp_path, script) as screen:
        screen.until("thinking")
        screen.type("y\ny\n")
        screen.until("y\ny")  # the terminal has taken it: its echo is here
        (tmp_path / "home" / "go").touch()
        screen.until(ALLOW)
        screen.type("perhaps\n")
        assert "please answer y or n" in screen.until(ALLOW)
        screen.type("n\n")
        assert screen.wait() == 3, screen.shown
        assert made(tmp_path) == []


def test_the_end_of_input_denies_that_one_request_and_the_next_is_asked(tmp_path: Path) -> None:
    with terminal(tmp_path, TWO) as screen:
        screen.until(ALLOW)
        screen.type("\x04")
        screen.until("denied by")
        last = named_in(screen.until(ALLOW))
        screen.type("y\n")
        assert screen.wait() == 3, screen.shown
        assert made(tmp_path) == [last]


@pytest.mark.parametrize("elsewhere", ["shown", "waiting"])
def test_a_request_answered_elsewhere_leaves_the_other_one_asked_here(tmp_path: Path, elsewhere: str) -> None:
    with terminal(tmp_path, TWO) as screen:
        shown = screen.until(ALLOW)
        screen.until("one more request waits")
        pending = [i["id"] for i in quintet("approvals", "list", "--json", home=tmp_path / "home").lines]
        (here,) = [i for i in pending if f"{i}  " in shown]
        (other,) = [i for i in pending if i != here]
        answered = here if elsewhere == "shown" else other
        assert quintet("approvals", "deny", answered, home=tmp_path / "home").code == 0
        screen.until("denied by")
        if elsewhere == "shown":
            shown = screen.until(ALLOW)
        screen.type("y\n")
        assert screen.wait() == 3, screen.shown
        assert made(tmp_path) == [named_in(shown)], screen.shown


@pytest.mark.parametrize(("way", "colours"), [("2", "1,3"), ("right", "red, blue"), ("RIGHT", "3,1,3")])
def test_questions_are_asked_one_after_the_other_by_number_or_label(tmp_path: Path, way: str, colours: str) -> None:
    with terminal(tmp_path, QUESTIONS) as screen:
        screen.until("1) left")
        screen.until("number or label:")
        for wrong in ("3", "up", "left,right", ""):
            screen.type(f"{wrong}\n")
            screen.until("An answer is needed." if not wrong else "is not one of the answers.")
            screen.until("number or label:")
        screen.type(f"{way}\n")
        screen.until("Which colours?")
        screen.until("several with commas:")
        screen.type("red,yellow\n")
        screen.until("is not one of the answers.")
        screen.until("several with commas:")
        screen.type(f"{colours}\n")
        screen.until("answered by")
        assert screen.wait() == 0, screen.shown
    thread = quintet("threads", "list", "--json", home=tmp_path / "home").lines[0]["id"]
    items = quintet("threads", "show", thread, "--json", home=tmp_path / "home").lines[0]["items"]
    (result,) = [i["body"]["text"] for i in items if "Which way? ->" in i["body"].get("text", "")]
    assert "Which way? -> right" in result
    assert sorted(result.splitlines()[1].removeprefix("Which colours? -> ").split(", ")) == ["blue", "red"]


REMEMBERED = (
    'scope: turn\ntool_call: shell {"command": "touch first"}\n---\n'
    'tool_call: shell {"command": "touch first"}\n---\ntext: "end"\n'
)


@pytest.mark.parametrize(("typed", "scope"), [("t", "thread"), ("p", "project"), ("ALWAYS", "always")])
def test_what_could_be_remembered_is_said_and_chosen_by_a_letter(tmp_path: Path, typed: str, scope: str) -> None:
    config = "[sandbox]\nrequired = false\n"
    screen = Terminal(write_home(tmp_path / "home", REMEMBERED, config), tmp_path)
    try:
        shown = screen.until("or yes and for this [t]hread, this [p]roject, [a]lways:")
        if "NOT SANDBOXED" in shown:
            pytest.skip("without a sandbox nothing is remembered")
        assert "could be remembered (t, p or a):\n    shell: touch first\n" in shown
        screen.type("x\n")
        screen.until("please answer y, t, p, a or n")
        screen.until("[a]lways:")
        screen.type(f"{typed}\n")
        assert screen.wait() == 0, screen.shown  # the second call was not asked about
    finally:
        screen.close()
    (rule,) = quintet("approvals", "rules", "--json", home=tmp_path / "home").lines
    assert (rule["pattern"], rule["scope"], rule["exact"]) == (["touch", "first"], scope, True)
    listed = quintet("approvals", "rules", home=tmp_path / "home").out
    assert ("thr_" in listed) == (scope == "thread"), "which of two is meant, when one is to be revoked"


def test_the_rules_of_the_project_are_listed_with_their_file(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", "", '[policy.rules]\n"shell: make" = "allow"\n')
    file = tmp_path / ".quintet" / "config.toml"
    file.parent.mkdir()
    file.write_text('[policy.rules]\n"shell: git push *" = "deny"\n')
    listed = quintet("approvals", "rules", "--json", home=home, cwd=tmp_path).lines
    assert [(r["rule"], r["file"]) for r in listed] == [
        ("shell: make", "config.toml"),
        ("shell: git push *", str(file)),
    ]
    assert str(file) in quintet("approvals", "rules", home=home, cwd=tmp_path).out
