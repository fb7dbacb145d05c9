"""Commands that the person wrote as Python files of their own: run one at a time in a child, in the sandbox and within
its caps, as every command is. Nothing of them is ever loaded into this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from quintet.domain.errors import Denied, ProviderFailed, TimedOut
from quintet.domain.ids import new_id
from quintet.workspace.child import Cause, Child, died_of
from quintet.workspace.confined_run import run_confined
from quintet.workspace.environment import child_environment
from quintet.workspace.handles import open_plain
from quintet.workspace.interpreter import bare_interpreter
from quintet.workspace.output import Decoder, Kept
from quintet.workspace.sandbox.limits import Caps
from quintet.workspace.sandbox.plan import TEMPORARY
from quintet.workspace.sandbox.profile import Profile
from quintet.workspace.sandbox.wall import Sandbox

TIMEOUT_S = 30.0
OUTPUT_LIMIT = 1024 * 1024  # bytes; whoever writes more is ended
TEXT_AT_MOST = 256 * 1024  # characters that are passed on
# What the child runs. The file's text comes with the request, so the child needs to see no directory of the person.
HOST = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    asked = json.load(file)
module = {"__name__": "kward_plugin", "__file__": asked["path"]}
exec(compile(asked["source"], asked["path"], "exec"), module)
said = module[asked["function"]](*asked["arguments"])
sys.stdout.flush()
with open(sys.argv[1] + ".out", "w", encoding="utf-8") as file:
    json.dump(said, file)
"""


class Said(msgspec.Struct, frozen=True):
    printed: str
    returned: Any


class PluginCommands:
    """`loose` says that the person lets commands run where no sandbox works."""

    def __init__(
        self,
        environment: Mapping[str, str],
        sandbox: Sandbox,
        profile_of: Callable[[str, str], Profile],
        workspace_of: Callable[[str], str],
        caps: Caps,
        *,
        loose: bool = False,
    ) -> None:
        self._environment = environment
        self._sandbox = sandbox
        self._profile_of = profile_of  # for a workspace, with a temporary directory
        self._workspace_of = workspace_of
        self._caps = caps
        self._loose = loose

    async def call(self, path: str, source: str, function: str, arguments: list[Any], *, cwd: str, whose: str) -> Said:
        """What the function gave, and what it printed. `whose` names what it is run for."""
        asked = {"path": path, "source": source, "function": function, "arguments": arguments}
        state = await self._sandbox.state()
        if not state.works and not self._loose:
            raise Denied(
                f"Plugins run in a sandbox, and none works here. {state.why} {state.fix}",
                next_step="To run them without one, set `[sandbox] required = false`.",
            )
        directory = self._sandbox.scratch(f"plugins of {whose}")
        name = new_id("cal")
        file = os.path.join(directory, name)
        await asyncio.to_thread(_write, file, msgspec.json.encode(asked))
        try:
            profile = self._profile_of(self._workspace_of(cwd), directory) if state.works else None
            inside = f"{TEMPORARY}/{name}" if profile else file
            printed = await self._run(inside, cwd, whose, profile, os.path.basename(path))
            return Said(printed, await asyncio.to_thread(_answer, f"{file}.out"))
        finally:
            for left in (file, f"{file}.out"):
                with contextlib.suppress(OSError):
                    os.unlink(left)

    async def _run(self, file: str, cwd: str, whose: str, profile: Profile | None, name: str) -> str:
        kept = {"stdout": Kept(TEXT_AT_MOST, 1), "stderr": Kept(1_000, 1_000)}
        decoder = Decoder()

        def receive(stream: str, data: bytes) -> None:
            kept[stream].add(decoder.text(stream, data))

        environment = child_environment(self._environment, f"{whose}:plugin:{new_id('cal')}")
        argv = (bare_interpreter(), "-I", "-c", HOST, file)
        child = Child(argv, cwd, environment, TIMEOUT_S, OUTPUT_LIMIT, self._caps)
        ended = await run_confined(self._sandbox, child, profile, self._caps, receive)
        if ended.cause is Cause.TIMEOUT:
            raise TimedOut(f"The plugin {name} was ended after {TIMEOUT_S:g} s.", next_step="Make it quicker.")
        if ended.cause is not Cause.EXITED or ended.code:
            lines = kept["stderr"].text().strip().splitlines()
            why = lines[-1] if lines else died_of(ended.code) if ended.cause is Cause.EXITED else str(ended.cause)
            raise ProviderFailed(f"The plugin {name} failed: {why}", next_step="Correct it and try again.")
        return kept["stdout"].text()


def _write(file: str, data: bytes) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as stream:
        stream.write(data)


def _answer(file: str) -> Any:
    """The plugin may have put anything there, a pipe that nobody writes to as well."""
    try:
        with open(open_plain(file), "rb") as stream:
            return msgspec.json.decode(stream.read(OUTPUT_LIMIT))
    except (OSError, msgspec.DecodeError):
        return None
