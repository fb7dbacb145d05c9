"""What the protocol is given to translate to: the engine's parts and the words of whoever composed them.

Each family of methods is a module with its rows; it reaches everything through `call.state.house`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from quintet.domain.model import ModelInfo
from quintet.domain.ports import Tool
from quintet.domain.principal import local
from quintet.domain.thread import Thread
from quintet.domain.turn import Mode
from quintet.engine.feed import Feed
from quintet.engine.parts import Parts

if TYPE_CHECKING:  # the rest is imported when it is needed: the first reply waits for none of it
    from quintet.engine.interactions import Interactions
    from quintet.engine.projects import Projects
    from quintet.engine.starter import Starter
    from quintet.engine.threads import Threads
    from quintet.engine.turns import Turns
    from quintet.protocols.kward import models as wire
    from quintet.protocols.kward.keeping import Keeping
    from quintet.protocols.kward.session_files import SessionFiles

ME = local("kward")


Told = Callable[[], Awaitable[str]]  # what the model of a turn is told beside what everybody tells it


class MakeStarter(Protocol):
    def __call__(self, tools: Sequence[Tool], *, model: str, told: Told | None = None) -> Starter: ...


class FileSeen(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def modified_ms(self) -> int: ...


class Disk(Protocol):
    """What a client is told of directories and files, and may have written. Never called on the event loop's time."""

    async def directory(self, path: str) -> str | None:
        """Where it really is; None where there is no such directory."""

    async def writable(self, directory: str) -> bool: ...
    async def modified_ms(self, path: str) -> int | None:
        """None where there is no such file."""

    async def files(self, directory: str) -> Sequence[FileSeen]:
        """The regular ones in it; nothing where there is no such directory."""

    async def text(self, path: str, most: int) -> str | None:
        """The beginning of a regular file of the person's own; None for anything else."""


class PluginSaid(Protocol):
    @property
    def printed(self) -> str: ...
    @property
    def returned(self) -> Any: ...


class CallPlugin(Protocol):
    async def __call__(
        self, path: str, source: str, function: str, arguments: list[Any], *, cwd: str, whose: str
    ) -> PluginSaid:
        """In a child of its own, confined."""


class ReadFiles(Protocol):
    """Which files a thread has read, so that it may change them."""

    def copy(self, source: str, target: str) -> None: ...
    def forget(self, thread: str) -> None: ...
    async def recall(self, thread: str, used: Sequence[tuple[str, int]]) -> None:
        """(absolute path, when it was last read or written)."""


class Choice(Protocol):
    """Which model the client's turns use, and how hard it thinks."""

    def reference(self) -> str:
        """`provider/model`, empty for the usual one."""

    def current(self) -> wire.Model: ...
    def effort(self) -> str:
        """Of its thoughts, in a word; empty where nothing was said."""

    async def set_model(self, provider: str, model: str) -> None:
        """From the next turn on, also of later processes. No provider: the same one. BadArgument for what cannot be."""

    async def set_effort(self, effort: str) -> None: ...
    async def reload(self) -> None:
        """Read anew what was configured."""


class SkillSeen(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def directory(self) -> str: ...
    @property
    def of_project(self) -> bool: ...


class Export(Protocol):
    async def __call__(self, path: str, pieces: Iterable[bytes], *, cwd: str, root: str) -> str:
        """Write this file below the root, whole or not at all; where it is. Invalid for a path that is not theirs."""


class House:
    def __init__(
        self,
        feed: Feed,
        parts: Callable[[], Parts],
        *,
        files: Callable[[], SessionFiles],
        disk: Disk,
        choice: Choice,
        keeping: Keeping,
        seen: Callable[[], ReadFiles],
        export: Export,
        skills: Callable[[str], Sequence[SkillSeen]],
        call_plugin: CallPlugin,
        plugins_dir: str,
        starter: MakeStarter,
        tools: Callable[[], Sequence[Tool]],
        cwd: str,
        config_dir: str,
        mode: Mode = Mode.ALLOW,
        compacts: Callable[[], bool] = lambda: True,
        info: Callable[[str], ModelInfo | None] = lambda reference: None,
        environment: Mapping[str, str] | None = None,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.feed = feed
        self._parts = parts
        self._files = files
        self.disk = disk
        self.choice = choice
        self.keeping = keeping
        self._seen = seen
        self.export = export
        self.skills = skills  # for whoever works in this directory
        self.call_plugin = call_plugin
        self.plugins_dir = plugins_dir
        self._starter = starter
        self._tools = tools
        self.cwd = cwd  # where the process was started
        self.config_dir = config_dir
        self.mode = mode  # how much a turn begun here may do at most
        self.compacts = compacts  # long conversations are made shorter by themselves
        self.info = info
        self.environment = environment or {}
        self.log = log

    @property
    def turns(self) -> Turns:
        return self._parts().turns

    @property
    def threads(self) -> Threads:
        return self._parts().threads

    @property
    def interactions(self) -> Interactions:
        return self._parts().interactions

    @property
    def projects(self) -> Projects:
        return self._parts().projects

    @property
    def seen(self) -> ReadFiles:
        return self._seen()

    @cached_property
    def files(self) -> SessionFiles:
        return self._files()

    async def recall(self, thread: Thread) -> None:
        """A session that is opened again may change what it had read."""
        from quintet.protocols.kward.used_files import used_files

        await self.seen.recall(thread.id, used_files(thread, await self.threads.items(thread.id)))

    def tools(self) -> list[Tool]:
        """Ours, under Kward's names where it has one."""
        from quintet.engine.spelling import Respelled
        from quintet.protocols.kward.kward_tools import ROWS

        rows = {row.own: row for row in ROWS}
        found = self._tools()
        return [Respelled(tool, rows[tool.spec.name]) if tool.spec.name in rows else tool for tool in found]

    def starter(self, told: Told | None = None) -> Starter:
        """For a turn, with what is configured now. `told` is asked when the turn runs, after a login that is about to
        end was renewed: whoever starts the turn waits for neither."""

        async def before() -> str:
            await self.keeping.accounts.renew()
            return await told() if told else ""

        return self._starter(self.tools(), model=self.choice.reference(), told=before)
