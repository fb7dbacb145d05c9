"""Composition root: the only file that knows everyone. Opens a home and wires journal, engine, tools and models."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quintet.config import Config, command_hooks, home_directory, load_config, make_home
from quintet.domain.errors import Invalid, QuintetError
from quintet.domain.hook import Hook, HookSubscription
from quintet.domain.ports import FileHistory, Journal, Tool
from quintet.domain.principal import Principal
from quintet.domain.project import Profile
from quintet.domain.thread import Handle, Thread
from quintet.domain.tool import Confine, ToolSpec
from quintet.domain.turn import Mode, strictest
from quintet.engine.feed import Feed
from quintet.engine.housekeeping import Housekeeping
from quintet.engine.mirrors import Mirrors, Writer
from quintet.journal.clock import SystemClock
from quintet.journal.opening import open_journal
from quintet.journal.store import OpenReport
from quintet.journal.stored import StoredJournal
from quintet.workspace.credentials import Credentials
from quintet.workspace.key_store import KeyStore
from quintet.workspace.log import Log
from quintet.workspace.secrets import KnownSecrets

if TYPE_CHECKING:  # imported when they are needed: the first reply to a client waits for none of them
    from quintet.domain.agent import Agent
    from quintet.engine.agents import Agents
    from quintet.engine.answer_form import AnswerForm
    from quintet.engine.checkpoints import Checkpoints
    from quintet.engine.diffs import Diffs
    from quintet.engine.hooks import AllHooks
    from quintet.engine.interactions import Interactions, OnAsk
    from quintet.engine.policy import Policy
    from quintet.engine.profiles import Profiles
    from quintet.engine.project_policy import ProjectPolicy
    from quintet.engine.projects import Projects
    from quintet.engine.starter import Starter
    from quintet.engine.threads import Threads
    from quintet.engine.turns import Turns
    from quintet.engine.undo import Undo
    from quintet.engine_room import EngineRoom
    from quintet.hands import Hands
    from quintet.minds import Minds
    from quintet.protocols.kward.session_files import SessionFiles as KwardFiles
    from quintet.protocols.wire.session_files import SessionFiles
    from quintet.providers.table import ModelTable
    from quintet.workspace.results import KeptResults


class App:
    """One home, opened by one process."""

    def __init__(
        self,
        home: Path,
        config: Config,
        journal: StoredJournal,
        *,
        profile: Profile | None = None,
        secret_files: Sequence[str] = (),
        skills_dirs: tuple[str, ...] = (),
    ) -> None:
        """`profile` is the usual one, where that is not the home's own; `secret_files` hold another program's keys;
        `skills_dirs` have skills of the person's for this run."""
        self.skills_dirs = skills_dirs
        self.home = home
        self.warnings = (*config.warnings, *_found(journal.report))
        self.config = config
        self.configured: Callable[[], Config] = lambda: self.config  # what the table of models is made from
        self._left: list[ModelTable] = []  # earlier tables, which a turn may still use
        self.journal: Journal = journal
        self.clock = SystemClock()
        self.credentials = Credentials(str(home), KeyStore(os.environ))
        secrets = KnownSecrets(
            os.environ,
            keys=[p.api_key for p in config.providers.values() if p.api_key],
            key_names=_key_names(config),
            credentials=self.credentials,
            files=secret_files,
        )
        self.feed = Feed(journal, secrets, self.clock)
        self.log = Log(home / "quintet.log", self.feed.mask)
        for warning in self.warnings:
            self.log.line(warning)
        self._profile = profile
        self.configured_hooks = command_hooks(config.hooks)
        self.housekeeping = Housekeeping(journal, self.clock, config.retention.delta_grace_s)
        writers: Mapping[str, Callable[[], Writer]] = {
            "wire": lambda: self.wire_files,
            "kward": lambda: self.kward_files,
        }
        names = {"wire": self._kimi_name} if config.mirrors.kimi == "all" else {}
        mirrors = Mirrors(journal, writers, self.log.line, names)
        self.feed.mirror, self.feed.unmirror = mirrors.bring_up, mirrors.remove

    # What follows is imported and made when it is first asked for.

    @cached_property
    def room(self) -> EngineRoom:
        from quintet.engine_room import EngineRoom

        return EngineRoom(
            self.home,
            self.config,
            self.journal,
            self.feed,
            self.log,
            self.hands,
            self.profiles,
            self.minds,
            hooks=self.configured_hooks,
            profile=self._profile,
        )

    @property
    def turns(self) -> Turns:
        return self.room.turns

    @property
    def threads(self) -> Threads:
        return self.room.threads

    @property
    def interactions(self) -> Interactions:
        return self.room.interactions

    @property
    def projects(self) -> Projects:
        return self.room.projects

    @property
    def policy(self) -> Policy:
        return self.room.policy

    @property
    def agents(self) -> Agents:
        return self.room.agents

    @property
    def hooks(self) -> AllHooks:
        return self.room.hooks

    @property
    def history(self) -> FileHistory:
        return self.room.history

    @property
    def checkpoints(self) -> Checkpoints:
        return self.room.checkpoints

    @property
    def diffs(self) -> Diffs:
        return self.room.diffs

    @property
    def undo(self) -> Undo:
        return self.room.undo

    @property
    def results(self) -> KeptResults:
        return self.hands.results

    @cached_property
    def hands(self) -> Hands:
        from quintet.engine.notices import Notices
        from quintet.hands import Hands

        post = Notices(self.feed, self.log.line).post
        return Hands(self.home, self.config, self.credentials, self.skills_dirs, post=post, now_ms=self.clock.now_ms)

    @cached_property
    def profiles(self) -> Profiles:
        from quintet.engine.profiles import DEFAULT, Profiles

        return Profiles(str(self.home), {DEFAULT: self._profile} if self._profile else {})

    @cached_property
    def minds(self) -> Minds:
        from quintet.domain.memory import MemorySwitch
        from quintet.minds import Minds

        usual = MemorySwitch(self.config.memory.enabled, self.config.memory.auto_summary)
        return Minds(self.home, self.profiles, self.clock, self.feed.mask, usual)

    def add_hooks(self, hooks: Sequence[Hook]) -> None:
        """Those of another program's configuration."""
        self.configured_hooks = (*self.configured_hooks, *hooks)
        if "room" in self.__dict__:
            self.hooks.configured = self.configured_hooks

    @cached_property
    def wire_files(self) -> SessionFiles:
        """Needed by whoever runs a turn in a thread that Kimi's clients know."""
        from quintet.protocols.wire.events import Options
        from quintet.protocols.wire.names import Names
        from quintet.protocols.wire.session_files import SessionFiles
        from quintet.workspace.mirror_files import DiskMirrorFiles

        files = DiskMirrorFiles(str(self.home / "run"))
        return SessionFiles(self.journal, self.threads, files, Options(Names(), self.window), self.log.line)

    @cached_property
    def kward_files(self) -> KwardFiles:
        """The same for a thread that Kward's clients know."""
        from quintet.protocols.kward.session_files import SessionFiles
        from quintet.workspace.mirror_files import DiskMirrorFiles

        files, index = DiskMirrorFiles(str(self.home / "run")), str(self.home / "cache" / "kward.json")
        return SessionFiles(self.journal, self.threads, files, self.log.line, index)

    def _kimi_name(self, thread: Thread) -> Handle:
        from quintet.protocols.wire.place import name_of, share_directory

        return name_of(thread, share_directory(os.environ))

    def window(self, model: str) -> int | None:
        """How much the model can read; None for one that is not configured any more."""
        try:
            return self.models.info(model or self.models.default).context_window
        except QuintetError:
            return None

    @cached_property
    def models(self) -> ModelTable:
        from quintet.providers.table import ModelTable

        config = self.configured()
        return ModelTable(
            config.providers,
            config.models,
            default_model=config.default_model,
            environment=os.environ,
            directory=str(self.home),
            stored=self.credentials,
        )

    def forget_models(self) -> None:
        """What is configured has changed: turns that begin from now on go by it."""
        if "models" in self.__dict__:
            self._left.append(self.__dict__.pop("models"))

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self.hands.tools

    @cached_property
    def _remembering(self) -> tuple[Tool, ...]:
        from quintet.engine.proposals import MemoryProposals
        from quintet.minds import roots_of
        from quintet.tools.remember import RememberTool

        return (RememberTool(MemoryProposals(self.journal, self.minds.of, roots_of)),)

    def starter(
        self,
        principal: Principal,
        *,
        mode: Mode,
        model: str = "",
        on_ask: OnAsk | None = None,
        interaction_timeout_s: float | None = None,
        max_steps: int | None = None,
        confine: Confine = Confine.AUTO,
        budget: float | None = None,
        answer_form: AnswerForm | None = None,
        hooks: Sequence[HookSubscription] = (),
        tools: Sequence[Tool] | None = None,
        external_tools: Sequence[ToolSpec] = (),
        withheld: Mapping[str, str] | None = None,
        agent: Agent | None = None,
        subagents: Sequence[Agent] = (),
        restarts: bool = False,
        keeps_steers: bool = True,
        remembers: bool = True,
        effort: str = "",
        keep_recent: int | None = None,
        keep_least: int = 0,
        compacts: bool = True,
        told: str = "",
        told_late: Callable[[], Awaitable[str]] | None = None,
        attended: bool = True,
    ) -> Starter:
        """What a turn begun here takes along; the configured mode is an upper bound for what was asked."""
        from quintet.engine.interactions import OnAsk
        from quintet.engine.spending import Budget
        from quintet.engine.starter import DEFAULT_MAX_STEPS, Starter

        limits = self.config.limits
        if tools is None:
            tools = (*self.tools, *(self._remembering if remembers and self.minds.enabled() else ()))
        return Starter(
            principal,
            self.models,
            tools,
            mode=strictest(mode, self.config.policy.mode),
            model=model,
            on_ask=on_ask or OnAsk.WAIT,
            interaction_timeout_s=interaction_timeout_s or limits.interaction_timeout_s,
            max_steps=max_steps or limits.max_steps or DEFAULT_MAX_STEPS,
            confine=confine,
            compact_at=limits.compact_at,
            budget=Budget(budget or limits.turn_budget, limits.thread_budget, limits.day_budget),
            answer_form=answer_form,
            hooks=hooks,
            external_tools=external_tools,
            withheld=withheld,
            agent=agent,
            subagents=subagents,
            restarts=restarts,
            keeps_steers=keeps_steers,
            remembers=remembers,
            effort=effort,
            keep_recent=keep_recent,
            keep_least=keep_least,
            compacts=compacts,
            told=told,
            told_late=told_late,
            attended=attended,
        )

    def project_policy(self, directory: str) -> ProjectPolicy:
        return self.room.project_policy(directory)

    async def tidy_workspaces(self) -> None:
        """Take away what killed processes left in workspaces to cover names with; a look where they left nothing."""
        with contextlib.suppress(OSError):
            if os.listdir(self.home / "run" / "sandbox" / "masks"):
                await self.hands.sandbox.tidy()

    async def close(self) -> None:
        if "room" in self.__dict__:
            await self.turns.shutdown()
            await self.hooks.close()
        for table in [*self._left, *([self.models] if "models" in self.__dict__ else [])]:  # made by the first turn
            await table.close()
        if "hands" in self.__dict__:
            await self.hands.close()
        await self.feed.close()
        await self.journal.close()


