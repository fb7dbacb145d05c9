"""What the protocol is given to translate to: the engine's parts and the words of whoever composed them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from quintet.domain.errors import NotFound
from quintet.domain.hook import HookSubscription
from quintet.domain.ports import Tool
from quintet.domain.principal import local
from quintet.domain.thread import Thread
from quintet.domain.tool import ToolSpec
from quintet.engine.commands import Commands, Deed
from quintet.engine.feed import Feed
from quintet.engine.leave import Leave
from quintet.engine.parts import Parts
from quintet.protocols.wire.inputs import Fetch, no_fetch

if TYPE_CHECKING:  # the rest is imported when it is needed: the first reply waits for none of it
    from quintet.engine.deeds import Deeds
    from quintet.engine.interactions import Interactions
    from quintet.engine.starter import Starter
    from quintet.engine.threads import Threads
    from quintet.engine.turns import Turns
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
        parts: Callable[[], Parts],
        *,
        open_thread: Callable[[], Awaitable[Thread]],
        starter: MakeStarter,
        tools: Callable[[], Sequence[Tool]],
        version: str,
        configured_hooks: Mapping[str, int],
        window: Callable[[str], int | None] = lambda model: None,
        names: Names | None = None,
        commands: Commands | None = None,
        deeds: Callable[[], Deeds] | None = None,
        leave_to_act: Leave | None = None,
        repeats: int = 0,
        session: str = "",
        unsupported: str = "",
        by_login: bool = False,
        fetch: Fetch = no_fetch,
        log: Callable[[str], None] = lambda line: None,
        trace: Callable[[str], None] = lambda line: None,
        use: Callable[[], Awaitable[None]] | None = None,
        leave: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.feed = feed
        self._parts = parts
        self._open_thread = open_thread
        self.starter = starter
        self.tools = tools
        self.version = version
        self.configured_hooks = configured_hooks
        self.window = window
        self._names = names
        self.repeats = repeats  # of each prompt, beyond the first time; below 0 without a number
        self.session = session  # what the client calls the thread
        self.commands = commands or Commands()
        self._deeds = deeds  # what commands do on the disk; None where there is none
        self.leave_to_act = leave_to_act or Leave()
        self.unsupported = unsupported  # why the chosen model cannot be used, where its kind is not known here
        self.by_login = by_login  # a key that its server does not accept is a login that has expired
        self.fetch = fetch  # what a client names by its address
        self.log = log
        self.trace = trace  # what comes and how it ends, where somebody looks for a mistake
        self._use = use
        self.leave = leave  # what is done when its client has left
        self._thread: Thread | None = None
        self._opening = asyncio.Lock()  # calls that need it at the same moment open one

    @property
    def turns(self) -> Turns:
        return self._parts().turns

    @property
    def threads(self) -> Threads:
        return self._parts().threads

    @property
    def interactions(self) -> Interactions:
        return self._parts().interactions

    @cached_property
    def names(self) -> Names:
        from quintet.protocols.wire.names import Names

        return self._names or Names()

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

    @property
    def deeds(self) -> Deeds | None:
        return self._deeds() if self._deeds is not None else None

    async def toggle(self, deed: Deed) -> str:
        """More leave for the turns of this connection, or less; the files show it, and give nobody any."""
        said = self.leave_to_act.toggle_yolo() if deed is Deed.YOLO else self.leave_to_act.toggle_afk()
        self.log(f"wire: the client has typed /{deed.value}: {said}")
        await self.feed.mirror((await self.thread()).id)
        return said

    async def use(self) -> None:
        """Once: a first turn begins."""
        use, self._use = self._use, None
        if use is not None:
            await use()

    @property
    def begun(self) -> bool:
        return self._thread is not None
