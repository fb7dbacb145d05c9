"""Undo: brings back the files a thread changed, as far as they still are what it left, and can be undone itself.

What stands at a path is kept and named in the journal before it is replaced; doing it again after a crash finishes it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from quintet.domain.checkpoint import FileChange, FileKind, FileState
from quintet.domain.errors import STORAGE_ERRORS, NotFound, QuintetError
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
from quintet.engine.steps import END, Steps, steps_of
from quintet.engine.stories import BACKGROUND, Stories, partial_words

OTHER = "what stood there was no file, and cannot be made again"
GONE = "what stood there was not kept"
UNKEPT = "what stands there now cannot be put aside first, so replacing it could not be undone"
WENT_ON = "A background command went on; what it changed later is not known."
PAGE = 500


class Brought(msgspec.Struct, frozen=True, omit_defaults=True):
    """A path that is what it was again; one that was not there is removed."""

    path: str  # absolute
    removed: bool = False


class Conflict(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str  # absolute
    why: str
    forcible: bool = False  # force would bring it back


class Point(msgspec.Struct, frozen=True):
    keep_through: int
    turn: str  # the first that is undone


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


class _Said(msgspec.Struct, frozen=True):
    reason: ViewReason
    place: int  # the item after which files are what they will be, or END


class Undo:
    def __init__(self, feed: Feed, history: FileHistory, stories: Stories) -> None:
        self._feed = feed
        self._history = history
        self._stories = stories

    async def point(self, thread: Thread, turn: str = "", *, force: bool = False) -> Point:
        """Where to go back to: before the turn, or before the last visible one that changed files."""
        first: dict[str, int] = {}
        for item_turn, ordinal, _ in await self._items(thread.id):
            first.setdefault(item_turn, ordinal)
        if turn:
            if turn not in first:
                raise NotFound(f"The thread has no turn {turn}.", next_step="`quintet threads show --json` names them.")
            return Point(first[turn] - 1, turn)
        steps = await self._steps(thread.id)
        if force and steps.back and thread.view.reverted is not None and _left_alone(steps):
            again = steps.at  # the same once more, with what was left alone
            return Point(again, next((t for t, ordinal in first.items() if ordinal > again), ""))
        story = await self._stories.of(thread.id)
        visible = [c for c in story.calls if c.turn in first and not thread.view.is_hidden(first[c.turn])]
        for call in reversed(visible):
            if call.changes or not call.settled:
                return Point(first[call.turn] - 1, call.turn)
        words = ["Nothing this thread did to files is left to undo."]
        if left := await self._forcible(thread, steps):
            words.append(f"{counted(left)} left alone; `quintet undo {thread.id} --force` brings back what can be.")
        if any(BACKGROUND in c.partial for c in visible):
            words.append(WENT_ON)
        raise NotFound(" ".join(words), next_step="Name another thread, or undo the last undo with `--redo`.")

    async def revert(self, thread: Thread, keep_through: int, *, force: bool, dry_run: bool = False) -> Undone:
        """Make files what they were after this item: back from where they are, or forward to where they have been."""
        steps = await self._steps(thread.id)
        place = END if keep_through >= thread.last_ordinal else keep_through
        if place == steps.at and _again(thread, steps, force=force):
            return await self._forward(thread, place, steps.redone, force=force, dry_run=dry_run)
        if steps.back and steps.leads_to(place):
            return await self._forward(thread, place, steps.since(place), force=force, dry_run=dry_run)
        story = await self._stories.of(thread.id)
        places = {(turn, call): ordinal for turn, ordinal, call in await self._items(thread.id) if call}
        calls = [c for c in story.calls if places.get((c.turn, c.call_id), 0) > keep_through]
        since = min((c.made for c in calls), default=1 << 62)
        back = {r.seq for r in steps.since(END)}
        moves = [m for c in calls for m in moves_of_call(c)]
        moves += [m for r in story.restores if r.seq > since or r.seq in back for m in moves_of_restore(r)]
        said = _Said(ViewReason.REVERT, keep_through)
        undone = await self._bring_back(thread, said, moves, force=force, dry_run=dry_run)
        return msgspec.structs.replace(undone, keep_through=keep_through, partial=partial_words(story, calls))

    async def redo(self, thread: Thread, *, whole: bool, force: bool, dry_run: bool = False) -> Undone | None:
        """Take one step back of what was undone since the last turn, or all of them; None when there is none."""
        steps = await self._steps(thread.id)
        again = _again(thread, steps, force=force)
        if not (again or steps.back or thread.view.reverted):
            return None
        place = END if whole else (steps.at if again else steps.before)
        restores = [*steps.since(place), *(steps.redone if again else ())]
        return await self._forward(thread, place, restores, force=force, dry_run=dry_run)

    async def behind(self, thread: str) -> bool:
        """Whether files are taken back and can be brought forward again."""
        return bool((await self._steps(thread)).back)

    async def _forward(
        self, thread: Thread, place: int, restores: Sequence[Restore], *, force: bool, dry_run: bool
    ) -> Undone:
        """By undoing exactly what was done to them since they stood there."""
        moves = [m for r in restores for m in moves_of_restore(r)]
        said = _Said(ViewReason.UNREVERT, place)
        undone = await self._bring_back(thread, said, moves, force=force, dry_run=dry_run)
        return msgspec.structs.replace(undone, keep_through=thread.last_ordinal if place == END else place)

    async def _forcible(self, thread: Thread, steps: Steps) -> int:
        """How many paths the last undo left alone that force would bring back."""
        if not steps.back or not _left_alone(steps):
            return 0
        return len((await self.revert(thread, steps.at, force=True, dry_run=True)).restored)

    async def _steps(self, thread: str) -> Steps:
        last, story = await self._last_turn(thread), story_of(await self._feed.journal.checkpoints(thread=thread))
        return steps_of([r for r in story.restores if r.fact.after_turn == last])

    async def _bring_back(
        self, thread: Thread, said: _Said, moves: Sequence[Move], *, force: bool, dry_run: bool
    ) -> Undone:
        plan = await self._plan(moves, force=force, keep=not dry_run)
        if not dry_run:
            await self._say(thread.id, said, plan)
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
                    plan.conflicts.append(Conflict(absolute, why, not force and _helps(found[absolute], now)))
                if not target.same_as(now):
                    wanted.setdefault(directory, []).append((absolute, target))
        for directory, targets in wanted.items():
            paths = [found[absolute][0].path for absolute, _ in targets]
            states = await self._history.states(directory, paths, keep=keep)
            for (absolute, target), path, now in zip(targets, paths, states, strict=True):
                again, _ = wind_back(found[absolute], now, force=force)
                if not again.same_as(target):
                    plan.conflicts.append(Conflict(absolute, CHANGED, not force))  # in this very moment
                elif keep and not force and _unmakeable(now):
                    plan.conflicts.append(Conflict(absolute, UNKEPT, now.kind is not FileKind.OTHER))
                else:
                    plan.changes.append((directory, FileChange(path, now, target)))
        return plan

    async def _say(self, thread: str, said: _Said, plan: _Plan) -> None:
        """One fact per directory, in one commit, before anything is touched. Busy unless the thread rests. Also where
        nothing has to be done: it is a step all the same."""
        last = await self._last_turn(thread)
        left = tuple(c.path for c in plan.conflicts)
        directories = list(dict.fromkeys(d for d, _ in plan.changes)) or [""]
        facts = [
            FilesRestored(
                d, said.reason, last, tuple(c for own, c in plan.changes if own == d), left, keep_through=said.place
            )
            for d in directories
        ]
        await self._feed.append([Draft(fact, thread) for fact in facts])

    async def _put(self, plan: _Plan) -> None:
        """What cannot be brought back after all is a conflict too; the others are."""
        absent_first = sorted(
            plan.changes, key=lambda dc: (dc[1].after.kind is not FileKind.ABSENT, -dc[1].path.count("/"))
        )
        for directory, change in absent_first:
            try:
                await self._history.put(directory, change.path, change.after)
            except STORAGE_ERRORS:
                raise
            except (QuintetError, OSError) as error:
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


def _helps(moves: Sequence[Move], now: FileState) -> bool:
    """Whether force would make the path something else than it is."""
    forced, _ = wind_back(moves, now, force=True)
    return not forced.same_as(now) and not _unmakeable(forced) and now.kind is not FileKind.OTHER


def _again(thread: Thread, steps: Steps, *, force: bool) -> bool:
    """Whether to do the last redo once more: cut off before the view said so, or with what it had left alone."""
    hidden = thread.view.reverted
    cut_off = hidden is not None and (steps.at == END or hidden[0] <= steps.at)
    return bool(steps.redone) and (cut_off or (force and _left_alone(steps)))


def _left_alone(steps: Steps) -> bool:
    return steps.last is not None and bool(steps.last.fact.conflicts)


def counted(files: int) -> str:
    return "1 file was" if files == 1 else f"{files:,} files were"


def _grouped(found: dict[str, list[Move]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for absolute, moves in found.items():
        groups.setdefault(moves[0].directory, []).append(absolute)
    return groups
