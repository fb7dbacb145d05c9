"""The tool `shell`: one command line, its output as it comes, its end in words."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from quintet.domain.errors import Drifted, Invalid
from quintet.domain.ids import new_id
from quintet.domain.item import ResultStatus
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Confine, Effect, Prepared, ToolOutcome, ToolSpec
from quintet.domain.turn import Mode
from quintet.tools.arguments import Arguments, checked, digest, failed, one_line, os_words, plain
from quintet.workspace.environment import child_environment, find_program
from quintet.workspace.output import Decoder, Kept, Live
from quintet.workspace.paths import PathGuard
from quintet.workspace.processes import Cause, Child, Ended, run_child
from quintet.workspace.sandbox.profile import Profile
from quintet.workspace.sandbox.wall import Sandbox

TIMEOUT_S = 120.0
TIMEOUT_MOST_S = 600.0
COMMAND_LENGTH = 100_000
OUTPUT_LIMIT = 256 * 1024 * 1024  # bytes; whoever writes more is ended

SPEC = ToolSpec(
    "shell",
    "Run a shell command in the working directory and return its output. Nobody can type into it. It is ended after "
    "the timeout, with everything it started.",
    {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command line."},
            "network": {
                "type": "boolean",
                "description": "It needs the network; the person is told.",
            },
            "timeout_s": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": TIMEOUT_MOST_S,
                "description": "Seconds it may take, 120 unless said.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    Effect.EXECUTE,
)
UNCONFINED = "NOT SANDBOXED: it can do whatever you can"
WITH_NETWORK = "with network"


class ShellArguments(Arguments, frozen=True):
    command: Annotated[str, Meta(min_length=1, max_length=COMMAND_LENGTH)]
    timeout_s: Annotated[float, Meta(gt=0, le=TIMEOUT_MOST_S)] = TIMEOUT_S
    network: bool = False


class ShellTool:
    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        sandbox: Sandbox | None = None,
        guard: PathGuard | None = None,
    ) -> None:
        self._environment = os.environ if environment is None else environment
        self._sandbox = sandbox or Sandbox(self._environment)
        self._guard = guard or PathGuard()

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("shell", arguments, ShellArguments)
        if "\0" in given.command or not given.command.strip():
            raise Invalid("shell: a command needs words and cannot hold a NUL byte.")
        normal = plain(given)
        state = await self._sandbox.state()
        confined = state.works and scope.confine is not Confine.OFF
        notes = [] if confined else [UNCONFINED]
        if confined and given.network and scope.mode is not Mode.ALLOW:
            notes.append(WITH_NETWORK)
        return Prepared(
            title=one_line(f"run {given.command.strip()}"),
            arguments=normal,
            command=given.command,
            cwd=scope.cwd,
            digest=digest("shell", normal, await self._binding(given.command, scope.cwd)),
            notes=tuple(notes),
            confined=confined,
            network=given.network,
        )

    async def _binding(self, command: str, cwd: str) -> str:
        """What a yes is bound to: the directory, the names the command sees, and the scripts it runs as they are."""
        from quintet.workspace.command_digest import command_digest  # brings the parser along: with the first command

        names = child_environment(self._environment, "")
        return await asyncio.to_thread(command_digest, command, cwd, names, self._guard.workspace(cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("shell", prepared.arguments, ShellArguments)
        if prepared.digest != digest("shell", plain(given), await self._binding(given.command, prepared.cwd)):
            raise Drifted("A script that this command runs, or its environment, was changed.")
        # Unique whatever the provider called the call: processes are found and ended by this name.
        environment = child_environment(self._environment, f"{context.thread}:{context.call_id}:{new_id('cal')}")
        shell = find_program("bash", environment) or "/bin/sh"
        decoder, kept, live = Decoder(), Kept(), Live(context.emit_output)

        def take(stream: str, text: str) -> None:
            kept.add(text)
            live.add(stream, text)

        argv = (shell, "-c", "--", given.command)
        receive = lambda stream, data: take(stream, decoder.text(stream, data))  # noqa: E731
        try:
            if prepared.confined:
                profile = self._profile(prepared, context)
                async with self._sandbox.confined(argv, prepared.cwd, environment, profile) as inside:
                    child = Child(inside.argv, prepared.cwd, inside.environment, given.timeout_s, OUTPUT_LIMIT)
                    ended = await run_child(child, receive)
            else:
                child = Child(argv, prepared.cwd, environment, given.timeout_s, OUTPUT_LIMIT)
                ended = await run_child(child, receive)
        except OSError as error:
            return failed(os_words(error, prepared.cwd))
        finally:
            for stream, text in decoder.rest():
                take(stream, text)
            live.close()
        return _outcome(given, ended, kept)

    def _profile(self, prepared: Prepared, context: ToolContext) -> Profile:
        strict = context.mode is Mode.READ_ONLY or context.confine is Confine.READ_ONLY
        network = context.mode is Mode.ALLOW or (prepared.network and context.mode is Mode.ASK)
        return Profile(self._guard.workspace(context.cwd), writable=not strict, network="on" if network else "off")


def _outcome(given: ShellArguments, ended: Ended, kept: Kept) -> ToolOutcome:
    words = _end_in_words(given, ended)
    notes = [] if ended.cause is Cause.EXITED and not ended.code else [words]
    if ended.left_behind:
        plural = "es it had" if ended.left_behind > 1 else " it had"
        notes.append(f"{ended.left_behind} process{plural} left running in the background ended with it")
    text = kept.text() or "(no output)"
    if notes:
        text = f"{text.removesuffix(chr(10))}\n[{'; '.join(notes)}]"
    good = ended.cause is Cause.EXITED and not ended.code
    return ToolOutcome(
        text,
        ResultStatus.OK if good else ResultStatus.ERROR,
        words,
        display=({"type": "shell", "command": given.command, "exit_code": ended.code},),
    )


def _end_in_words(given: ShellArguments, ended: Ended) -> str:
    if ended.cause is Cause.TIMEOUT:
        return f"ended after its limit of {given.timeout_s:g} s"
    if ended.cause is Cause.FLOOD:
        return f"ended because it wrote more than {OUTPUT_LIMIT // 1024 // 1024} MiB"
    if ended.code < 0:
        try:
            return f"killed by {signal.Signals(-ended.code).name}"
        except ValueError:
            return f"killed by signal {-ended.code}"
    return f"exit code {ended.code}"
