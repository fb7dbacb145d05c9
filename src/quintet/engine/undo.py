"""Undo: brings back the files a thread changed, as far as they still are what it left, and can be undone itself.

What stands at a path is kept and named in the journal before it is replaced; doing it again after a crash finishes it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from quintet.domain.checkpoint import FileChange, FileKind, FileState
from quintet.domain.errors import NotFound, QuintetError
from quintet.domain.event import Draft, FilesRestored
from quintet.domain.item import ToolCall
from quintet.domain.ports import FileHistory
from quintet.domain.thread import Thread
from quintet.domain.view import ViewReason
from quintet.engine.changes import (
    CHANGED,
    Move,
    Restore,
    by_path,
    moves_of_call,
    moves_of_restore,
    story_of,
    wind_back,
)
from quintet.engine.feed import Feed
from quintet.engine.stories import Stories, partial_words

OTHER = "what stood there was no file, and cannot be made again"
GONE = "what stood there was not kept"
UNKEPT = "what stands there now cannot be put aside first, so replacing it could not be undone"
PAGE = 500


class Brought(msgspec.Struct, frozen=True, omit_defaults=True):
    """A path that is what it was again; one that was not there is removed."""

    path: str  # absolute
    removed: bool = False


class Conflict(msgspec.Struct, frozen=True):
    path: str  # absolute
    why: str


class Undone(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was brought back (or would be), what was left alone and why, and what is not known."""

    thread: str
    keep_through: int
    restored: tuple[Brought, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    partial: tuple[str, ...] = ()
    dry_run: bool = False


class _Plan(msgspec.Struct):
    changes: list[tuple[str, FileChange]] = []  # (directory, from what is there now to what shall be)
    conflicts: list[Conflict] = []


class Undo:
    def __init__(self, feed: Feed, history: FileHistory, stories: Stories) -> None:
        self._feed = feed
        self._history = history
        self._stories = stories

    async def point(self, thread: Thread, turn: str = "", *, force: bool = False) -> int:
        """The item before which to go back: the turn's first, or the last visible turn's that changed files."""
        items = await self._items(thread.id)
        first: dict[str, int] = {}
        for item_turn, ordinal, _ in items:
            first.setdefault(item_turn, ordinal)
        if turn:
            if turn not in first:
                raise NotFound(f"The thread has no turn {turn}.", next_step="`quintet threads show --json` names them.")
            return first[turn] - 1
        story = await self._stories.of(thread.id)
        if force and thread.view.reverted is not None and await self.left_alone(thread.id):
            return thread.view.reverted[0] - 1  # the same once more, with what was left alone
        changing = [c.turn for c in story.calls if c.changes or not c.settled]
        for name in reversed(changing):
            if name in first and not thread.view.is_hidden(first[name]):
                return first[name] - 1
        raise NotFound(
            "Nothing this thread did to files is left to undo.",
            next_step="Name another thread, or undo the last undo with `--redo`.",
        )

    async def revert(self, thread: Thread, keep_through: int, *, force: bool, dry_run: bool = False) -> Undone:
        """Bring back what stood there before every call that came after this item."""
        story = await self._stories.of(thread.id)
        places = {(turn, call): ordinal for turn, ordinal, call in await self._items(thread.id) if call}
        calls = [c for c in story.calls if places.get((c.turn, c.call_id), 0) > keep_through]
        moves = [m for c in calls for m in moves_of_call(c)]
        since = min((c.made for c in calls), default=1 << 62)
        moves += [m for r in story.restores if r.seq > since for m in moves_of_restore(r)]
        undone = await self._bring_back(thread, ViewReason.REVERT, moves, force=force, dry_run=dry_run)
        partial = partial_words(story, calls)
        return msgspec.structs.replace(undone, keep_through=keep_through, partial=partial)

    async def unrevert(self, thread: Thread, *, force: bool, dry_run: bool = False) -> Undone:
        """Undo what was undone since the last turn."""
        moves = [m for r in await self._since_last_turn(thread.id) for m in moves_of_restore(r)]
        undone = await self._bring_back(thread, ViewReason.UNREVERT, moves, force=force, dry_run=dry_run)
        return msgspec.structs.replace(undone, keep_through=thread.last_ordinal)

    async def left_alone(self, thread: str) -> bool:
        """Whether the last undo or redo met with conflicts, and no turn came since."""
        restores = await self._since_last_turn(thread)
        return bool(restores) and bool(restores[-1].fact.conflicts)

    async def _since_last_turn(self, thread: str) -> list[Restore]:
        last, story = await self._last_turn(thread), story_of(await self._feed.journal.checkpoints(thread=thread))
        return [r for r in story.restores if r.fact.after_turn == last]

    async def _bring_back(
        self, thread: Thread, reason: ViewReason, moves: Sequence[Move], *, force: bool, dry_run: bool
    ) -> Undone:
        plan = await self._plan(moves, force=force, keep=not dry_run)
        if not dry_run and (plan.changes or plan.conflicts):
            await self._say(thread.id, reason, plan)
            await self._put(plan)
        back = [Brought(_absolute(d, c), c.after.kind is FileKind.ABSENT) for d, c in plan.changes]
        restored = tuple(sorted(back, key=lambda b: b.path))
        conflicts = tuple(sorted(plan.conflicts, key=lambda c: c.path))
        return Undone(thread.id, 0, restored, conflicts, dry_run=dry_run)

    async def _plan(self, moves: Sequence[Move], *, force: bool, keep: bool) -> _Plan:
        """What would be done to each path. What is to be replaced is put aside on the way."""
        plan, found = _Plan([], []), by_path(moves)
        wanted: dict[str, list[tuple[str, FileState]]] = {}
        for directory, paths in _grouped(found).items():
            states = await self._history.states(directory, [found[p][0].path for p in paths])
            for absolute, now in zip(paths, states, strict=True):
                target, why = wind_back(found[absolute], now, force=force)
                if not target.same_as(now) and (cannot := _unmakeable(target)):
                    target, why = now, cannot
                if why:
                    plan.conflicts.append(Conflict(absolute, why))
                if not target.same_as(now):
                    wanted.setdefault(directory, []).append((absolute, target))
        for directory, targets in wanted.items():
            paths = [found[absolute][0].path for absolute, _ in targets]
            states = await self._history.states(directory, paths, keep=keep)
            for (absolute, target), path, now in zip(targets, paths, states, strict=True):
                again, _ = wind_back(found[absolute], now, force=force)
                if not again.same_as(target):
                    plan.conflicts.append(Conflict(absolute, CHANGED))  # in this very moment
                elif keep and not force and _unmakeable(now):
                    plan.conflicts.append(Conflict(absolute, UNKEPT))
                else:
                    plan.changes.append((directory, FileChange(path, now, target)))
        return plan

    async def _say(self, thread: str, reason: ViewReason, plan: _Plan) -> None:
        """One fact per directory, in one commit, before anything is touched. Busy unless the thread rests."""
        last = await self._last_turn(thread)
        left = tuple(c.path for c in plan.conflicts)
        directories = list(dict.fromkeys(d for d, _ in plan.changes)) or [""]
        facts = [
            FilesRestored(d, reason, last, tuple(c for own, c in plan.changes if own == d), left) for d in directories
        ]
        await self._feed.append([Draft(fact, thread) for fact in facts])

    async def _put(self, plan: _Plan) -> None:
        """What cannot be brought back after all is a conflict too; the others are."""
        absent_first = sorted(
            plan.changes, key=lambda dc: (dc[1].after.kind is not FileKind.ABSENT, -dc[1].path.count("/"))
        )
        for absent in (True, False):
            wanted = [dc for dc in absent_first if (dc[1].after.kind is FileKind.ABSENT) is absent]
            for directory in dict.fromkeys(d for d, _ in wanted):
                changes = [change for own, change in wanted if own == directory]
                for change, error in zip(changes, await self._history.put_all(directory, changes), strict=True):
                    if error is not None:
                        words = error.message if isinstance(error, QuintetError) else (error.strerror or "it failed")
                        plan.conflicts.append(Conflict(_absolute(directory, change), words))
                        plan.changes.remove((directory, change))

    async def _last_turn(self, thread: str) -> str:
        begun = [t.id for t in await self._feed.journal.turns(thread) if t.started_ms]
        return begun[-1] if begun else ""

    async def _items(self, thread: str) -> list[tuple[str, int, str]]:
        """(turn, ordinal, call id or "") of every item."""
        found: list[tuple[str, int, str]] = []
        while page := await self._feed.journal.items(thread, after=found[-1][1] if found else 0, limit=PAGE):
            found += [(i.turn, i.ordinal, i.body.call_id if isinstance(i.body, ToolCall) else "") for i in page]
        return found


def _absolute(directory: str, change: FileChange) -> str:
    return os.path.join(directory, change.path)


def _unmakeable(state: FileState) -> str:
    """Why nobody can make this state again, or nothing."""
    if state.kind is FileKind.OTHER:
        return OTHER
    return GONE if state.kind is not FileKind.ABSENT and not (state.kept or state.git) else ""


def _grouped(found: dict[str, list[Move]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for absolute, moves in found.items():
        groups.setdefault(moves[0].directory, []).append(absolute)
    return groups
