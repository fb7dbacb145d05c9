"""An engine as `app.py` would assemble it, on a journal in memory or in a file, as one of several processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quintet.domain.event import Event, TurnFinished
from quintet.domain.hook import Hook
from quintet.domain.item import Body, Item, TextPart
from quintet.domain.ports import Clock, FileHistory, Hooks, Journal, Provider, Results, SurroundingsReader, Tool
from quintet.domain.principal import Principal, local
from quintet.domain.surroundings import Surroundings
from quintet.domain.thread import Thread, ThreadSettings
from quintet.domain.turn import ClientKey, Mode, Turn, WhenBusy
from quintet.engine.agents import Agents
from quintet.engine.checkpoints import Checkpoints
from quintet.engine.diffs import Diffs
from quintet.engine.feed import Feed
from quintet.engine.hooks import AllHooks
from quintet.engine.interactions import Interactions
from quintet.engine.policy import Policy
from quintet.engine.profiles import Profiles
from quintet.engine.project_policy import ProjectPolicy
from quintet.engine.projects import Handles, Projects
from quintet.engine.recalling import Recalling
from quintet.engine.rules import parse_rules
from quintet.engine.starter import Starter
from quintet.engine.stories import Stories
from quintet.engine.threads import Threads
from quintet.engine.turns import Started, Turns
from quintet.engine.undo import Undo
from quintet.journal import open_journal
from quintet.journal.clock import SystemClock
from quintet.journal.memory import MemoryStore, memory_journal
from quintet.minds import Minds
from quintet.providers.scripted import ScriptedProvider
from quintet.workspace.commands import ShellCommandParser
from quintet.workspace.diffs import unified_diff
from tests.fakes.history import KeptFiles
from tests.fakes.hooks import NoCommands
from tests.fakes.providers import OneModel
from tests.fakes.waiting import LIMIT_S, soon

ME = local("test", "me")


class Values:
    """Secrets a test knows."""

    def __init__(self, values: Sequence[str]) -> None:
        self._values = tuple(values)

    def known_values(self) -> Sequence[str]:
        return self._values


def parts(text: str) -> tuple[TextPart, ...]:
    return (TextPart(text),)


class Nowhere:
    """Surroundings without anything in them."""

    async def look(self, cwd: str) -> Surroundings:
        return Surroundings()


class Process:
    """One process: its own journal, feed and turns."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        *,
        secrets: Sequence[str] = (),
        rules: Mapping[str, str] | None = None,
        history: FileHistory | None = None,
        agents: Agents | None = None,
        results: Results | None = None,
        surroundings: SurroundingsReader | None = None,
        hooks: Sequence[Hook] = (),
        hook_commands: Hooks | None = None,
        project: Callable[[str], ProjectPolicy] = lambda directory: ProjectPolicy(),
        minds: Minds | None = None,
    ) -> None:
        self.journal = journal
        self.clock = clock
        self.feed = Feed(journal, Values(secrets), clock)
        self.interactions = Interactions(self.feed)
        self.history = history or KeptFiles()
        stories = Stories(self.feed, self.history)
        self.diffs = Diffs(self.feed, self.history, stories, unified_diff)
        self.checkpoints = Checkpoints(self.feed, self.history, self.diffs, lambda directory: directory)
        self.undo = Undo(self.feed, self.history, stories)
        self.told: list[str] = []  # lines of the log
        self.hooks = AllHooks(self.feed, self.interactions, hook_commands or NoCommands(), hooks, self.told.append)
        policy = Policy(parse_rules(rules or {}), ShellCommandParser())
        self.turns = Turns(
            self.feed,
            self.interactions,
            policy,
            self.checkpoints,
            surroundings or Nowhere(),
            agents=agents,
            results=results,
            hooks=self.hooks,
            project_policy=project,
            recalling=Recalling(self.feed, minds.of, lambda cwd: (cwd,), self.told.append) if minds else None,
        )
        self.defects: list[BaseException] = []
        self.turns.on_defect = self.defects.append
        self.projects = Projects(journal, lambda directory: directory)
        self.handles = Handles(journal)
        self.profiles = Profiles("/home/of/quintet")
        self.threads = Threads(self.feed, self.turns, self.undo, self.projects, self.handles, self.profiles)
        self._closed = False

    async def thread(self, cwd: str = "/project/here", **settings: Any) -> str:
        return (await self.threads.create(ThreadSettings(cwd, **settings))).id

    def starter(
        self,
        provider: Provider | str,
        tools: Sequence[Tool] = (),
        *,
        mode: Mode = Mode.ALLOW,
        principal: Principal = ME,
        known: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Starter:
        """A string is a script; `known` is what is known of the model."""
        made = ScriptedProvider(provider) if isinstance(provider, str) else provider
        return Starter(principal, OneModel(made, **(known or {})), tools, mode=mode, **more)

    async def start(
        self,
        thread: str,
        provider: Provider | str = "text: hello",
        tools: Sequence[Tool] = (),
        *,
        say: str = "please",
        when_busy: WhenBusy = WhenBusy.QUEUE,
        key: ClientKey | None = None,
        **starter: Any,
    ) -> Started:
        given = self.starter(provider, tools, **starter)
        return await soon(self.turns.start(thread, parts(say), given, when_busy=when_busy, key=key))

    async def run(self, thread: str, provider: Provider | str = "text: hello", *more: Any, **options: Any) -> Turn:
        """Start a turn and wait for its end."""
        started = await self.start(thread, provider, *more, **options)
        return await self.ended(started.turn.id)

    async def ended(self, turn: str) -> Turn:
        return await self.turns.wait(turn, LIMIT_S)

    # --- looking ---------------------------------------------------------------------------------------------------
    async def events(self, thread: str = "", after: int = 0) -> list[Event]:
        found: list[Event] = []
        while page := await self.journal.events(found[-1].seq if found else after, root=thread):
            found += page
        return found

    async def payloads(self, thread: str, kind: type) -> list[Any]:
        return [e.payload for e in await self.events(thread) if isinstance(e.payload, kind)]

    async def ends(self, turn: str, thread: str) -> list[TurnFinished]:
        return [e.payload for e in await self.events(thread) if e.turn == turn and isinstance(e.payload, TurnFinished)]

    async def bodies(self, thread: str, kind: type | None = None) -> list[Any]:
        items = await self.threads.items(thread)
        return [i.body for i in items if kind is None or isinstance(i.body, kind)]

    async def asked(self, thread: str = "") -> str:
        """The id of the first open interaction, as soon as there is one."""

        async def first() -> str | None:
            pending = await self.interactions.pending(thread)
            return pending[0].id if pending else None

        return await self.feed.until(lambda e: e.kind == "interaction.requested", first, LIMIT_S)

    async def seen(self, match: Callable[[Event], bool], thread: str) -> Event:
        """The first matching event of the thread, now or soon."""
        async with asyncio.timeout(LIMIT_S):
            with self.feed.follow(0, root=thread) as following:
                async for entry in following:
                    if isinstance(entry, Event) and match(entry):
                        return entry
        raise AssertionError("the feed was closed")

    async def put(self, thread: str, *bodies: Body) -> Thread:
        """A thread of its own with these items, as an import would make it."""
        items = [Item(f"itm_{n}", thread, "", n, 0, body) for n, body in enumerate(bodies, 1)]
        return await self.threads.create(ThreadSettings("/project/here"), items=items)

    # --- ending ----------------------------------------------------------------------------------------------------
    async def close(self) -> None:
        """As a process ends that was told to."""
        if not self._closed:
            self._closed = True
            await soon(self.turns.shutdown())
            await soon(self.hooks.close())
            await soon(self.feed.close())
            await soon(self.journal.close())

    async def die(self) -> None:
        """As kill -9 does: nothing is written any more, the owner's lock is free."""
        self._closed = True
        await soon(self.feed.tailing.close())
        await soon(self.journal.close())
        for task in list(self.turns._runs.tasks):
            task.cancel()
        await soon(self.feed.close())


class House:
    """One store and the processes on it."""

    def __init__(self, store: str, home: Path) -> None:
        self.store = store
        self.home = home
        self._memory = MemoryStore()
        self._processes: list[Process] = []

    async def process(self, *, clock: Clock | None = None, **options: Any) -> Process:
        journal = await self.journal(clock)
        process = Process(journal, clock or SystemClock(), **options)
        self._processes.append(process)
        return process

    async def journal(self, clock: Clock | None = None) -> Any:
        if self.store == "memory":
            return memory_journal(self._memory, clock=clock)
        return await open_journal(self.home, protocol="test", clock=clock)

    async def close(self) -> None:
        for process in self._processes:
            await process.close()
