"""Engine room: what threads and turns need, put together. Part of the composition root; imported and made when somebody
first asks for more than a greeting, so that the first reply to a client waits for none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quintet.config import Config
from quintet.domain.agent import Agent, AgentsFound
from quintet.domain.hook import Hook
from quintet.domain.ports import FileHistory, Journal
from quintet.domain.project import Profile
from quintet.engine.agents import Agents
from quintet.engine.checkpoints import Checkpoints
from quintet.engine.diffs import Diffs
from quintet.engine.feed import Feed
from quintet.engine.hooks import AllHooks
from quintet.engine.interactions import Interactions
from quintet.engine.policy import Policy
from quintet.engine.profiles import Profiles
from quintet.engine.project_policy import ProjectPolicy, project_policy, together
from quintet.engine.projects import Handles, Projects
from quintet.engine.recalling import Recalling
from quintet.engine.rules import parse_rules
from quintet.engine.stories import Stories
from quintet.engine.threads import Threads
from quintet.engine.turns import Turns
from quintet.engine.undo import Undo
from quintet.hands import Hands
from quintet.late import LateCommandParser, LateFileHistory, LateHooks
from quintet.minds import Minds, roots_of
from quintet.workspace.agent_files import AgentFiles
from quintet.workspace.diffs import unified_diff
from quintet.workspace.log import Log
from quintet.workspace.paths import PathGuard
from quintet.workspace.project_config import read_project_config
from quintet.workspace.project_root import project_root, worktree_root
from quintet.workspace.surroundings import WorkspaceSurroundings


class EngineRoom:
    def __init__(
        self,
        home: Path,
        config: Config,
        journal: Journal,
        feed: Feed,
        log: Log,
        hands: Hands,
        profiles: Profiles,
        minds: Minds,
        *,
        hooks: Sequence[Hook],
        profile: Profile | None,
    ) -> None:
        """`profile` is the usual one, where that is not the home's own."""
        place = str(home)
        self._log = log
        self._configured = config.agents
        self.policy = Policy(
            parse_rules(config.policy.rules), LateCommandParser(), sandbox_required=config.sandbox.required
        )
        self.interactions = Interactions(feed)
        self.history: FileHistory = LateFileHistory(place, feed.clock)
        stories = Stories(feed, self.history)
        self.diffs = Diffs(feed, self.history, stories, unified_diff)
        self.undo = Undo(feed, self.history, stories)
        self.checkpoints = Checkpoints(feed, self.history, self.diffs, PathGuard(place).workspace)
        self._agent_files = AgentFiles(place)
        self.agents = Agents(self._own_agents, self._agent_files.of_project)
        self.hooks = AllHooks(feed, self.interactions, LateHooks(hands.hook_commands), hooks, log.line)
        own_dirs = (profile.directory,) if profile else ()
        self.turns = Turns(
            feed,
            self.interactions,
            self.policy,
            self.checkpoints,
            WorkspaceSurroundings(place, skills_dirs=hands.skills_dirs, own_dirs=own_dirs),
            project_policy=self.project_policy,
            agents=self.agents,
            results=hands.results,
            hooks=self.hooks,
            recalling=Recalling(feed, minds.of, roots_of, log.line),
        )
        self.turns.on_defect = log.error
        self.projects = Projects(journal, project_root)
        self.handles = Handles(journal)
        self.threads = Threads(feed, self.turns, self.undo, self.projects, self.handles, profiles)

    def _own_agents(self) -> AgentsFound:
        """The person's: config.toml goes before a file of the same name."""
        found = self._agent_files.own()
        configured = {
            name: Agent(name, a.description, a.instructions, a.model, a.tools, a.mode, f"config.toml [agents.{name}]")
            for name, a in self._configured.items()
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
            self._log.line(warning)
        return found
