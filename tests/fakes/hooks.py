"""Hooks for tests: rows as a person writes them, and the real runner of their commands in the real sandbox."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from quintet.domain.hook import Hook, HookEvent, HookScope, HookSubscription, HookVerdict
from quintet.domain.hook_matcher import Matcher
from quintet.tools.shell_profile import ShellSettings, network, writable
from quintet.workspace.hook_commands import HookCommands
from quintet.workspace.sandbox.profile import Profile
from quintet.workspace.sandbox.wall import Sandbox


def hook(
    event: HookEvent, command: str, matcher: str = "", *, timeout_s: float = 30.0, of_project: bool = False
) -> Hook:
    return Hook(event, command, Matcher(matcher), f"test {event}", timeout_s, of_project)


def subscription(event: HookEvent, matcher: str = "", *, id: str = "sub1", timeout_s: float = 30.0) -> HookSubscription:
    return HookSubscription(id, event, Matcher(matcher), timeout_s)


class NoCommands:
    """For turns without any."""

    async def run(self, hook: Hook, given: dict[str, Any], scope: HookScope, *, agreed: str = "") -> HookVerdict:
        raise AssertionError("no command is expected to run")

    async def digest(self, hook: Hook, cwd: str) -> str:
        raise AssertionError("no command is expected to be looked at")


@asynccontextmanager
async def real_commands(
    home: Path, environment: Mapping[str, str] | None = None, **sandboxing: Any
) -> AsyncIterator[HookCommands]:
    """As the composition root makes it."""
    home.mkdir(exist_ok=True, parents=True)
    around = os.environ if environment is None else environment
    loose = sandboxing.pop("loose", False)
    sandbox = Sandbox(around, home=str(home), **sandboxing)
    settings = ShellSettings()

    def profile(scope: HookScope, workspace: str, scratch: str) -> Profile:
        reach = network(scope.mode, settings, asked=False)
        return Profile(workspace, writable=writable(scope.mode, scope.confine), network=reach, scratch=scratch)

    try:
        yield HookCommands(around, sandbox, profile, os.path.realpath, settings.caps, loose=loose)
    finally:
        await sandbox.close()
