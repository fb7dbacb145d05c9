"""The tool `shell`: one command line, its output as it comes, its end in words; or its start, when it shall go on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from quintet.domain.errors import Drifted, Invalid
from quintet.domain.ids import new_id
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Confine, Effect, Prepared, ToolOutcome, ToolSpec
from quintet.domain.turn import Mode
from quintet.tools.arguments import Arguments, checked, digest, failed, one_line, os_words, plain
from quintet.tools.shell_profile import (
    UNCONFINED,
    ShellSettings,
    confined_note,
    missing_note,
    network,
    why_unconfined,
    writable,
)
from quintet.tools.shell_words import block, outcome
from quintet.workspace.background import Background
from quintet.workspace.child import Child, Ended, Receiver
from quintet.workspace.confined_run import DRIFTED, run_confined
from quintet.workspace.environment import child_environment, find_program
from quintet.workspace.output import Decoder, Kept, Live
from quintet.workspace.paths import PathGuard
from quintet.workspace.sandbox.profile import Profile
from quintet.workspace.sandbox.wall import Sandbox

if TYPE_CHECKING:
    from quintet.workspace.command_digest import Bound

TIMEOUT_S = 120.0
TIMEOUT_MOST_S = 600.0
BACKGROUND_S = 3_600.0
BACKGROUND_MOST_S = 86_400.0
COMMAND_LENGTH = 100_000
OUTPUT_LIMIT = 256 * 1024 * 1024  # bytes; whoever writes more is ended

SPEC = ToolSpec(
    "shell",
    "Run a shell command in the working directory and return its output. Nobody can type into it. It is ended after "
    "the timeout, and with it everything it started. What shall go on, a server say, is started with "
    "background: true; look at it with shell_output, end it with shell_stop.",
    {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command line."},
            "network": {
                "type": "boolean",
                "description": "It needs the network; the person is told.",
            },
            "background": {
                "type": "boolean",
                "description": "Return at once with an id; the command goes on.",
            },
            "description": {"type": "string", "description": "A few words about one in the background, for people."},
            "timeout_s": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": BACKGROUND_MOST_S,
                "description": "Seconds it may take: 120 unless said, 600 at most; in the background 3600 and 86400.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    Effect.EXECUTE,
)


class ShellArguments(Arguments, frozen=True):
    command: Annotated[str, Meta(min_length=1, max_length=COMMAND_LENGTH)]
    timeout_s: Annotated[float, Meta(gt=0, le=BACKGROUND_MOST_S)] | None = None
    network: bool = False
    background: bool = False
    description: Annotated[str, Meta(max_length=1_000)] = ""

    @property
    def limit_s(self) -> float:
        return self.timeout_s or (BACKGROUND_S if self.background else TIMEOUT_S)


class ShellTool:
    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        sandbox: Sandbox | None = None,
        guard: PathGuard | None = None,
        background: Background | None = None,
        settings: ShellSettings | None = None,
    ) -> None:
        self._environment = os.environ if environment is None else environment
        self._sandbox = sandbox or Sandbox(self._environment)
        self._guard = guard or PathGuard()
        self._background = background or Background()
        self._settings = settings or ShellSettings()

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = _checked(arguments)
        normal = plain(given)
        state = await self._sandbox.state()
        confined = state.works and scope.confine is not Confine.OFF
        reach = network(scope.mode, self._settings, asked=given.network)
        unconfined = "" if confined else why_unconfined(state, scope.confine)
        if confined:
            self._sandbox.refuse(self._guard.workspace(scope.cwd))  # before anybody is asked or anything put aside
            notes = [confined_note(scope.mode, scope.confine, reach, asked=given.network)]
            notes += map(missing_note, self._sandbox.missing())
            if writable(scope.mode, scope.confine):
                notes += [f"writes {place}, too" for place in self._guard.standing(scope.directories, scope.cwd)]
        else:
            notes = [f"{UNCONFINED} {unconfined}"]
        if given.background:
            notes.append(f"goes on in the background for up to {given.limit_s:g} s")
        return Prepared(
            title=one_line(f"run {given.command.strip()}"),
            arguments=normal,
            command=given.command,
            cwd=scope.cwd,
            digest=digest("shell", normal, (await self._bound(given.command, scope.cwd, scope.directories)).digest),
            notes=tuple(notes),
            confined=confined,
            unconfined=unconfined,
            scripts=await self._scripts(given.command, scope.cwd, scope.directories),
            network=confined and given.network and scope.mode is Mode.ASK and reach != "off",
        )

    async def _bound(self, command: str, cwd: str, added: Sequence[str]) -> Bound:
        """What a yes is bound to: the directory, the names the command sees, and the scripts it runs as they are."""
        from quintet.workspace.command_digest import bound_to  # brings the parser along: with the first command

        names = child_environment(self._environment, "")
        return await asyncio.to_thread(lambda: bound_to(command, cwd, names, *self._trees(cwd, added)))

    async def _scripts(self, command: str, cwd: str, added: Sequence[str]) -> tuple[str, ...]:
        from quintet.workspace.command_digest import script_digests

        return await asyncio.to_thread(lambda: script_digests(command, cwd, *self._trees(cwd, added)))

    def _trees(self, cwd: str, added: Sequence[str]) -> tuple[str, ...]:
        return (self._guard.workspace(cwd), *self._guard.standing(added, cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = _checked(prepared.arguments)
        bound = await self._bound(given.command, prepared.cwd, context.directories)
        if prepared.digest != digest("shell", prepared.arguments, bound.digest):
            raise Drifted(DRIFTED)
        child = replace(self._child(given, prepared, context), scripts=bound.scripts)
        profile = self._profile(prepared, context) if prepared.confined else None
        try:
            if given.background:
                return await self._start(given, child, profile, context)
            return await self._wait_for(given.command, child, profile, context)
        except OSError as error:
            return failed(os_words(error, prepared.cwd))

    async def _wait_for(self, command: str, child: Child, profile: Profile | None, context: ToolContext) -> ToolOutcome:
        decoder, kept, live = Decoder(), Kept(), Live(context.emit_output)

        def take(stream: str, text: str) -> None:
            kept.add(text)
            live.add(stream, text)

        try:
            ended = await self._run(child, profile, lambda stream, data: take(stream, decoder.text(stream, data)))
        finally:
            for stream, text in decoder.rest():
                take(stream, text)
            live.close()
        root = profile.workspace if profile and profile.writable else ""
        return outcome(command, child, ended, kept.text(), root=root, missing=self._sandbox.missing() if root else ())

    async def _start(
        self, given: ShellArguments, child: Child, profile: Profile | None, context: ToolContext
    ) -> ToolOutcome:
        description = one_line(given.description.strip())
        name = await self._background.start(
            context.thread,
            given.command,
            child,
            lambda receive, started: self._run(child, profile, receive, started),
            description,
        )
        text = (
            f"Started in the background as {name}, for at most {child.timeout_s:g} s. "
            f"You are told of its end. See its output with shell_output, end it with shell_stop."
        )
        shown = block(given.command, None) | {"task": name}
        if description:
            shown["description"] = description
        return ToolOutcome(text, message=f"runs in the background as {name}", display=(shown,))

    async def _run(
        self, child: Child, profile: Profile | None, receive: Receiver, started: Callable[[], None] = lambda: None
    ) -> Ended:
        return await run_confined(self._sandbox, child, profile, self._settings.caps, receive, started)

    def _child(self, given: ShellArguments, prepared: Prepared, context: ToolContext) -> Child:
        # Unique whatever the provider called the call: processes are found and ended by this name.
        environment = child_environment(self._environment, f"{context.thread}:{context.call_id}:{new_id('cal')}")
        shell = find_program("bash", environment) or "/bin/sh"
        argv = (shell, "-c", "--", given.command)
        return Child(argv, prepared.cwd, environment, given.limit_s, OUTPUT_LIMIT, self._settings.caps)

    def _profile(self, prepared: Prepared, context: ToolContext) -> Profile:
        """As the turn is now, which may be stricter than when the call was prepared."""
        return Profile(
            self._guard.workspace(context.cwd),
            writable=writable(context.mode, context.confine),
            network=network(context.mode, self._settings, asked=prepared.network),
            scratch=self._sandbox.scratch(context.thread),
            added=self._guard.standing(context.directories, context.cwd),
        )


def _checked(arguments: dict[str, Any]) -> ShellArguments:
    given = checked("shell", arguments, ShellArguments)
    if "\0" in given.command or not given.command.strip():
        raise Invalid("shell: a command needs words and cannot hold a NUL byte.")
    if not given.background and given.limit_s > TIMEOUT_MOST_S:
        raise Invalid(
            f"shell: a command that is waited for may take at most {TIMEOUT_MOST_S:g} s.",
            next_step="Start it with background: true.",
        )
    return given
