"""Hands: what calls and hooks are done with: the sandbox, commands in the background, the tools. Part of the
composition root; everything here is made when a turn first needs it.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quintet.config import Config
from quintet.domain.hook import HookScope
from quintet.domain.notice import Notice
from quintet.domain.ports import Hooks, Tool
from quintet.domain.turn import Mode
from quintet.workspace.credentials import Credentials
from quintet.workspace.paths import PathGuard
from quintet.workspace.results import KeptResults

if TYPE_CHECKING:
    from quintet.engine.attachments import Attachments
    from quintet.tools.shell_profile import ShellSettings
    from quintet.workspace.background import Background
    from quintet.workspace.plugin_commands import PluginCommands
    from quintet.workspace.sandbox.wall import Sandbox
    from quintet.workspace.seen import Seen

Post = Callable[[str, Notice], Awaitable[None]]


class Hands:
    def __init__(
        self,
        home: Path,
        config: Config,
        credentials: Credentials,
        skills_dirs: tuple[str, ...] = (),
        *,
        post: Post | None = None,
        now_ms: Callable[[], int] = lambda: 0,
    ) -> None:
        """`post` keeps a notice of a thread."""
        self.home = home
        self.config = config
        self.credentials = credentials
        self.results = KeptResults(str(home))
        self.skills_dirs = skills_dirs
        self._post = post
        self._now_ms = now_ms
        # A server that asks for no credentials sets this before the first turn: commands must not reach it.
        self.open_server = False

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        from quintet.tools.builtin import builtin_tools

        return builtin_tools(
            home=str(self.home),
            environment=os.environ,
            sandbox=self.sandbox,
            background=self.background,
            shell=self._shell_settings(),
            web_search=self.config.web_search,
            search_key=self._search_key,
            results=self.results,
            skills_dirs=self.skills_dirs,
            seen=self.seen,
        )

    @cached_property
    def seen(self) -> Seen:
        from quintet.workspace.seen import Seen

        return Seen()

    def _search_key(self) -> str:
        """Looked up at each search, so that a changed key counts at once."""
        search = self.config.web_search
        if search and search.credential:
            return self.credentials.get(search.credential)
        return os.environ.get(search.api_key_env, "") if search else ""

    @cached_property
    def attachments(self) -> Attachments:
        """Judged as what the tools read is: Quintet's own files and the person's secrets stay closed."""
        from quintet.engine.attachments import Attachments
        from quintet.workspace.attachments import WorkspaceAttachments

        return Attachments(WorkspaceAttachments(self.guard))

    @cached_property
    def guard(self) -> PathGuard:
        """For paths that a person's client sends: no looser than the tools' own."""
        from quintet.workspace.sandbox.hidden import credential_places

        return PathGuard(str(self.home), credential_places(os.environ))

    @cached_property
    def background(self) -> Background:
        from quintet.tools.shell_notice import ended_notice
        from quintet.workspace.background import Background, Look

        async def tell(thread: str, look: Look) -> None:
            if self._post is not None:
                await self._post(thread, ended_notice(look, self._now_ms()))

        return Background(tell)

    def _shell_settings(self) -> ShellSettings:
        from quintet.tools.shell_profile import ShellSettings
        from quintet.workspace.sandbox.limits import usual_caps

        given = self.config.sandbox
        caps = usual_caps(
            max_processes=given.max_processes, max_memory_mib=given.max_memory_mib, max_file_mib=given.max_file_mib
        )
        return ShellSettings(given.network, open_server=self.open_server, caps=caps)

    def hook_commands(self) -> Hooks:
        """Hooks are confined as commands of their turn's mode are, which asked for no network."""
        from quintet.tools.shell_profile import network, writable
        from quintet.workspace.hook_commands import HookCommands
        from quintet.workspace.sandbox.profile import Profile

        settings = self._shell_settings()

        def profile(scope: HookScope, workspace: str, scratch: str) -> Profile:
            writes = writable(scope.mode, scope.confine)
            reach = network(scope.mode, settings, asked=False)
            return Profile(workspace, writable=writes, network=reach, scratch=scratch)

        return HookCommands(
            os.environ,
            self.sandbox,
            profile,
            PathGuard(str(self.home)).workspace,
            settings.caps,
            loose=self.config.sandbox.required is False,
        )

    def plugin_commands(self, mode: Mode) -> PluginCommands:
        """Confined as commands of a turn in this mode are."""
        from quintet.domain.tool import Confine
        from quintet.tools.shell_profile import network, writable
        from quintet.workspace.plugin_commands import PluginCommands
        from quintet.workspace.sandbox.profile import Profile

        settings = self._shell_settings()

        def profile(workspace: str, scratch: str) -> Profile:
            reach = network(mode, settings, asked=False)
            return Profile(workspace, writable=writable(mode, Confine.AUTO), network=reach, scratch=scratch)

        guard, loose = PathGuard(str(self.home)), self.config.sandbox.required is False
        return PluginCommands(os.environ, self.sandbox, profile, guard.workspace, settings.caps, loose=loose)

    @cached_property
    def sandbox(self) -> Sandbox:
        from quintet.workspace.sandbox.wall import Sandbox

        chosen = self.config.sandbox
        return Sandbox(os.environ, home=str(self.home), enabled=chosen.mode != "off", writable=chosen.writable)

    async def close(self) -> None:
        if "background" in self.__dict__:  # made with the tools, if those were needed
            await self.background.close()
        if "sandbox" in self.__dict__:  # else no turn ever looked for it
            await self.sandbox.close()
