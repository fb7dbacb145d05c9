"""Sandbox: looks once what works here, then wraps commands in it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from quintet.domain.errors import Busy
from quintet.workspace.interpreter import bare_interpreter, its_places
from quintet.workspace.sandbox import watched
from quintet.workspace.sandbox.bubblewrap import Tool, arguments
from quintet.workspace.sandbox.check_up import check_up
from quintet.workspace.sandbox.groups import Group, Groups, groups_here
from quintet.workspace.sandbox.limits import Caps
from quintet.workspace.sandbox.mounts import Mount, seen
from quintet.workspace.sandbox.placeholders import Moved, Placeholders, tidy
from quintet.workspace.sandbox.plan import TEMPORARY, Own, Plan, missing_trees, plan, refuse
from quintet.workspace.sandbox.probe import Probed, found_tool, probed
from quintet.workspace.sandbox.profile import Finding, Profile, State
from quintet.workspace.sandbox.rooms import Rooms
from quintet.workspace.sandbox.scratch import Scratches
from quintet.workspace.sandbox.under_way import UnderWay

if TYPE_CHECKING:
    from quintet.workspace.sandbox.network import WayOut
    from quintet.workspace.web.addresses import Refusing
    from quintet.workspace.web.resolving import Resolve

REFUSALS = 100  # kept of one command


class Confined(msgspec.Struct, frozen=True):
    """A command as it is to be spawned."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    put_back: list[watched.PutBack] = msgspec.field(default_factory=list)  # afterwards: what it may not change, and did
    emptied: int = 0  # bytes that were removed from its temporary directory before, because they were too many
    refused: Sequence[str] = ()  # fills while it runs: what its allow-list did not let through, each once


LOOKS = 20  # before it is given up that names come and go
_SetUp = tuple[Plan, Placeholders, int]  # for one command; the last as in Confined.emptied


