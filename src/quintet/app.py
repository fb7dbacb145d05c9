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
from quintet.domain.agent import Agent, AgentsFound
from quintet.domain.errors import Invalid, QuintetError
from quintet.domain.hook import HookSubscription
from quintet.domain.memory import MemorySwitch
from quintet.domain.ports import FileHistory, Journal, Tool
from quintet.domain.principal import Principal
from quintet.domain.project import Profile
from quintet.domain.thread import Handle, Thread
from quintet.domain.tool import Confine, ToolSpec
from quintet.domain.turn import Mode, strictest
from quintet.engine.agents import Agents
from quintet.engine.answer_form import AnswerForm
from quintet.engine.checkpoints import Checkpoints
from quintet.engine.diffs import Diffs
from quintet.engine.feed import Feed
from quintet.engine.hooks import AllHooks
from quintet.engine.housekeeping import Housekeeping
from quintet.engine.interactions import Interactions, OnAsk
from quintet.engine.mirrors import Mirrors, Writer
from quintet.engine.policy import Policy
from quintet.engine.profiles import DEFAULT, Profiles
from quintet.engine.project_policy import ProjectPolicy, project_policy, together
from quintet.engine.projects import Handles, Projects
from quintet.engine.recalling import Recalling
from quintet.engine.rules import parse_rules
from quintet.engine.spending import Budget
from quintet.engine.starter import DEFAULT_MAX_STEPS, Starter
from quintet.engine.stories import Stories
from quintet.engine.threads import Threads
from quintet.engine.turns import Turns
from quintet.engine.undo import Undo
from quintet.hands import Hands
from quintet.journal.clock import SystemClock
from quintet.journal.opening import open_journal
from quintet.journal.store import OpenReport
from quintet.journal.stored import StoredJournal
from quintet.late import LateCommandParser, LateFileHistory, LateHooks
from quintet.minds import Minds, roots_of
from quintet.workspace.agent_files import AgentFiles
from quintet.workspace.credentials import Credentials
from quintet.workspace.diffs import unified_diff
from quintet.workspace.key_store import KeyStore
from quintet.workspace.log import Log
from quintet.workspace.paths import PathGuard
from quintet.workspace.project_config import read_project_config
from quintet.workspace.project_root import project_root, worktree_root
from quintet.workspace.results import KeptResults
from quintet.workspace.secrets import KnownSecrets
from quintet.workspace.surroundings import WorkspaceSurroundings

if TYPE_CHECKING:
    from quintet.engine.explaining import Explained
    from quintet.protocols.kward.session_files import SessionFiles as KwardFiles
    from quintet.protocols.wire.session_files import SessionFiles
    from quintet.providers.table import ModelTable

PROTOCOLS = {
    "wire": "Kimi Wire",
    "kward": "Kward RPC",
    "knp": "Popcorn KNP",
    "opencode": "OpenCode adapter",
    "kaiak": "Kaiak",
    "cursorclaw": "CursorClaw",
}


