"""A stage for the sandbox: a workspace, a home of Quintet, a user's directory with secrets, and something outside.

Not below /tmp, which commands see as their own: what is outside must be there to be reached.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from quintet.workspace.sandbox.profile import Profile
from quintet.workspace.sandbox.wall import Sandbox

ROOT = Path(__file__).parents[2]
LIMIT_S = 30
SECRET = "canary-6f1d9c"
needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
BARE = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]


class Stage:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = root / "workspace"
        self.home = root / "home"
        self.user = root / "user"
        self.outside = root / "outside"
        for place in (self.workspace, self.home / "run", self.user / ".ssh", self.user / ".config/gh", self.outside):
            place.mkdir(parents=True)
        for secret in (self.user / ".ssh/id_ed25519", self.user / ".netrc", self.user / ".config/gh/hosts.yml"):
            secret.write_text(SECRET)
        for name in ("server.json", "quintet.db", "credentials"):
            (self.home / name).write_text(SECRET)
        (self.outside / "canary").write_text("untouched")
        subprocess.run(["git", "init", "-q", str(self.workspace)], check=True)
        self.environment = {**os.environ, "HOME": str(self.user), "TMPDIR": tempfile.gettempdir()}
        self.sandbox = Sandbox(self.environment, home=str(self.home))

    def profile(self, *, writable: bool = True, network: str = "off", scratch: bool = False) -> Profile:
        place = self.sandbox.scratch("t") if scratch else ""
        return Profile(str(self.workspace), writable=writable, network=network, scratch=place)  # type: ignore[arg-type]

    async def run(
        self,
        script: str,
        profile: Profile | None = None,
        *,
        cwd: Path | None = None,
        variables: Mapping[str, str] | None = None,
        limits: Sequence[tuple[str, int]] = (),
        sandbox: Sandbox | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """A bash script inside the wall, to its end. Other tests' sockets come and go, so it may take more than one
        try to build it."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.user), "PY": BARE, **(variables or {})}
        where = str(cwd or self.workspace)
        argv = ("/bin/bash", "-c", script)
        wall = sandbox or self.sandbox
        for _ in range(5):
            async with wall.confined(argv, where, environment, profile or self.profile(), limits) as inside:
                done = await asyncio.to_thread(spawn, inside.argv, where, inside.environment)
            if not never_began(done):
                break
        return done


def spawn(argv: Sequence[str], cwd: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        cwd=cwd,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LIMIT_S,
        check=False,
        start_new_session=True,
    )


def never_began(done: subprocess.CompletedProcess[str]) -> bool:
    """A socket that was to be covered went away in between, and bubblewrap gave up before the command."""
    return done.returncode == 1 and done.stderr.startswith("bwrap: Can't ") and done.stderr.count("\n") == 1


@contextmanager
def staged() -> Iterator[Stage]:
    root = Path(tempfile.mkdtemp(prefix=".stage-", dir=_base()))
    try:
        yield Stage(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _base() -> Path:
    """Where commands see the same as we do: the clone itself, unless it lies where each command has its own."""
    private = ("/tmp", "/var/tmp", "/run", "/dev/shm")
    for place in (ROOT, Path("/srv"), Path("/opt"), Path("/var/lib")):
        if not str(place.resolve()).startswith(private) and os.access(place, os.W_OK):
            return place
    return ROOT


def never_reset() -> str:
    """The signals this process ignores and nobody can reset, as the kernel writes them: two that the C library keeps
    for itself and that whoever started the tests may have left ignored."""
    with open("/proc/self/status", encoding="ascii") as file:
        ours = next(int(line.split()[1], 16) for line in file if line.startswith("SigIgn"))
    return f"{ours & (1 << 31 | 1 << 32):016x}"
