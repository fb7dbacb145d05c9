"""`.quintet/config.toml` in a project's root: the few keys a project may say something with. Everything else in it is
ignored and named; what arrives with a checkout decides nothing about keys, addresses, programs or the sandbox.
"""

from __future__ import annotations

import os
import stat
from typing import Any

from quintet.domain.project import ProjectConfig
from quintet.domain.turn import Mode

FILE = os.path.join(".quintet", "config.toml")
BYTES_AT_MOST = 64 * 1024
INSTRUCTIONS_AT_MOST = 20_000  # characters
_ASKS = "Until it is corrected, turns here ask before they act."


def read_project_config(root: str) -> ProjectConfig:
    """What the file says, reduced to what it may say. A file that cannot be read might have tightened something."""
    path = os.path.join(root, FILE)
    try:
        data = _bytes(path)
    except OSError as error:
        return _unreadable(path, error.strerror or "it cannot be opened")
    if data is None:
        return ProjectConfig()
    if len(data) > BYTES_AT_MOST:
        return _unreadable(path, "it is longer than 64 KiB")
    import tomllib

    try:
        document = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return _unreadable(path, "it is not TOML")
    return _Reading(path).config(document)


def _bytes(path: str) -> bytes | None:
    if not os.path.lexists(path):
        return None
    if os.path.islink(os.path.dirname(path)):
        raise OSError(0, "its directory is a link")
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(0, "it is not a file")
        return file.read(BYTES_AT_MOST + 1)


def _unreadable(path: str, why: str) -> ProjectConfig:
    return ProjectConfig(path, Mode.ASK, warnings=(f"{path} cannot be read: {why}. {_ASKS}",))


class _Reading:
    def __init__(self, path: str) -> None:
        self._path = path
        self._ignored: list[str] = []
        self._problems: list[str] = []

    def config(self, document: dict[str, Any]) -> ProjectConfig:
        mode: Mode | None = None
        rules: dict[str, str] = {}
        instructions = ""
        for key, value in document.items():
            if key == "policy" and isinstance(value, dict):
                mode, rules = self._policy(value)
            elif key == "instructions" and isinstance(value, str) and len(value) <= INSTRUCTIONS_AT_MOST:
                instructions = value
            elif key != "version" and not key.startswith("x-"):
                self._ignored.append(key)
        warnings = [f"{self._path}: {problem} {_ASKS}" for problem in self._problems]
        if self._ignored:
            names = ", ".join(f"`{name}`" for name in self._ignored)
            warnings.append(
                f"{self._path}: {names} ignored. A project may set a stricter [policy] mode, rules that ask or deny, "
                "and instructions; everything else belongs into your own config.toml."
            )
        return ProjectConfig(
            self._path, Mode.ASK if self._problems and mode is None else mode, rules, instructions, tuple(warnings)
        )

    def _policy(self, table: dict[str, Any]) -> tuple[Mode | None, dict[str, str]]:
        mode: Mode | None = None
        rules: dict[str, str] = {}
        for key, value in table.items():
            if key == "mode" and value in list(Mode):
                mode = Mode(value)  # an upper bound, so a looser one than the person's does nothing
                if mode is Mode.ALLOW:
                    self._ignored.append("policy.mode")
            elif key == "mode":
                self._problems.append("`policy.mode` is none of read-only, ask and allow.")
            elif key == "rules" and isinstance(value, dict):
                for text, word in value.items():
                    if word in ("ask", "deny"):
                        rules[text] = word
                    else:
                        self._ignored.append(f'policy.rules."{text}"')
            else:
                self._ignored.append(f"policy.{key}")
        return mode, rules
