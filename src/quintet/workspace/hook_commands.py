"""The commands of hooks: JSON in, an exit code and perhaps JSON out. Runs them as every command is run, in the sandbox
and within its caps. What a command says is read here; what follows from it is the engine's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from quintet.domain.errors import Drifted, QuintetError
from quintet.domain.hook import ALLOWED, REASON_AT_MOST, Hook, HookScope, HookVerdict, blocked
from quintet.domain.ids import new_id
from quintet.workspace.child import Cause, Child, Ended, Scripts, died_of
from quintet.workspace.command_digest import Bound, bound_to
from quintet.workspace.confined_run import DRIFTED, run_confined
from quintet.workspace.environment import child_environment, find_program
from quintet.workspace.output import Decoder, Kept
from quintet.workspace.sandbox.limits import Caps
from quintet.workspace.sandbox.plan import TEMPORARY
from quintet.workspace.sandbox.profile import Profile
from quintet.workspace.sandbox.wall import Sandbox

OUTPUT_LIMIT = 1024 * 1024  # bytes; whoever writes more is ended
ANSWER_AT_MOST = 64 * 1024  # characters of stdout that are read as an answer
BLOCKS = 2  # the exit code
# A walled command's own stdin leads to its warden, so what it is given lies in its temporary directory.
_FED = 'exec "$2" -c "$3" <"$1"'
_SAYS_BLOCK = frozenset({"block", "deny"})

ProfileOf = Callable[[HookScope, str, str], Profile]  # for a workspace, with a temporary directory


class HookCommands:
    """Plays domain.ports.Hooks. `loose` says that the person lets commands run where no sandbox works."""

    def __init__(
        self,
        environment: Mapping[str, str],
        sandbox: Sandbox,
        profile_of: ProfileOf,
        workspace_of: Callable[[str], str],
        caps: Caps,
        *,
        loose: bool = False,
    ) -> None:
        self._environment = environment
        self._sandbox = sandbox
        self._profile_of = profile_of
        self._workspace_of = workspace_of
        self._caps = caps
        self._loose = loose

    async def run(self, hook: Hook, given: dict[str, Any], scope: HookScope, *, agreed: str = "") -> HookVerdict:
        kept = {"stdout": Kept(ANSWER_AT_MOST, 1), "stderr": Kept(REASON_AT_MOST - 600, 500)}
        try:
            scripts = await self._scripts(hook, scope.cwd, agreed) if agreed else ()
            ended = await self._ended(hook, given, scope, kept, scripts)
        except QuintetError as error:
            return HookVerdict(problem=f"it could not be run: {error.line()}")
        except OSError as error:
            return HookVerdict(problem=f"it could not be run: {error.strerror or error}")
        return _verdict(hook, ended, kept)

    async def digest(self, hook: Hook, cwd: str) -> str:
        return (await asyncio.to_thread(self._bound, hook, cwd)).digest

    def _bound(self, hook: Hook, cwd: str) -> Bound:
        row = msgspec.json.encode((hook.event, hook.matcher.text, hook.command, hook.timeout_s))
        files = bound_to(hook.command, cwd, (), self._workspace_of(cwd))
        return Bound(hashlib.sha256(row + files.digest.encode()).hexdigest(), files.scripts)

    async def _scripts(self, hook: Hook, cwd: str, agreed: str) -> Scripts:
        """Those that were agreed to, to be looked at once more when the command begins."""
        bound = await asyncio.to_thread(self._bound, hook, cwd)
        if bound.digest != agreed:
            raise Drifted(DRIFTED)
        return bound.scripts

    async def _ended(
        self, hook: Hook, given: dict[str, Any], scope: HookScope, kept: Mapping[str, Kept], scripts: Scripts
    ) -> Ended:
        state = await self._sandbox.state()
        if not state.works and (hook.of_project or not self._loose):
            allowed = "" if hook.of_project else " To run hooks without one, set `[sandbox] required = false`."
            raise OSError(0, f"no sandbox works here. {state.why} {state.fix}{allowed}")
        workspace = self._workspace_of(scope.cwd)
        directory = self._sandbox.scratch(f"hooks of {scope.thread}")
        name = new_id("cal")
        file = os.path.join(directory, name)
        decoder = Decoder()

        def receive(stream: str, data: bytes) -> None:
            kept[stream].add(decoder.text(stream, data))

        await asyncio.to_thread(_write, file, msgspec.json.encode(given))
        try:
            profile = None
            if state.works:
                self._sandbox.refuse(workspace)
                profile = self._profile_of(scope, workspace, directory)
            inside = f"{TEMPORARY}/{name}" if profile else file
            child = replace(self._child(hook, scope, inside), scripts=scripts)
            return await run_confined(self._sandbox, child, profile, self._caps, receive)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(file)

    def _child(self, hook: Hook, scope: HookScope, file: str) -> Child:
        environment = child_environment(self._environment, f"{scope.thread}:hook:{new_id('cal')}")
        shell = find_program("bash", environment) or "/bin/sh"
        argv = ("/bin/sh", "-c", _FED, "hook", file, shell, hook.command)
        return Child(argv, scope.cwd, environment, hook.timeout_s, OUTPUT_LIMIT, self._caps)


def _write(file: str, data: bytes) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as stream:
        stream.write(data)


def _verdict(hook: Hook, ended: Ended, kept: Mapping[str, Kept]) -> HookVerdict:
    if ended.cause is Cause.TIMEOUT:
        return HookVerdict(problem=f"it was ended after {hook.timeout_s:g} s")
    if ended.cause is Cause.FLOOD:
        return HookVerdict(problem=f"it was ended for writing more than {OUTPUT_LIMIT} bytes")
    if ended.cause is Cause.NO_WALL:
        return HookVerdict(problem=f"its sandbox could not be set up: {ended.wall_words}")
    if ended.cause is not Cause.EXITED:
        return HookVerdict(problem=f"it was ended for taking too much: {ended.cause}")
    if ended.code == BLOCKS:
        return blocked(kept["stderr"].text(), hook.source)
    if ended.code != 0:
        said = " ".join(kept["stderr"].text().split())[:200]
        return HookVerdict(problem=f"{died_of(ended.code)}{f': {said}' if said else ''}")
    return _answer(hook, kept["stdout"])


def _answer(hook: Hook, kept: Kept) -> HookVerdict:
    """Words on stdout are nobody's business; an object that says deny or block is."""
    text = kept.text().strip()
    if not text.startswith("{"):
        return ALLOWED
    if kept.characters > ANSWER_AT_MOST:
        return HookVerdict(problem=f"its answer is longer than {ANSWER_AT_MOST} characters and was not read")
    try:
        said = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        return HookVerdict(problem=f"its answer is not JSON: {error}")
    inner = said.get("hookSpecificOutput")
    inner = inner if isinstance(inner, dict) else {}
    decisions = (inner.get("permissionDecision"), said.get("decision"), said.get("action"))
    if not any(isinstance(word, str) and word in _SAYS_BLOCK for word in decisions):
        return ALLOWED
    reason = inner.get("permissionDecisionReason") or said.get("reason") or ""
    return blocked(str(reason), hook.source)
