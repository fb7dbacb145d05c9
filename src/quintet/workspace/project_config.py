"""`.quintet/config.toml` in a project's root: the few keys a project may say something with. Everything else in it is
ignored and named; what arrives with a checkout decides nothing about keys, addresses, programs or the sandbox. Its
hooks are only read here: whether one may run is asked elsewhere, each time it is another one.
"""

from __future__ import annotations

import os
import stat
from typing import Annotated, Any

import msgspec

from quintet.domain.errors import Invalid
from quintet.domain.hook import TIMEOUT_MOST_S, TIMEOUT_S, Hook, HookEvent
from quintet.domain.hook_matcher import Matcher
from quintet.domain.project import ProjectConfig
from quintet.domain.turn import Mode

FILE = os.path.join(".quintet", "config.toml")
BYTES_AT_MOST = 64 * 1024
INSTRUCTIONS_AT_MOST = 20_000  # characters
HOOKS_AT_MOST = 20
COMMAND_AT_MOST = 2_000  # characters of a hook's command, so that it can be shown whole
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


class _HookRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    event: HookEvent
    command: Annotated[str, msgspec.Meta(min_length=1, max_length=COMMAND_AT_MOST)]
    matcher: str = ""
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=TIMEOUT_MOST_S)] = TIMEOUT_S


class _Reading:
    def __init__(self, path: str) -> None:
        self._path = path
        self._ignored: list[str] = []
        self._problems: list[str] = []

    def config(self, document: dict[str, Any]) -> ProjectConfig:
        mode: Mode | None = None
        rules: dict[str, str] = {}
        instructions = ""
        hooks: tuple[Hook, ...] = ()
        for key, value in document.items():
            if key == "policy" and isinstance(value, dict):
                mode, rules = self._policy(value)
            elif key == "instructions" and isinstance(value, str) and len(value) <= INSTRUCTIONS_AT_MOST:
                instructions = value
            elif key == "hooks" and isinstance(value, list):
                hooks = self._hooks(value)
            elif key != "version" and not key.startswith("x-"):
                self._ignored.append(key)
        warnings = [f"{self._path}: {problem} {_ASKS}" for problem in self._problems]
        if self._ignored:
            names = ", ".join(name if " (" in name else f"`{name}`" for name in self._ignored)
            warnings.append(
                f"{self._path}: {names} ignored. A project may set a stricter [policy] mode, rules that ask or deny, "
                "instructions, and hooks that you are asked about; everything else belongs into your own config.toml."
            )
        mode = Mode.ASK if self._problems and mode is None else mode
        return ProjectConfig(self._path, mode, rules, hooks, instructions, tuple(warnings))

    def _hooks(self, rows: list[Any]) -> tuple[Hook, ...]:
        """Those that are right, whole; of the others it is said what they are not."""
        hooks: list[Hook] = []
        for n, row in enumerate(rows):
            name = f"hooks[{n}]"
            try:
                if n >= HOOKS_AT_MOST:
                    raise Invalid(f"there are more than {HOOKS_AT_MOST}.")
                given = msgspec.convert(row, _HookRow)
                source = f"{self._path} {name}"
                matcher = Matcher(given.matcher)
                hooks.append(Hook(given.event, given.command, matcher, source, given.timeout_s, of_project=True))
            except (msgspec.ValidationError, Invalid) as error:
                self._ignored.append(f"`{name}` ({str(error).rstrip('.')})")
        return tuple(hooks)

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
