"""The operating system's key store, where there is one: the Secret Service, asked through `secret-tool`.

It keeps one random key, by which the credential files are encrypted; the credentials themselves never go there. Values
go through pipes, never through arguments, which every process can read.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from quintet.workspace.environment import find_program

WITHIN_S = 10.0  # a locked store may put a question to the person, and wait for the answer
_NAMES = ("service", "quintet", "purpose", "credentials")


class KeyStore:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._program = find_program("secret-tool", environment) if _has_bus(environment) else None

    @property
    def usable(self) -> bool:
        """Whether there is something to ask. It may still be locked."""
        return self._program is not None

    def read(self, name: str) -> str:
        """What is kept under the name; nothing when there is none, or when the store stays locked."""
        return self._ask(["lookup", *_NAMES, "home", name]) or ""

    def write(self, name: str, value: str) -> bool:
        """Whether it is kept now."""
        words = ["store", "--label", "Quintet: key of the stored credentials", *_NAMES, "home", name]
        return self._ask(words, value) is not None and self.read(name) == value

    def _ask(self, words: list[str], given: str = "") -> str | None:
        if self._program is None:
            return None
        try:
            done = subprocess.run(
                [self._program, *words],
                input=given.encode(),
                capture_output=True,
                env=dict(self._environment),
                timeout=WITHIN_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.decode("utf-8", "replace").rstrip("\n") if done.returncode == 0 else None


def _has_bus(environment: Mapping[str, str]) -> bool:
    """Without a session bus `secret-tool` would start one of its own, which nobody asked for."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    return bool(environment.get("DBUS_SESSION_BUS_ADDRESS")) or (
        bool(runtime) and os.path.exists(os.path.join(runtime, "bus"))
    )
