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
    def __init__(self, environment: Mapping[str, str], program: str | None = None) -> None:
        self._environment = environment
        self._program = (program or find_program("secret-tool", environment)) if _has_bus(environment) else None

    @property
    def usable(self) -> bool:
        """Whether there is something to ask. It may still be locked."""
        return self._program is not None

    def read(self, name: str) -> str | None:
        """What is kept under the name, "" when there is nothing, None when the store could not be asked: it is locked,
        gone, or the person did not answer."""
        code, said, complaint = self._ask(["lookup", *_NAMES, "home", name])
        if code == 0:
            return said
        return "" if code == 1 and not complaint else None  # with nothing to tell it says nothing

    def write(self, name: str, value: str) -> bool:
        """Whether it is kept now."""
        words = ["store", "--label", "Quintet: key of the stored credentials", *_NAMES, "home", name]
        return self._ask(words, value)[0] == 0 and self.read(name) == value

    def _ask(self, words: list[str], given: str = "") -> tuple[int, str, str]:
        if self._program is None:
            return -1, "", ""
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
            return -1, "", ""
        said, complaint = (stream.decode("utf-8", "replace").rstrip("\n") for stream in (done.stdout, done.stderr))
        return done.returncode, said, complaint


def _has_bus(environment: Mapping[str, str]) -> bool:
    """Without a session bus `secret-tool` would start one of its own, which nobody asked for."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    return bool(environment.get("DBUS_SESSION_BUS_ADDRESS")) or (
        bool(runtime) and os.path.exists(os.path.join(runtime, "bus"))
    )
