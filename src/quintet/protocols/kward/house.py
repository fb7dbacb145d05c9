"""What the protocol is given to translate to: the engine's parts and the words of whoever composed them.

Each family of methods is a module with its rows; it reaches everything through `call.state.house`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import UNSET, UnsetType

from quintet.domain.errors import QuintetError
from quintet.domain.model import ModelInfo
from quintet.domain.ports import Tool
from quintet.domain.principal import local
from quintet.domain.turn import Mode
from quintet.engine.feed import Feed
from quintet.engine.interactions import Interactions
from quintet.engine.projects import Projects
from quintet.engine.spelling import Respelled
from quintet.engine.starter import Starter
from quintet.engine.threads import Threads
from quintet.engine.turns import Turns
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.kward_tools import ROWS
from quintet.protocols.kward.session_files import SessionFiles

ME = local("kward")


class MakeStarter(Protocol):
    def __call__(self, tools: Sequence[Tool], *, model: str) -> Starter: ...


class Disk(Protocol):
    """What a client is told of directories and files, and may have written. Never called on the event loop's time."""

    async def directory(self, path: str) -> str | None:
        """Where it really is; None where there is no such directory."""

    async def writable(self, directory: str) -> bool: ...
    async def modified_ms(self, path: str) -> int | None:
        """None where there is no such file."""


class Choice(Protocol):
    """Which model the client's turns use, and how hard it thinks."""

    def reference(self) -> str:
        """`provider/model`, empty for the usual one."""

    def current(self) -> wire.Model: ...
    def effort(self) -> str:
        """Of its thoughts, in a word; empty where nothing was said."""

    def set_model(self, provider: str, model: str) -> None:
        """BadArgument for what cannot be."""

    def set_effort(self, effort: str) -> None: ...
    def reload(self) -> None:
        """Read anew what was configured."""


class House:
    def __init__(
        self,
        feed: Feed,
        turns: Turns,
        threads: Threads,
        interactions: Interactions,
        projects: Projects,
        *,
        files: SessionFiles,
        disk: Disk,
        choice: Choice,
        starter: MakeStarter,
        tools: Callable[[], Sequence[Tool]],
        cwd: str,
        config_dir: str,
        mode: Mode = Mode.ALLOW,
        info: Callable[[str], ModelInfo | None] = lambda reference: None,
        environment: Mapping[str, str] | None = None,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.feed, self.turns, self.threads, self.interactions = feed, turns, threads, interactions
        self.projects = projects
        self.files = files
        self.disk = disk
        self.choice = choice
        self._starter = starter
        self._tools = tools
        self.cwd = cwd  # where the process was started
        self.config_dir = config_dir
        self.mode = mode  # how much a turn begun here may do at most
        self.info = info
        self.environment = environment or {}
        self.log = log

    def tools(self) -> list[Tool]:
        """Ours, under Kward's names where it has one."""
        rows = {row.own: row for row in ROWS}
        found = self._tools()
        return [Respelled(tool, rows[tool.spec.name]) if tool.spec.name in rows else tool for tool in found]

    def starter(self) -> Starter:
        return self._starter(self.tools(), model=self.choice.reference())


def model_of(reference: str, info: ModelInfo | None, *, current: bool = False, effort: str = "") -> wire.Model:
    """A model of config.toml under its configured names."""
    provider, _, model = reference.partition("/")
    window: int | UnsetType = info.context_window if info and info.context_window else UNSET
    return wire.Model(
        provider,
        model,
        model,
        model,
        bool(info and info.reasoning),
        current,
        effort or UNSET,
        window,
    )


def safely(look: Callable[[], ModelInfo]) -> ModelInfo | None:
    """What is known of a model; None for one that is not configured any more."""
    try:
        return look()
    except QuintetError:
        return None
