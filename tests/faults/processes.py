"""Starting, watching and ending the real processes of a test. Everything started here is ended here, by its own id."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
QUINTET = str(Path(sys.executable).parent / "quintet")


def environment(**more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("QUINTET_", "OPENAI", "ANTHROPIC", "OPENROUTER"))}
    return kept | {"NO_COLOR": "1", "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"} | more


class Done:
    """A finished call of the command line."""

    def __init__(self, code: int, out: str, err: str, seconds: float) -> None:
        self.code = code
        self.out = out
        self.err = err
        self.seconds = seconds

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]

    def __repr__(self) -> str:
        out, err = self.out[-2000:], self.err[-2000:]
        return f"exit {self.code} after {self.seconds:.2f} s\n--- stdout\n{out}\n--- stderr\n{err}"


def quintet(*words: str, home: Path | str, timeout_s: float = 30.0, cwd: Path | None = None, **env: str) -> Done:
    """One call of the real executable, to its end."""
    begun = time.monotonic()
    done = subprocess.run(
        [QUINTET, *words, "--home", str(home)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout_s,
        cwd=cwd or ROOT,
        env=environment(**env),
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode(), time.monotonic() - begun)


class Process:
    """A running program whose lines are kept with the time they arrived."""

    def __init__(self, argv: Sequence[str], *, cwd: Path | None = None, new_group: bool = False, **env: str) -> None:
        self.popen = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or ROOT,
            env=environment(**env),
            process_group=0 if new_group else None,
        )
        self.lines: list[tuple[float, str]] = []
        self.err: list[str] = []
        self._news = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read_out, daemon=True),
            threading.Thread(target=self._read_err, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        return self.popen.pid

    def _read_out(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            with self._news:
                self.lines.append((time.time(), line.decode()))
                self._news.notify_all()

    def _read_err(self) -> None:
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            with self._news:
                self.err.append(line.decode())
                self._news.notify_all()

    def until(self, match: Callable[[str], bool], *, within_s: float = 15.0, after: int = 0) -> tuple[int, float, str]:
        """(index, arrival time, line) of the first matching line of stdout; fails after the bound."""
        deadline = time.monotonic() + within_s
        at = after
        with self._news:
            while True:
                while at < len(self.lines):
                    arrived, line = self.lines[at]
                    if match(line):
                        return at, arrived, line
                    at += 1
                left = deadline - time.monotonic()
                if left <= 0 or (self.popen.poll() is not None and not self._readers[0].is_alive()):
                    raise AssertionError(f"no such line within {within_s} s; {self.words()}")
                self._news.wait(min(left, 0.2))

    def event(self, kind: str, *, within_s: float = 15.0, after: int = 0) -> tuple[float, dict[str, Any]]:
        """(arrival time, event) of a process that speaks `--json`."""
        _, arrived, line = self.until(lambda text: json.loads(text).get("kind") == kind, within_s=within_s, after=after)
        return arrived, json.loads(line)

    def wait(self, within_s: float = 15.0) -> int:
        code = self.popen.wait(within_s)
        for reader in self._readers:
            reader.join(within_s)
        return code

    def say(self, line: str) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(line.encode() + b"\n")
        self.popen.stdin.flush()

    def kill(self) -> int:
        """kill -9 of this one process, and wait for its end."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGKILL)
        return self.close()

    def close(self) -> int:
        if self.popen.poll() is None:
            self.popen.kill()
        code = self.wait()
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        return code

    def words(self) -> str:
        out = "".join(line for _, line in self.lines[-15:])
        return (
            f"process {self.pid} (exit {self.popen.poll()})\n--- stdout\n{out}\n--- stderr\n{''.join(self.err[-40:])}"
        )


@contextmanager
def running(*argv: str, cwd: Path | None = None, new_group: bool = False, **env: str) -> Iterator[Process]:
    process = Process(argv, cwd=cwd, new_group=new_group, **env)
    try:
        yield process
    finally:
        process.close()


def quintet_running(
    *words: str, home: Path | str, cwd: Path | None = None, new_group: bool = False, **env: str
) -> Any:  # a context manager of Process
    return running(QUINTET, *words, "--home", str(home), cwd=cwd, new_group=new_group, **env)


def python_running(module: str, *words: str, **env: str) -> Any:  # a context manager of Process
    return running(sys.executable, "-m", module, *words, **env)


def living_with(word: str) -> list[int]:
    """Processes whose command line holds this word; the dead that wait to be reaped left out."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            line = Path(f"/proc/{name}/cmdline").read_bytes()
            state = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if word.encode() in line and state not in (b"Z", b"X"):
            found.append(int(name))
    return found


def wait_until(check: Callable[[], Any], within_s: float, every_s: float = 0.005) -> float:
    """Seconds until the check holds; fails after the bound."""
    begun = time.monotonic()
    while not check():
        if time.monotonic() - begun > within_s:
            raise AssertionError(f"did not happen within {within_s} s")
        time.sleep(every_s)
    return time.monotonic() - begun


def end_leftovers(pids: Sequence[int]) -> None:
    """Whatever a failed test left alive, by id."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def no_traceback(done: Done) -> None:
    assert "Traceback" not in done.out + done.err, done


def one_line(done: Done, code: int) -> str:
    """Refused as it should be: this exit code, one line on stderr that names a next step, no traceback."""
    no_traceback(done)
    assert done.code == code, done
    lines = done.err.strip().splitlines()
    assert len(lines) == 1, done
    assert lines[0].startswith("quintet"), done
    return lines[0]


def write_home(home: Path, script: str = "", config: str = "") -> Path:
    """A home whose default model plays this script."""
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)
    text = config
    if script:
        (home / "model.script").write_text(script)
        text = (
            'default_model = "fake/scripted"\n'
            + config
            + '\n[providers.fake]\nkind = "scripted"\nscript = "model.script"\n'
        )
    (home / "config.toml").write_text(text)
    return home


def figures(name: str, seconds: Sequence[float]) -> str:
    """Real measurements, for the output."""
    ordered = sorted(seconds)
    p = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000  # noqa: E731
    text = f"{name}: n={len(ordered)} median {p(0.5):.1f} ms, p99 {p(0.99):.1f} ms, max {ordered[-1] * 1000:.1f} ms"
    print(text)
    return text
