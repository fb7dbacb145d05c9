"""What the protocol is given to translate to: the engine's parts and the words of whoever composed them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from quintet.domain.errors import NotFound
from quintet.domain.hook import HookSubscription
from quintet.domain.ports import Tool
from quintet.domain.principal import local
from quintet.domain.thread import Thread
from quintet.domain.tool import ToolSpec
from quintet.engine.commands import Commands
from quintet.engine.feed import Feed
from quintet.engine.interactions import Interactions
from quintet.engine.starter import Starter
from quintet.engine.threads import Threads
from quintet.engine.turns import Turns
from quintet.protocols.wire.inputs import Fetch, no_fetch
from quintet.protocols.wire.names import Names

ME = local("wire")


class MakeStarter(Protocol):
    def __call__(
        self,
        tools: Sequence[Tool],
        *,
        external_tools: Sequence[ToolSpec],
        hooks: Sequence[HookSubscription],
        withheld: Mapping[str, str],
    ) -> Starter: ...


class House:
    def __init__(
        self,
        feed: Feed,
        turns: Turns,
        threads: Threads,
        interactions: Interactions,
        *,
        open_thread: Callable[[], Awaitable[Thread]],
        starter: MakeStarter,
        tools: Callable[[], Sequence[Tool]],
        version: str,
        configured_hooks: Mapping[str, int],
        window: Callable[[str], int | None] = lambda model: None,
        names: Names | None = None,
        commands: Commands | None = None,
        session: str = "",
        unsupported: str = "",
        fetch: Fetch = no_fetch,
        log: Callable[[str], None] = lambda line: None,
        use: Callable[[], Awaitable[None]] | None = None,
        leave: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.feed, self.turns, self.threads, self.interactions = feed, turns, threads, interactions
        self._open_thread = open_thread
        self.starter = starter
        self.tools = tools
        self.version = version
        self.configured_hooks = configured_hooks
        self.window = window
        self.names = names or Names()
        self.session = session  # what the client calls the thread
        self.commands = commands or Commands()
        self.unsupported = unsupported  # why the chosen model cannot be used, where its kind is not known here
        self.fetch = fetch  # what a client names by its address
        self.log = log
        self._use = use
        self.leave = leave  # what is done when its client has left
        self._thread: Thread | None = None
        self._opening = asyncio.Lock()  # calls that need it at the same moment open one

    async def thread(self) -> Thread:
        """The one this process serves, found or begun when it is first needed: a client that only looks leaves none."""
        async with self._opening:
            if self._thread is None or await self._gone(self._thread):
                self._thread = await self._open_thread()
            return self._thread

    async def _gone(self, thread: Thread) -> bool:
        """Somebody has deleted it: its name is free for a new one."""
        try:
            await self.feed.journal.thread(thread.id)
        except NotFound:
            return True
        return False

    async def use(self) -> None:
        """Once: a first turn begins."""
        use, self._use = self._use, None
        if use is not None:
            await use()

    @property
    def begun(self) -> bool:
        return self._thread is not None
