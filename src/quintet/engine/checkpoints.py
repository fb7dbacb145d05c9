"""Checkpoints around calls: what a call could destroy is put aside before it, what it changed is written down after it.

Knows when and for whom; how files are kept and compared is the history's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence

import msgspec

from quintet.domain.checkpoint import Compared, FileChange, FileState, Secured
from quintet.domain.errors import STORAGE_ERRORS, NotFound, QuintetError, as_quintet_error
from quintet.domain.event import CheckpointMade, CheckpointSettled, Event, FilesRestored
from quintet.domain.item import ToolCall, tool_of
from quintet.domain.ports import FileHistory
from quintet.domain.tool import Effect, Prepared
from quintet.engine.changes import inside, story_of
from quintet.engine.diffs import Diffs
from quintet.engine.feed import Feed
from quintet.engine.running import RunningTurn
from quintet.engine.stories import BACKGROUND

HASTE_S = 0.3  # what a cancelled turn waits at most for its calls to be compared
NAMELESS = "a file whose name holds a secret was changed; it is not recorded"
BESIDE = "what commands do in directories that were added to the workspace is not recorded"
DAY_MS = 86_400_000
BEAT_S = 0.1  # how often a call is said to run still


class Guarded:
    """A call under a checkpoint, while it runs."""

    def __init__(self, call: ToolCall, running: RunningTurn, secured: Secured, paths: Sequence[str] | None) -> None:
        self.call_id = call.call_id
        self.thread, self.turn = running.thread.id, running.lease.turn
        self.outermost = [above.turn.id for above in running.upwards()][-1]  # the turn that all of this works for
        self.secured = secured
        self.exact = paths is not None
        self.paths = frozenset(os.path.join(secured.directory, path) for path in paths or ())
        self.made = CheckpointMade(call.call_id, tool_of(call), secured, self.exact)
        self.seq = 0  # of the fact, once it is committed
        self.background = False
        self.comparing: asyncio.Task[Compared] | None = None
        self.beating: asyncio.Task[None] | None = None


class Checkpoints:
    def __init__(self, feed: Feed, history: FileHistory, diffs: Diffs, workspace_of: Callable[[str], str]) -> None:
        self.diffs = diffs
        self._feed = feed
        self._history = history
        self._workspace_of = workspace_of
        self._living: list[Guarded] = []

    async def begin(self, call: ToolCall, effect: Effect, prepared: Prepared, running: RunningTurn) -> Guarded | None:
        """Put aside what this call could destroy; None when it cannot change files. The fact is the caller's to say,
        with the intent and before anything runs."""
        if effect is Effect.WRITE and prepared.paths:
            settings = running.thread.settings
            directory, paths = _base((self._workspace_of(settings.cwd), *settings.directories), prepared.paths)
        elif effect is Effect.EXECUTE:
            directory, paths = self._workspace_of(prepared.cwd or running.thread.settings.cwd), None
        else:
            return None
        try:
            secured = await self._history.secure(directory, paths)
        except STORAGE_ERRORS:
            raise
        except Exception as error:
            why = f"nothing could be put aside before it ({as_quintet_error(error).message})"
            secured = Secured(directory, partial=(why,))
        if paths is None and running.thread.settings.directories:
            secured = msgspec.structs.replace(secured, partial=(*secured.partial, BESIDE))
        guarded = Guarded(call, running, secured, paths)
        guarded.background = prepared.arguments.get("background") is True
        self._living.append(guarded)
        guarded.beating = asyncio.ensure_future(self._beat(guarded))
        return guarded

    async def _beat(self, guarded: Guarded) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            # One that fails is not told: without it more of what a killed call did is taken for somebody else's work.
            with contextlib.suppress(OSError, QuintetError):
                await self._history.still_runs(guarded.secured)

    def over(self, guarded: Guarded) -> None:
        if guarded.beating is not None:
            guarded.beating.cancel()
        if guarded in self._living:
            self._living.remove(guarded)

    async def settle(self, guarded: Guarded, within_s: float | None = None) -> CheckpointSettled | None:
        """What the call has changed; None when that could not be found out in time: then whoever looks compares."""
        if guarded.comparing is None:
            if guarded.beating is not None:
                guarded.beating.cancel()  # it has ended: what changes from here on is not its doing
            guarded.comparing = asyncio.ensure_future(self._history.compare(guarded.secured))
            guarded.comparing.add_done_callback(_seen)
        done, _ = await asyncio.wait((guarded.comparing,), timeout=within_s)
        if not done:
            return None
        try:
            compared = guarded.comparing.result()
        except STORAGE_ERRORS:
            raise
        except Exception as error:
            why = f"what it changed could not be found out ({as_quintet_error(error).message})"
            compared = Compared(partial=(why,))
        changes, partial = await self._own(guarded, compared.changes), list(compared.partial)
        named = [c for c in changes if self._feed.mask(c.path) == c.path]
        if len(named) < len(changes):
            partial.append(NAMELESS)
        if guarded.background:
            partial.append(BACKGROUND)
        every = tuple(dict.fromkeys((*guarded.secured.partial, *partial)))
        made = guarded.made
        return CheckpointSettled(
            made.call_id, made.name, guarded.secured.directory, tuple(named), every, exact=guarded.exact
        )

    async def _own(self, guarded: Guarded, changes: Sequence[FileChange]) -> list[FileChange]:
        """Without what exact calls of others did meanwhile; marked as shared where another command may have done it."""
        if guarded.exact or not changes:
            return list(changes)
        others = await self._meanwhile(guarded)
        own = []
        for change in changes:
            path = os.path.join(guarded.secured.directory, change.path)
            verdicts = {other.claims(path, change.after) for other in others}
            if _THEIRS not in verdicts:
                own.append(msgspec.structs.replace(change, shared=_PERHAPS in verdicts))
        return own

    async def _meanwhile(self, guarded: Guarded) -> list[_Other]:
        """Every other call that ran, here or in another process, at some time while this one did."""
        others = {
            (g.turn, g.call_id): _Other(
                g.secured.directory, together=g.outermost == guarded.outermost, paths=g.paths if g.exact else None
            )
            for g in self._living
        }
        for event in await self._feed.journal.open_checkpoints():
            if isinstance(event.payload, CheckpointMade):
                here = _Other(event.payload.secured.directory, together=await self._together(event, guarded))
                others.setdefault((event.turn, event.payload.call_id), here)
        for event in await self._feed.journal.checkpoints(after=guarded.seq):
            settled = event.payload
            if isinstance(settled, CheckpointSettled):
                others[event.turn, settled.call_id] = _Other(
                    settled.directory, together=await self._together(event, guarded), settled=settled
                )
        others.pop((guarded.turn, guarded.call_id), None)
        return list(others.values())

    async def _together(self, event: Event, guarded: Guarded) -> bool:
        """Whether both work for the same turn of a person's. In one tree not all do: somebody may speak with a
        subagent while its parent works."""
        turn = event.turn
        while turn != guarded.outermost:
            try:
                turn = (await self._feed.journal.turn(turn)).for_turn
            except NotFound:  # lost with damage
                return False
            if not turn:
                return False
        return True

    async def sweep(self, days: float) -> tuple[int, int]:
        """Let go of contents no checkpoint needs any more. (how many, their bytes)"""
        journal = self._feed.journal
        needed_since = self._feed.clock.now_ms() - int(days * DAY_MS)
        living = {(e.turn, e.seq) for e in await journal.open_checkpoints()}
        digests: set[str] = set()
        manifests: set[str] = set()
        by_thread: dict[str, list[Event]] = {}
        for event in await journal.checkpoints():
            if event.at_ms >= needed_since or (event.turn, event.seq) in living:
                by_thread.setdefault(event.thread, []).append(event)
        for events in by_thread.values():
            story = story_of(events)
            manifests |= {c.secured.manifest for c in story.calls if not c.settled and c.secured.manifest}
            for event in events:
                if isinstance(event.payload, CheckpointSettled | FilesRestored):
                    digests |= {s.digest for c in event.payload.changes for s in (c.before, c.after) if s.kept}
        return await self._history.sweep(digests, manifests)


_THEIRS, _PERHAPS, _NOT = "theirs", "perhaps", "not"


class _Other:
    """Another call that ran meanwhile: exact with its paths, settled with its changes, or a command still under way."""

    def __init__(
        self,
        directory: str,
        *,
        together: bool,
        paths: frozenset[str] | None = None,
        settled: CheckpointSettled | None = None,
    ) -> None:
        self._directory = directory
        self._together = together  # undone together: whose change it is makes no difference then
        self._paths = paths
        self._settled = settled

    def claims(self, path: str, after: FileState) -> str:
        if not inside(self._directory, path):
            return _NOT
        if self._settled is not None:
            found = [c for c in self._settled.changes if os.path.join(self._directory, c.path) == path]
            if not found:
                return _NOT if not self._settled.partial else self._perhaps()
            exactly = self._settled.exact and found[0].after.same_as(after)
            return _THEIRS if exactly else self._perhaps()
        if self._paths is not None:
            return self._perhaps() if path in self._paths else _NOT
        return self._perhaps()

    def _perhaps(self) -> str:
        return _NOT if self._together else _PERHAPS


def _base(roots: Sequence[str], paths: Sequence[str]) -> tuple[str, list[str]]:
    """The directory the paths are told from: the workspace or one that was added to it. Never one further down, as a
    command could put a link in its place, which would then lead an undo elsewhere."""
    held = [next((root for root in roots if inside(root, path)), os.path.dirname(path)) for path in paths]
    directory = os.path.commonpath(held)
    return directory, [os.path.relpath(path, directory) for path in paths]


def _seen(comparing: asyncio.Task[Compared]) -> None:
    """One that nobody waits for any more may fail unheard: its call is compared again by whoever looks."""
    if not comparing.cancelled():
        comparing.exception()