def _key_names(config: Config) -> list[str]:
    """The variables that hold keys."""
    names = [provider.api_key_env for provider in config.providers.values()]
    if config.web_search:
        names.append(config.web_search.api_key_env)
    return [name for name in names if name]


def _as_it_is(config: Config) -> Config:
    return config


def _config(home: str, *, starts_turns: bool) -> Config:
    try:
        config = load_config(home)
        if config.policy.rules:
            from quintet.engine.rules import parse_rules

            parse_rules(config.policy.rules)
        return config
    except Invalid as error:
        if starts_turns:
            raise
        return Config(warnings=(error.line(),))


def _found(report: OpenReport) -> list[str]:
    """What a person should know of how the journal was found."""
    words = []
    if report.full:
        words.append("The disk is full: everything can be read, nothing can be started.")
    elif report.read_only:
        words.append("The home cannot be written: everything can be read, nothing can be started.")
    if report.damaged:
        words.append(
            f"The journal's log was damaged: {report.wal_dropped} of its pages were lost. "
            f"What was left of it is kept in {report.saved_as}."
        )
    if report.backup:
        words.append(f"The journal was brought up to date; a backup of the old one is {report.backup}.")
    return words


@asynccontextmanager
async def open_app(
    home: str | None,
    protocol: str,
    *,
    starts_turns: bool = True,
    over: Callable[[Config], Config] = _as_it_is,
    profile: Profile | None = None,
    secret_files: Sequence[str] = (),
    skills_dirs: tuple[str, ...] = (),
) -> AsyncIterator[App]:
    """Open the home, give the app, and on the way out end whatever runs and let go of everything.

    Nothing is started half-configured; but a mistake in config.toml must not keep anybody from looking at what runs,
    answering it or stopping it. `over` is what a protocol's own configuration puts in place of ours.
    """
    directory = home_directory(home, os.environ)
    # A core file would hold every key this process knows.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    make_home(directory)
    config = over(_config(directory, starts_turns=starts_turns))
    journal = await open_journal(Path(directory), protocol=protocol)
    try:
        app = App(
            Path(directory),
            config,
            journal,
            profile=profile,
            secret_files=secret_files,
            skills_dirs=skills_dirs,
        )
    except BaseException:
        await journal.close()
        raise
    if app.credentials.fingerprint() or secret_files:
        # The system's key store may take its time, or ask the person to unlock it: never on the event loop.
        await asyncio.to_thread(app.feed.mask, "")
    try:
        if starts_turns:
            await app.tidy_workspaces()
        yield app
    finally:
        await app.close()
