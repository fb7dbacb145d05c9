"""Sandbox: looks once what works here, then wraps commands in it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec

from quintet.workspace.environment import find_program
from quintet.workspace.sandbox.bubblewrap import arguments
from quintet.workspace.sandbox.profile import Profile, State

PROBE_WITHIN_S = 5.0


class Confined(msgspec.Struct, frozen=True):
    """A command as it is to be spawned."""

    argv: Sequence[str]
    environment: Mapping[str, str]


class Sandbox:
    """`home` is Quintet's own directory and is never seen inside; `enabled` is the person's choice in config.toml."""

    def __init__(self, environment: Mapping[str, str], *, home: str = "", enabled: bool = True) -> None:
        self._environment = environment
        self._home = home
        self._enabled = enabled
        self._state: State | None = None

    async def state(self) -> State:
        """Probed by running something, once per process."""
        if self._state is None:
            self._state = await asyncio.to_thread(self._probe)
        return self._state

    @asynccontextmanager
    async def confined(
        self, argv: Sequence[str], cwd: str, environment: Mapping[str, str], profile: Profile
    ) -> AsyncIterator[Confined]:
        """The command inside the wall, ready to spawn; what had to be set up for it is taken down on the way out."""
        program = find_program("bwrap", self._environment)
        assert program is not None, "only asked for where the state says that it works"
        yield Confined((program, *arguments(profile, cwd, self._home), "--", *argv), environment)

    def _probe(self) -> State:
        if not self._enabled:
            return State(False, why="It is switched off in config.toml.", fix='Remove `mode = "off"` from [sandbox].')
        program = find_program("bwrap", self._environment)
        if program is None:
            return State(False, why="bubblewrap is not installed.", fix="apt-get install bubblewrap")
        tried = subprocess.run(
            [program, *arguments(Profile("/", writable=False), "/", ""), "--", "true"],
            capture_output=True,
            timeout=PROBE_WITHIN_S,
            check=False,
        )
        if tried.returncode:
            return State(False, why=tried.stderr.decode("utf-8", "replace").strip(), fix="See docs/howto/sandbox.md.")
        return State(True, "bubblewrap")
