"""Checkpoints: what a shell call waits for before it starts, in a git tree of 50,000 files, few of them changed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path

from bench.measure import Row, fresh_home, median, percentile
from quintet.workspace.history import WorkspaceHistory

FILES, FOLDERS = 50_000, 500
ROUNDS = 40
BAR_MS = 150


class _Clock:
    def now_ms(self) -> int:
        return int(time.time() * 1000)

    def monotonic_s(self) -> float:
        return time.monotonic()


def tree(place: Path) -> None:
    for number in range(FOLDERS):
        folder = place / f"part{number % 20}" / f"folder{number}"
        folder.mkdir(parents=True)
        for file in range(FILES // FOLDERS):
            (folder / f"file{file}.txt").write_text(f"line {number} {file}\n" * 5)
    _git(place, "init", "-q", ".")
    _git(place, "add", "-A")
    _git(place, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "all")
    for number in range(3):
        (place / "part1/folder1" / f"file{number}.txt").write_text("dirty\n")
        (place / "part2" / f"new{number}.txt").write_text("new\n")


def _git(place: Path, *words: str) -> None:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], cwd=place, env=environment, check=True, stdout=subprocess.DEVNULL)


async def rounds(home: Path, place: Path, *, forgetful: bool = False) -> tuple[list[float], list[float], float]:
    """`forgetful`: each round begins as if Quintet had just been started."""
    history = WorkspaceHistory(str(home), os.environ, _Clock())
    before, after, bare = [], [], []
    for number in range(ROUNDS):
        if forgetful:
            history = WorkspaceHistory(str(home), os.environ, _Clock())
        began = time.perf_counter()
        secured = await history.secure(str(place))
        before.append((time.perf_counter() - began) * 1000)
        assert (secured.files, secured.partial) == (6, ()), secured
        (place / "part3/folder3/file3.txt").write_text(f"by the call {number}\n")
        began = time.perf_counter()
        compared = await history.compare(secured)
        after.append((time.perf_counter() - began) * 1000)
        assert [change.path for change in compared.changes] == ["part3/folder3/file3.txt"], compared
        await history.put(str(place), "part3/folder3/file3.txt", compared.changes[0].before)
        began = time.perf_counter()
        subprocess.run(["git", "status", "--porcelain"], cwd=place, check=True, stdout=subprocess.DEVNULL)
        bare.append((time.perf_counter() - began) * 1000)
    return before, after, median(bare)


def run() -> list[Row]:
    with fresh_home() as home:
        place = home / "tree"
        (home / "home").mkdir()
        tree(place)
        before, after, status = asyncio.run(rounds(home / "home", place))
        first, _, _ = asyncio.run(rounds(home / "home", place, forgetful=True))
    beside = f"{FILES:,} files; git status {status:.0f} ms"
    return [
        Row("securing before a shell call, p50", median(before), "ms", BAR_MS, beside),
        Row("securing before a shell call, p95", percentile(before, 0.95), "ms", BAR_MS, beside),
        Row("securing with nothing remembered, p50", median(first), "ms", BAR_MS, beside),
        Row("comparing after a shell call that changed a file, p50", median(after), "ms", 2 * BAR_MS, beside),
    ]
