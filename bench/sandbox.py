"""What the wall costs: the same small command spawned plainly and confined, one after the other."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from pathlib import Path

from bench.measure import Row, fresh_home, median, percentile
from quintet.workspace.sandbox.profile import Profile
from quintet.workspace.sandbox.wall import Sandbox

ROUNDS = 100
COMMAND = ("/bin/sh", "-c", ":")


async def confined_s(sandbox: Sandbox, profile: Profile) -> float:
    """With all that comes before and after: what is hidden is looked for, names are covered and uncovered."""
    began = time.perf_counter()
    async with sandbox.confined(COMMAND, profile.workspace, {"PATH": os.defpath}, profile) as inside:
        _spawn(inside.argv, inside.environment)
    return time.perf_counter() - began


def plain_s() -> float:
    began = time.perf_counter()
    _spawn(COMMAND, {"PATH": os.defpath})
    return time.perf_counter() - began


def _spawn(argv: object, environment: object) -> None:
    subprocess.run(argv, env=environment, check=True)  # type: ignore[call-overload]


async def _measured(home: Path) -> tuple[list[float], list[float]]:
    workspace = home / "workspace"
    workspace.mkdir()
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    sandbox = Sandbox(os.environ, home=str(home / "home"))
    (home / "home").mkdir()
    assert (await sandbox.state()).works
    profile = Profile(str(workspace), scratch=sandbox.scratch("bench"))
    plain, confined = [], []
    for _ in range(ROUNDS):  # alternating, so that a slow moment of the machine hits both
        plain.append(plain_s())
        confined.append(await confined_s(sandbox, profile))
    await sandbox.close()
    return plain, confined


def run() -> list[Row]:
    if shutil.which("bwrap") is None:
        return []
    with fresh_home() as home:
        plain, confined = asyncio.run(_measured(home))
    base = median(plain) * 1000
    added = [(one - two) * 1000 for one, two in zip(confined, plain, strict=True)]
    beside = f"a plain spawn {base:.1f} ms; median added {median(added):.0f} ms"
    return [Row("time the sandbox adds to a command, 95th percentile", percentile(added, 0.95), "ms", 60, beside)]
