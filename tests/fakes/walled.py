"""A second process for tests that try to write where nobody may: to it all of the machine is read-only but one place.

So a guard that is broken fails its tests and overwrites nothing, whoever runs them. Calls go in as JSON lines, and what
failed comes back in words. `python -m tests.fakes.walled PLACE USER` is that process.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
WITHIN_S = 60
NOBODY = 65_534
# The devices are new ones: through the old ones a disk could be written. No right passes by the modes of files.
_WALL = ("--ro-bind", "/", "/", "--dev", "/dev", "--cap-drop", "ALL", "--die-with-parent")


class Walled:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Run a function of a test module over there, with the writable directory before its arguments. Fails as it
        does. It must be sent by its name, and so must what it is given: numbers and texts."""
        given, answers = self._process.stdin, self._process.stdout
        assert given
        assert answers
        given.write(json.dumps([function.__module__, function.__qualname__, arguments]) + "\n")
        given.flush()
        ready, _, _ = select.select([answers], [], [], WITHIN_S)
        assert ready, "the walled process does not answer"
        line = answers.readline()
        assert line, "the walled process has ended"
        if failed := json.loads(line):
            pytest.fail(f"in the walled process:\n{failed}", pytrace=False)


@contextmanager
def walled() -> Iterator[Walled]:
    """Skips where this process could write everything and no wall can be had."""
    place = os.path.realpath(tempfile.mkdtemp(prefix="quintet-walled-"))
    try:
        words, user = _wall(place), os.geteuid()
        if not words and user == 0:
            user = NOBODY
            os.chown(place, user, user)
            if not _readable_for(user):
                pytest.skip("no bubblewrap, and another user cannot read these tests: as root they could do harm")
        argv = [*words, sys.executable, "-m", "tests.fakes.walled", place, str(user)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            try:
                yield Walled(process)
            finally:
                process.kill()
    finally:
        shutil.rmtree(place, ignore_errors=True)


@functools.cache
def _tried(program: str) -> bool:
    return subprocess.run([program, *_WALL, "true"], capture_output=True, timeout=WITHIN_S, check=False).returncode == 0


def _wall(place: str) -> list[str]:
    program = shutil.which("bwrap")
    return [program, *_WALL, "--bind", place, place] if program and _tried(program) else []


def _readable_for(user: int) -> bool:
    words = [sys.executable, "-c", "import pytest, quintet, tests"]
    try:
        done = subprocess.run(words, cwd=ROOT, user=user, capture_output=True, timeout=WITHIN_S, check=False)
    except OSError:
        return False
    return done.returncode == 0


def _serve(place: Path, user: int) -> None:
    if os.geteuid() != user:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the code under test prints is no answer
    for line in sys.stdin:
        answers.write(json.dumps(_failed(place, *json.loads(line))) + "\n")
        answers.flush()


def _failed(place: Path, module: str, name: str, arguments: list[Any]) -> str:
    try:
        done = getattr(importlib.import_module(module), name)(place, *arguments)
        if inspect.isawaitable(done):
            asyncio.run(_awaited(done))
    except BaseException:  # also what pytest's own words raise
        return traceback.format_exc()
    return ""


async def _awaited(done: Any) -> None:
    await done


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]))
