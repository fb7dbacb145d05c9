"""A shell in a real terminal, without a network: lines are typed, and its prompt says when and how each one ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.installation import clean_environment, cut_off
from tests.fakes.terminals import Tmux, tmux

SIZE = (160, 50)
RC = "PS1='\\#:$?> '; unset HISTFILE\n"  # the prompt says which line comes now, and how the last one ended
LONGEST_S = 60.0


class ShellWindow:
    def __init__(self, terminal: Tmux) -> None:
        self._terminal = terminal
        self._typed = 0
        terminal.until("1:0>")

    def said(self, screen: str) -> str:
        """What is on the screen since the line that was typed last, itself included."""
        return f"\n{screen}".rpartition(f"\n{self._typed}:")[2]

    def begin(self, line: str) -> None:
        self._terminal.enter(line)
        self._typed += 1

    def answer(self, text: str) -> None:
        self._terminal.enter(text)

    def interrupt(self) -> None:
        self._terminal.key("C-c")

    def shown(self, words: str) -> str:
        """Wait until the line has shown these words."""
        return self.said(self._terminal.until(lambda screen: words in self.said(screen), LONGEST_S))

    def ended(self) -> tuple[int, str]:
        """Wait for the next prompt. (exit code, what was shown before it)"""
        prompt = re.compile(rf"\n{self._typed + 1}:(\d+)>\s*$")
        said = self.said(self._terminal.until(lambda screen: prompt.search(self.said(screen)), LONGEST_S))
        found = prompt.search(said)
        assert found
        return int(found[1]), said[: found.start()]

    def type(self, line: str) -> str:
        """One line to its end, which must be a good one; what it showed."""
        self.begin(line)
        code, said = self.ended()
        assert code == 0, f"{line!r} ended with {code}:\n{said}"
        return said.partition("\n")[2]


@contextmanager
def shell_window(directory: Path, home: Path) -> Iterator[ShellWindow]:
    """Of a person with this home, and nothing of the environment the tests run in."""
    rc = home.with_name(f"{home.name}.bashrc")
    rc.write_text(RC)
    environment = clean_environment(HOME=str(home), TERM="xterm-256color")
    environment.pop("NO_COLOR")
    words = [f"{name}={value}" for name, value in environment.items()]
    shell = [*cut_off(), "env", "-i", *words, "bash", "--noprofile", "--rcfile", str(rc), "-i"]
    with tmux(shell, directory, size=SIZE) as terminal:
        yield ShellWindow(terminal)