def method_rows(protocol: str) -> list[tuple[str, str]]:
    """(method, summary) of each row a protocol serves."""
    if protocol == "wire":
        from quintet.protocols.wire.server import TABLE

        return [(row.name, row.summary) for row in TABLE]
    if protocol == "kward":
        from quintet.protocols.kward.server import TABLE as KWARD

        return [(row.name, row.summary) for row in KWARD]
    if protocol == "knp":
        from quintet.protocols.knp.server import TABLE as ROUTES

        return [(route.name, route.summary) for route in ROUTES]
    return []


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
        self.policy = Policy(
            parse_rules(config.policy.rules), LateCommandParser(), sandbox_required=config.sandbox.required
        )
        self.interactions = Interactions(self.feed)
        self.history: FileHistory = LateFileHistory(str(home), self.clock)
        stories = Stories(self.feed, self.history)
        self.diffs = Diffs(self.feed, self.history, stories, unified_diff)
        self.undo = Undo(self.feed, self.history, stories)
        self.checkpoints = Checkpoints(self.feed, self.history, self.diffs, PathGuard(str(home)).workspace)
        self.results = KeptResults(str(home))
        self.hands = Hands(home, config, self.credentials, self.results, skills_dirs)
        self._agent_files = AgentFiles(str(home))
        self.agents = Agents(self._own_agents, self._agent_files.of_project)
        self.hooks = AllHooks(
            self.feed,
            self.interactions,
            LateHooks(self.hands.hook_commands),
            command_hooks(config.hooks),
            self.log.line,
        )
        self.profiles = Profiles(str(home), {DEFAULT: profile} if profile else {})
        usual = MemorySwitch(config.memory.enabled, config.memory.auto_summary)
        self.minds = Minds(home, self.profiles, self.clock, self.feed.mask, usual)
        self.turns = Turns(
            self.feed,
            self.interactions,
            self.policy,
            self.checkpoints,
            WorkspaceSurroundings(str(home), skills_dirs=skills_dirs, own_dirs=(profile.directory,) if profile else ()),
            project_policy=self.project_policy,
            agents=self.agents,
            results=self.results,
            hooks=self.hooks,
            recalling=Recalling(self.feed, self.minds.of, roots_of, self.log.line),
        )
        self.turns.on_defect = self.log.error
        self.projects = Projects(journal, project_root)
        self.handles = Handles(journal)
        self.housekeeping = Housekeeping(journal, self.clock, config.retention.delta_grace_s)
        self.threads = Threads(self.feed, self.turns, self.undo, self.projects, self.handles, self.profiles)
        writers: Mapping[str, Callable[[], Writer]] = {
            "wire": lambda: self.wire_files,
            "kward": lambda: self.kward_files,
        }
        names = {"wire": self._kimi_name} if config.mirrors.kimi == "all" else {}
        mirrors = Mirrors(journal, writers, self.log.line, names)
        self.feed.mirror, self.feed.unmirror = mirrors.bring_up, mirrors.remove

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

    # Models and tools are imported when a turn needs them: the first reply to a client should not wait for that.

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
        from quintet.tools.remember import RememberTool

        return (RememberTool(MemoryProposals(self.journal, self.minds.of, roots_of)),)

    def starter(
        self,
        principal: Principal,
        *,
        mode: Mode,
        model: str = "",
        on_ask: OnAsk = OnAsk.WAIT,
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
        restarts: bool = False,
        keeps_steers: bool = True,
        remembers: bool = True,
        effort: str = "",
        keep_recent: int | None = None,
        compacts: bool = True,
        told: Callable[[], Awaitable[str]] | None = None,
    ) -> Starter:
        """What a turn begun here takes along; the configured mode is an upper bound for what was asked."""
        limits = self.config.limits
        if tools is None:
            tools = (*self.tools, *(self._remembering if remembers and self.minds.enabled() else ()))
        return Starter(
            principal,
            self.models,
            tools,
            mode=strictest(mode, self.config.policy.mode),
            model=model,
            on_ask=on_ask,
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
            restarts=restarts,
            keeps_steers=keeps_steers,
            remembers=remembers,
            effort=effort,
            keep_recent=keep_recent,
            compacts=compacts,
            told=told,
        )

    async def explain(self, tool: str, words: str, *, cwd: str, protocol: str) -> Explained:
        """What policy would say to this call in a new thread in this directory."""
        from quintet.engine.explaining import Explaining

        root = await asyncio.to_thread(project_root, cwd)
        known = {project.root: project.id for project in await self.projects.all()}
        return await Explaining(self.policy, LateCommandParser(), self.tools).explain(
            tool,
            words,
            cwd=cwd,
            protocol=protocol,
            project=known.get(root, ""),
            project_policy=await asyncio.to_thread(self.project_policy, cwd),
            grants=await self.journal.grants(),
            now_ms=self.clock.now_ms(),
        )

    def _own_agents(self) -> AgentsFound:
        """The person's: config.toml goes before a file of the same name."""
        found = self._agent_files.own()
        configured = {
            name: Agent(name, a.description, a.instructions, a.model, a.tools, a.mode, f"config.toml [agents.{name}]")
            for name, a in self.config.agents.items()
        }
        hidden = [a for a in found.agents if a.name in configured]
        notes = [f"{a.source}: not used, config.toml has an agent of this name." for a in hidden]
        return AgentsFound(
            (*(a for a in found.agents if a not in hidden), *configured.values()),
            tuple((name, words) for name, words in found.problems if name not in configured),
            (*found.notes, *notes),
        )

    def project_policy(self, directory: str) -> ProjectPolicy:
        """What the files of the project around this directory add; read anew for each turn."""
        roots = dict.fromkeys((project_root(directory), worktree_root(directory)))
        found = together([project_policy(read_project_config(root)) for root in roots], tuple(roots))
        for warning in found.warnings:
            self.log.line(warning)
        return found

    async def tidy_workspaces(self) -> None:
        """Take away what killed processes left in workspaces to cover names with; a look where they left nothing."""
        with contextlib.suppress(OSError):
            if os.listdir(self.home / "run" / "sandbox" / "masks"):
                await self.hands.sandbox.tidy()

    async def close(self) -> None:
        await self.turns.shutdown()
        await self.hooks.close()
        for table in [*self._left, *([self.models] if "models" in self.__dict__ else [])]:  # made by the first turn
            await table.close()
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
