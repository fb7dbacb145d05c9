"""A real terminal to type into: tmux with a server of its own, cut off from the network. Everything is bounded, and the
server is ended by its own name."""

from __future__ import annotations

import re
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.installation import clean_environment, cut_off

WIDTH, HEIGHT = 160, 50
PROMPT = "PS1='\\#:$?> '\n"


class Window:
    """One window with a shell whose prompt counts its commands and says how the last one ended."""

    def __init__(self, tmux: Terminal, name: str) -> None:
        self._tmux = tmux
        self._name = name
        self._typed = 0
        self.shown("1:0>")

    def keys(self, line: str) -> None:
        """Typed as a person would, and Enter."""
        self._tmux.call("send-keys", "-t", self._name, "-l", "--", line)
        self._tmux.call("send-keys", "-t", self._name, "Enter")

    def interrupt(self) -> None:
        self._tmux.call("send-keys", "-t", self._name, "C-c")

    def screen(self) -> str:
        """All of it from the beginning, long lines whole."""
        return self._tmux.call("capture-pane", "-t", self._name, "-p", "-J", "-S", "-")

    def said(self) -> str:
        """What is on the screen since the command that was typed last, itself included."""
        return f"\n{self.screen()}".rpartition(f"\n{self._typed}:")[2] if self._typed else self.screen()

    def begin(self, line: str) -> None:
        self.keys(line)
        self._typed += 1

    def shown(self, text: str, within_s: float = 60.0) -> str:
        """Wait until this is there, since the last command if one was typed."""
        deadline = time.monotonic() + within_s
        while text not in (now := self.said()):
            assert time.monotonic() < deadline, f"{text!r} did not appear within {within_s} s:\n{self.screen()}"
            time.sleep(0.05)
        return now

    def ended(self, within_s: float = 60.0) -> tuple[int, str]:
        """Wait for the next prompt. (exit code, what was shown before it)"""
        deadline = time.monotonic() + within_s
        while not (found := re.search(rf"\n{self._typed + 1}:(\d+)>\s*$", self.said())):
            assert time.monotonic() < deadline, f"no prompt within {within_s} s:\n{self.screen()}"
            time.sleep(0.05)
        return int(found[1]), self.said()[: found.start()]

    def type(self, line: str, within_s: float = 60.0) -> str:
        """One command to its end, which must be a good one; what it showed."""
        self.begin(line)
        code, said = self.ended(within_s)
        assert code == 0, f"{line!r} ended with {code}:\n{said}"
        return said


class Terminal:
    def __init__(self, directory: Path, home: Path) -> None:
        self._socket = f"quintet-test-{uuid.uuid4().hex[:12]}"
        self._directory = str(directory)
        rc = home.with_name(f"{home.name}.bashrc")
        rc.write_text(PROMPT)
        self._shell = f"bash --noprofile --rcfile {rc} -i"
        environment = clean_environment(HOME=str(home), TERM="xterm-256color")
        environment.pop("NO_COLOR")
        self._environment = environment
        self._start("first", *cut_off())

    def _start(self, name: str, *before: str) -> None:
        size = ("-x", str(WIDTH), "-y", str(HEIGHT))
        words = ("-f", "/dev/null", "new-session", "-d", "-s", name, *size, "-c", self._directory, self._shell)
        subprocess.run([*before, "tmux", "-L", self._socket, *words], env=self._environment, check=True, timeout=20)
        self.call("set-option", "-g", "history-limit", "20000")

    def call(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *words], env=self._environment, capture_output=True, text=True, timeout=20
        )
        assert done.returncode == 0, f"tmux {words}: {done.stderr}"
        return done.stdout

    def window(self, name: str) -> Window:
        if name != "first":
            self._start(name)
        return Window(self, name)

    def close(self) -> None:
        self.call("kill-server")


@contextmanager
def terminal(directory: Path, home: Path) -> Iterator[Terminal]:
    opened = Terminal(directory, home)
    try:
        yield opened
    finally:
        opened.close()
