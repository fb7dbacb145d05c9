"""Terminals to type at: a real one (tmux) whose screen is read, and a bare pty whose bytes are kept.

Every wait is bounded. Whatever is started here is ended here: tmux by its own socket, programs by their id.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.faults.processes import environment

LOOK_S = 0.03
ended_with = re.compile(r"^ENDED (\d+)$", re.M)

needs_tmux = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed; the pty tests still run")


class Tmux:
    """A program in a tmux of its own. When it has ended, `ENDED code` stands on the screen."""

    def __init__(self, argv: Sequence[str], cwd: Path, *, size: tuple[int, int] = (80, 30), **env: str) -> None:
        self._socket = f"quintet-test-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._env = environment(**env)
        self._env.pop("TMUX", None)
        self._place = tempfile.mkdtemp(prefix="qt-")  # of its socket, whose path must be short; tmux leaves it behind
        self._env["TMUX_TMPDIR"] = self._place
        # The program is started by a shell, which can say how it ended and in what state it left the terminal.
        line = f"{shlex.join(argv)}; echo ENDED $?; stty -a; exec cat"
        columns, rows = map(str, size)
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, "-c", str(cwd), "sh", "-c", line)

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *words], capture_output=True, timeout=15, env=self._env, check=True
        )
        return done.stdout.decode()

    def screen(self, *, colors: bool = False, scrolled: bool = True) -> str:
        """What is to be seen, with what has scrolled away above it."""
        return self._tmux("capture-pane", "-p", *["-e"] * colors, *["-S", "-"] * scrolled)

    def until(self, found: str | Callable[[str], Any], within_s: float = 20.0) -> str:
        """The screen, once these words are on it or this holds for it."""
        holds = (lambda text: found in text) if isinstance(found, str) else found
        deadline = time.monotonic() + within_s
        while not holds(shown := self.screen()):
            assert time.monotonic() < deadline, f"not seen: {found!r}\n{shown.rstrip()}"
            time.sleep(LOOK_S)
        return shown

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def enter(self, text: str) -> None:
        self.type(text)
        self.key("Enter")

    def key(self, *names: str) -> None:
        self._tmux("send-keys", *names)

    def paste(self, text: str) -> None:
        self._tmux("set-buffer", text)
        self._tmux("paste-buffer", "-p")

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def format(self, what: str) -> str:
        return self._tmux("display-message", "-p", what).strip()

    def ended(self, within_s: float = 20.0) -> int:
        """The program's exit code; the terminal must be what a shell expects."""
        shown = self.until(lambda text: ended_with.search(text) and "rprnt" in text, within_s)
        state = shown[shown.index("ENDED") :]
        for setting in ("icanon", "echo", "isig", "icrnl", "opost"):
            assert re.search(rf"(?<![-\w]){setting}\b", state), f"{setting} is off:\n{state}"
        found = ended_with.search(shown)
        assert found
        return int(found[1])

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):  # it is gone already
            self._tmux("kill-server")
        shutil.rmtree(self._place, ignore_errors=True)


@contextlib.contextmanager
def tmux(argv: Sequence[str], cwd: Path, *, size: tuple[int, int] = (80, 30), **env: str) -> Iterator[Tmux]:
    terminal = Tmux(argv, cwd, size=size, **env)
    try:
        yield terminal
    finally:
        terminal.close()


def _at_the_terminal() -> None:
    """So that Ctrl-C and hanging up are told, also where whoever started the tests ignores them (nohup)."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class Pty:
    """A program at a bare pty: nobody interprets what it writes, so every byte can be looked at."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        *,
        size: tuple[int, int] = (80, 30),
        unset: Sequence[str] = (),
        **env: str,
    ) -> None:
        self.master, slave = pty.openpty()
        columns, rows = size
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.popen = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env={k: v for k, v in environment(**{"TERM": "xterm-256color"} | env).items() if k not in unset},
            start_new_session=True,
            preexec_fn=_at_the_terminal,
        )
        os.close(slave)
        self._data = b""
        self._read_to = 0

    @property
    def shown(self) -> str:
        return self._data.decode(errors="replace").replace("\r\n", "\n")

    def until(self, words: str, within_s: float = 20.0) -> str:
        """What was written since the last call up to and with these words."""
        deadline = time.monotonic() + within_s
        while (at := self.shown.find(words, self._read_to)) < 0:
            assert time.monotonic() < deadline, f"not written: {words!r}\n{self.shown!r}"
            assert self._more() or self.shown.find(words, self._read_to) >= 0, f"ended:\n{self.shown!r}"
        begun, self._read_to = self._read_to, at + len(words)
        return self.shown[begun : self._read_to]

    def _more(self) -> bool:
        ready, _, _ = select.select([self.master], [], [], 0.1)
        if not ready:
            return True
        try:
            data = os.read(self.master, 65_536)
        except OSError:
            return False
        self._data += data
        return bool(data)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self.master)

    def ended(self, within_s: float = 20.0) -> int:
        deadline = time.monotonic() + within_s
        while self._more() and self.popen.poll() is None:
            assert time.monotonic() < deadline, f"still running:\n{self.shown!r}"
        return self.popen.wait(within_s)

    def hang_up(self) -> None:
        """Nobody is at the other end any more."""
        os.close(self.master)
        self.master = -1

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGKILL)
            self.popen.wait(15)
        if self.master >= 0:
            os.close(self.master)


@contextlib.contextmanager
def at_pty(argv: Sequence[str], cwd: Path, *, unset: Sequence[str] = (), **env: str) -> Iterator[Pty]:
    terminal = Pty(argv, cwd, unset=unset, **env)
    try:
        yield terminal
    finally:
        terminal.close()