class Sandbox:
    """`home` is Quintet's own directory and is never seen inside, like every directory in `hidden`; `enabled` and
    `writable` (further directories commands may write) are the person's choice in config.toml. How an allow-list's
    names are looked up and which addresses it never reaches is given by tests only."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        home: str = "",
        enabled: bool = True,
        writable: Sequence[str] = (),
        hidden: Sequence[str] = (),
        resolve: Resolve | None = None,
        refuse: Refusing | None = None,
    ) -> None:
        self._environment = environment
        self._home = home
        self._enabled = enabled
        self._writable = writable
        self._hidden = hidden
        self._resolve = resolve
        self._refuse = refuse
        self._rooms = Rooms(home)
        self._tool: Tool | None = None
        self._launcher: tuple[str, ...] = ()
        self._state: State | None = None
        self._filters = False  # system calls, inside
        self._groups = Groups({})
        self._under_way = UnderWay()
        self._scratches = Scratches()
        self._looking = asyncio.Lock()

    async def state(self) -> State:
        """Probed by running the real thing, once per process unless that could not be told."""
        async with self._looking:
            if self._state is not None:
                return self._state
            self._groups = await asyncio.to_thread(groups_here)
            found = await asyncio.to_thread(self._probe)
            self._tool, self._filters = found.tool, found.filters
            if found.final:
                self._state = found.state
            return found.state

    async def rows(self) -> list[Finding]:
        """What a check-up shows."""
        state = await self.state()
        rows = check_up(state, self._tool, filters=self._filters, held=self._groups.controllers)
        missing = (Finding("writable", False, f"{place} is not there", f"mkdir -p {place}") for place in self.missing())
        return [*rows, *missing]

    @asynccontextmanager
    async def group(self, caps: Caps) -> AsyncIterator[Group | None]:
        """For one command, with or without a wall; None where there are none. Leave when the command has ended."""
        await self.state()
        made = self._groups.made(caps)
        try:
            yield made
        finally:
            if made is not None:
                await self._groups.discarded(made)

    def missing(self) -> list[str]:
        """Of the directories that commands may write by config.toml those that are not there."""
        return missing_trees(self._own())

    def refuse(self, workspace: str) -> None:
        """Raises where commands cannot be confined to this directory; quick."""
        refuse(os.path.realpath(workspace), self._own())

    def scratch(self, thread: str) -> str:
        """A thread's own temporary directory, until close."""
        return self._rooms.scratch(thread)

    @asynccontextmanager
    async def confined(
        self,
        argv: Sequence[str],
        cwd: str,
        environment: Mapping[str, str],
        profile: Profile,
        limits: Sequence[tuple[str, int]] = (),
        scripts: Sequence[tuple[str, str]] = (),
    ) -> AsyncIterator[Confined]:
        """The command inside the wall, ready to spawn; what had to be set up for it is taken down on the way out.

        `limits` are names of RLIMIT_… with their bounds; `scripts` are files, each with the SHA-256 it must have when
        the command begins, or it does not. Leave only when every process of the command has ended.
        """
        if isinstance(profile.network, tuple) and profile.network:
            refused: list[str] = []
            async with self._way_out(profile.network, refused) as out:
                before = (bare_interpreter(), *out.words, *_unset(environment), "--")
                outer = {**environment, **out.environment}
                async with self._walled(
                    (*before, *argv), cwd, outer, profile, limits, scripts, (out.mount,)
                ) as confined:
                    yield msgspec.structs.replace(confined, refused=refused)
        else:
            async with self._walled(argv, cwd, environment, profile, limits, scripts) as confined:
                yield confined

    def _way_out(self, hosts: Sequence[str], refused: list[str]) -> AbstractAsyncContextManager[WayOut]:
        from quintet.workspace.sandbox.network import way_out  # few commands have a list

        def told(line: str) -> None:
            if line not in refused and len(refused) < REFUSALS:
                refused.append(line)

        room = self._rooms.scratch("network")
        return way_out(hosts, room, resolve=self._resolve, refuse=self._refuse, refused=told)

    @asynccontextmanager
    async def _walled(
        self,
        argv: Sequence[str],
        cwd: str,
        environment: Mapping[str, str],
        profile: Profile,
        limits: Sequence[tuple[str, int]],
        scripts: Sequence[tuple[str, str]],
        mounts: Sequence[Mount] = (),
    ) -> AsyncIterator[Confined]:
        planned, held, emptied = await self._set_up_wholly(profile)
        try:
            before = watched.remember(planned.watched)
            under_way = self._under_way.there(profile.trees)
            inside = {**environment, **{name: TEMPORARY for name in ("TMPDIR", "TMP", "TEMP") if name in environment}}
            planned = planned.with_more(mounts)
            words = self._words(planned, cwd, inside, limits, network=profile.network == "on")
            words += [f"same={said}:{path}" for path, said in scripts if seen(planned.mounts, path)]
            confined = Confined((*words, "--", *argv), {**inside, "TMPDIR": TEMPORARY}, emptied=emptied)
            try:
                yield confined
            finally:
                # Without a pause: a second cancel must not leave it half done. A handful of system calls.
                confined.put_back.extend(watched.put_back(before))
                begun = self._under_way.left(profile.trees, under_way) if profile.writable else []
                confined.put_back.extend(watched.PutBack(place, left=True) for place in begun)
        finally:
            held.release()
            # In a thread, which a cancel does not stop: it may have to wait for another process.
            await asyncio.shield(asyncio.to_thread(self._leave, profile))

    async def _set_up_wholly(self, profile: Profile) -> _SetUp:
        """In a thread, which a cancel does not stop: what it made is then taken down when it has ended."""
        work = asyncio.ensure_future(asyncio.to_thread(self._set_up, profile))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(lambda done: self._take_down_late(profile, done))
            raise

    def _take_down_late(self, profile: Profile, done: asyncio.Future[_SetUp]) -> None:
        if not done.cancelled() and done.exception() is None:
            done.result()[1].release()
            done.get_loop().run_in_executor(None, self._leave, profile)

    def _leave(self, profile: Profile) -> None:
        if profile.scratch:
            self._scratches.leave(profile.scratch)
        with contextlib.suppress(OSError):
            self._tidy(self._rooms.notes(profile.workspace))

    def _tidy(self, notes: str) -> None:
        with contextlib.suppress(OSError, Busy):  # full disk, or in use: the notes stay as they are, for the next one
            tidy(notes, self._rooms.locks())

    async def close(self) -> None:
        """Remove the temporary directories, and whatever an ended process left in workspaces."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._groups.tidy()
        if self._tool is not None:
            self._tidy_all()
        self._rooms.close()

    async def tidy(self) -> None:
        """Take away what killed processes left in workspaces."""
        await asyncio.to_thread(self._tidy_all)

    def _tidy_all(self) -> None:
        for notes in self._rooms.all_notes():
            self._tidy(notes)

    def _set_up(self, profile: Profile) -> _SetUp:
        emptied = self._scratches.enter(profile.scratch) if profile.scratch else 0
        try:
            planned, held = self._planned(profile)
        except BaseException:
            self._leave(profile)
            raise
        return planned, held, emptied

    def _planned(self, profile: Profile) -> tuple[Plan, Placeholders]:
        """Looked at and held. A command that ends takes its empty directories along, and one that begins may have just
        looked at them: it looks again."""
        for _ in range(LOOKS):
            held = Placeholders(self._rooms.notes(profile.workspace), self._rooms.locks())
            try:
                planned = plan(profile, self._own())
                open_ones = self._under_way.theirs(profile.trees)
                refused = held.make(planned.absent, planned.covered)
                return planned.without(refused | open_ones), held
            except (Moved, FileNotFoundError) as error:
                moved = str(error.args[0] if isinstance(error, Moved) else error.filename or profile.workspace)
                if not os.path.isdir(profile.workspace):
                    raise FileNotFoundError(errno.ENOENT, "No such file or directory", profile.workspace) from None
        raise Busy(f"{moved} comes and goes while a command is being prepared.", next_step="Try again.")

    def _own(self) -> Own:
        hidden = (*self._hidden, self._rooms.base)
        return Own(self._environment, self._home, hidden, self._writable, its_places())

    def _words(
        self,
        planned: Plan,
        cwd: str,
        environment: Mapping[str, str],
        limits: Sequence[tuple[str, int]],
        *,
        network: bool,
        tell: bool = False,
    ) -> list[str]:
        tool = self._tool = self._tool or found_tool(self._environment)
        assert tool is not None, "only asked for where the state says that it works"
        words = [tool.path, *arguments(tool, planned.mounts, cwd, network=network, blank=self._rooms.blank())]
        words += ["--", *self._launch(), *(f"write={place}" for place in ("/dev", *planned.writable))]
        words += [f"limit={name}:{soft}" for name, soft in limits]
        words += _unset(environment)
        return [*words, "tell"] if tell else words

    def _launch(self) -> tuple[str, ...]:
        if not self._launcher:
            with open(os.path.join(os.path.dirname(__file__), "launcher.py"), encoding="utf-8") as file:
                self._launcher = (bare_interpreter(), "-I", "-S", "-c", file.read())
        return self._launcher

    def _probe(self) -> Probed:
        if not self._enabled:
            why = "The sandbox is switched off in config.toml."
            return Probed(State(False, why=why, fix='Remove `mode = "off"` from [sandbox].'))
        return probed(self._environment, self._look_home)

    def _look_home(self, tool: Tool, workspace: str) -> list[str]:
        """The real profile around a look at our own home."""
        self._tool = tool
        profile = Profile(workspace)
        words = self._words(plan(profile, self._own()), workspace, {}, (), network=False, tell=True)
        look = ("/bin/sh", "-c", 'ls -A -- "$1" 2>&-; exit 0', "sh", self._home or self._rooms.base)
        return [*words, "--", *look]


def _unset(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Python sets this one where no language is set; the command should not see that."""
    return () if "LC_CTYPE" in environment else ("unset=LC_CTYPE",)
