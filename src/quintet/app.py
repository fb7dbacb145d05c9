"""Composition root: the only file that knows everyone. Opens a home and wires journal, engine, tools and models."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from quintet.config import Config, home_directory, load_config, make_home
from quintet.domain.ports import Journal
from quintet.domain.principal import Principal
from quintet.domain.turn import Mode, strictest
from quintet.engine.feed import Feed
from quintet.engine.interactions import Interactions, OnAsk
from quintet.engine.policy import Policy, parse_rules
from quintet.engine.projects import Handles, Projects
from quintet.engine.starter import DEFAULT_MAX_STEPS, Starter
from quintet.engine.threads import Threads
from quintet.engine.turns import Turns
from quintet.journal.opening import open_journal
from quintet.providers.table import ModelTable
from quintet.tools.builtin import builtin_tools
from quintet.workspace.commands import PlainCommandParser
from quintet.workspace.log import Log
from quintet.workspace.project_root import project_root
from quintet.workspace.secrets import KnownSecrets

PROTOCOLS = {
    "wire": "Kimi Wire",
    "kward": "Kward RPC",
    "knp": "Popcorn KNP",
    "opencode": "OpenCode adapter",
    "kaiak": "Kaiak",
    "cursorclaw": "CursorClaw",
}


def method_rows(protocol: str) -> list[tuple[str, str]]:
    """(method, summary) of each row a protocol serves. No protocol is served by this version."""
    return []


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()


class App:
    """One home, opened by one process."""

    def __init__(self, home: Path, config: Config, journal: Journal) -> None:
        self.home = home
        self.config = config
        self.journal = journal
        self.clock = SystemClock()
        secrets = KnownSecrets(
            os.environ,
            keys=[p.api_key for p in config.providers.values() if p.api_key],
            key_names=[p.api_key_env for p in config.providers.values() if p.api_key_env],
            credentials=str(home / "credentials"),
        )
        self.feed = Feed(journal, secrets, self.clock)
        self.log = Log(home / "quintet.log", self.feed.mask)
        self.policy = Policy(parse_rules(config.policy.rules), PlainCommandParser())
        self.interactions = Interactions(self.feed)
        self.turns = Turns(self.feed, self.interactions, self.policy)
        self.turns.on_defect = self.log.error
        self.projects = Projects(journal, project_root)
        self.handles = Handles(journal)
        self.threads = Threads(self.feed, self.turns, self.projects, self.handles)
        self.models = ModelTable(
            config.providers,
            config.models,
            default_model=config.default_model,
            environment=os.environ,
            directory=str(home),
        )
        self.tools = builtin_tools(home=str(home), environment=os.environ)

    def starter(
        self,
        principal: Principal,
        *,
        mode: Mode,
        model: str = "",
        on_ask: OnAsk = OnAsk.WAIT,
        interaction_timeout_s: float | None = None,
        max_steps: int | None = None,
    ) -> Starter:
        """What a turn begun here takes along; the configured mode is an upper bound for what was asked."""
        limits = self.config.limits
        return Starter(
            principal,
            self.models,
            self.tools,
            mode=strictest(mode, self.config.policy.mode),
            model=model,
            on_ask=on_ask,
            interaction_timeout_s=interaction_timeout_s or limits.interaction_timeout_s,
            max_steps=max_steps or limits.max_steps or DEFAULT_MAX_STEPS,
        )

    async def close(self) -> None:
        await self.turns.shutdown()
        await self.feed.close()
        await self.journal.close()


@asynccontextmanager
async def open_app(home: str | None, protocol: str) -> AsyncIterator[App]:
    """Open the home, give the app, and on the way out end whatever runs and let go of everything."""
    directory = home_directory(home, os.environ)
    make_home(directory)
    config = load_config(directory)
    journal = await open_journal(Path(directory), protocol=protocol)
    app = App(Path(directory), config, journal)
    try:
        yield app
    finally:
        await app.close()
