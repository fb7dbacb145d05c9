"""Late parts: what plays a port and is imported only when something is first asked of it, so that nobody waits at the
start for what may never be needed. Part of the composition root; decides nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any

from quintet.domain.checkpoint import Compared, FileChange, FileState, Secured
from quintet.domain.errors import QuintetError
from quintet.domain.hook import Hook, HookScope, HookVerdict
from quintet.domain.ports import Clock, FileHistory, Hooks, ParsedCommand


class LateCommandParser:
    """The workspace's parser, imported with the first command."""

    def parse(self, command: str) -> ParsedCommand:
        from quintet.workspace.commands import ShellCommandParser

        return ShellCommandParser().parse(command)


class LateFileHistory:
    """The workspace's history of files, imported with the first call that changes some."""

    def __init__(self, home: str, clock: Clock) -> None:
        self._home = home
        self._clock = clock

    @cached_property
    def _history(self) -> FileHistory:
        from quintet.workspace.history import WorkspaceHistory

        return WorkspaceHistory(self._home, os.environ, self._clock)

    async def secure(self, directory: str, paths: Sequence[str] | None = None) -> Secured:
        return await self._history.secure(directory, paths)

    async def still_runs(self, secured: Secured) -> None:
        await self._history.still_runs(secured)

    async def compare(self, secured: Secured, *, cut_off: bool = False) -> Compared:
        return await self._history.compare(secured, cut_off=cut_off)

    async def states(self, directory: str, paths: Sequence[str], *, keep: bool = False) -> list[FileState]:
        return await self._history.states(directory, paths, keep=keep)

    async def put(self, directory: str, path: str, state: FileState, expected: FileState | None = None) -> None:
        await self._history.put(directory, path, state, expected)

    async def put_all(self, directory: str, changes: Sequence[FileChange]) -> list[QuintetError | OSError | None]:
        return await self._history.put_all(directory, changes)

    async def content(self, directory: str, state: FileState) -> bytes | None:
        return await self._history.content(directory, state)

    async def sweep(self, keep: Collection[str], manifests: Collection[str]) -> tuple[int, int]:
        return await self._history.sweep(keep, manifests)


class LateHooks:
    """The workspace's runner of hooks, made when one is due."""

    def __init__(self, make: Callable[[], Hooks]) -> None:
        self._make = make

    @cached_property
    def _commands(self) -> Hooks:
        return self._make()

    async def run(self, hook: Hook, given: dict[str, Any], scope: HookScope, *, agreed: str = "") -> HookVerdict:
        return await self._commands.run(hook, given, scope, agreed=agreed)

    async def digest(self, hook: Hook, cwd: str) -> str:
        return await self._commands.digest(hook, cwd)
