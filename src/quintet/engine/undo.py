"""Undo: brings back the files a thread changed, as far as they still are what it left, and can be undone itself.

What stands at a path is kept and named in the journal before it is replaced; doing it again after a crash finishes it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from quintet.domain.errors import Invalid, NotFound
from quintet.domain.event import Draft, FilesRestored
from quintet.domain.item import ToolCall
from quintet.domain.ports import FileHistory
from quintet.domain.thread import Thread
from quintet.domain.view import ViewReason
from quintet.engine.changes import (
    Move,
    Restore,
    moves_of_call,
    moves_of_restore,
    story_of,
)
from quintet.engine.feed import Feed
from quintet.engine.restoring import Brought, Conflict, Plan, Restoring
from quintet.engine.steps import END, Steps, steps_of
from quintet.engine.stories import BACKGROUND, Stories, partial_words

NOTHING_LEFT = "Nothing this thread did to files is left to undo."
ONLY_BACK = "This brings files forward again, as they were; to name some of them (--also) works on the way back alone."
WENT_ON = "A background command went on; what it changed later is not known."
PAGE = 500


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


class _Said(msgspec.Struct, frozen=True):
    reason: ViewReason
    place: int  # the item after which files are what they will be, or END


class Undo:
    def __init__(self, feed: Feed, history: FileHistory, stories: Stories) -> None:
        self._feed = feed
        self._restoring = Restoring(history)
        self._stories = stories

    async def point(self, thread: Thread, turn: str = "", *, force: bool = False, named: Collection[str] = ()) -> Point:
        """Where to go back to: before the turn, or before the last visible one that changed files."""
        story = await self._stories.of(thread.id)
        first = await self._first_items(thread.id) if turn or story.calls else {}
        if turn:
            if turn not in first:
                raise NotFound(f"The thread has no turn {turn}.", next_step="`quintet threads show --json` names them.")
            return Point(first[turn] - 1, turn)
        steps = await self._steps(thread.id)
        if (force or named) and thread.view.reverted is not None and await self._forcible(thread, steps, named):
            again = steps.at  # the same once more, with what was left alone
            return Point(again, next((t for t, ordinal in first.items() if ordinal > again), ""))
        for call in reversed(story.calls):
            shown = call.turn in first and not thread.view.is_hidden(first[call.turn])
            if shown and (call.changes or not call.settled):
                return Point(first[call.turn] - 1, call.turn)
        words = " ".join([NOTHING_LEFT, *await self.remarks(thread)])
        raise NotFound(words, next_step="Name another thread, or take back the last undo with `--redo`.")

    async def remarks(self, thread: Thread) -> list[str]:
        """What is to be known of a thread in which nothing is left to undo."""
        words, steps = [], await self._steps(thread.id)
        if left := await self._forcible(thread, steps):
            files = "1 file was" if left == 1 else f"{left:,} files were"
            words.append(f"{files} left alone; `quintet undo {thread.id} --force` brings back what can be.")
        story = story_of(await self._feed.journal.checkpoints(thread=thread.id))
        went_on = {c.turn for c in story.calls if BACKGROUND in c.partial}
        first = await self._first_items(thread.id) if went_on else {}
        if any(turn in went_on and not thread.view.is_hidden(ordinal) for turn, ordinal in first.items()):
            words.append(WENT_ON)
        return words

    async def revert(
        self,
        thread: Thread,
        keep_through: int,
        *,
        force: bool,
        dry_run: bool = False,
        named: Collection[str] = (),
    ) -> Undone:
        """Make files what they were after this item: back from where they are, or forward to where they have been."""
        steps = await self._steps(thread.id)
        place = END if keep_through >= thread.last_ordinal else keep_through
        again = place == steps.at and _again(thread, steps, force=force)
        if again or (steps.back and steps.leads_to(place)):
            if named:
                raise Invalid(ONLY_BACK, next_step="Leave it out; --force brings what has changed since as well.")
            restores = steps.redone if again else steps.since(place)
            return await self._forward(thread, place, restores, force=force, dry_run=dry_run)
        story = await self._stories.of(thread.id)
        places = {(turn, call): ordinal for turn, ordinal, call in await self._items(thread.id) if call}
        calls = [c for c in story.calls if places.get((c.turn, c.call_id), 0) > keep_through]
        moves = [m for c in calls for m in moves_of_call(c)]
        own, since = {m.absolute for m in moves}, min((c.made for c in calls), default=1 << 62)
        back = {r.seq for r in steps.since(END)}
        for move in (m for r in story.restores if r.seq > since or r.seq in back for m in moves_of_restore(r)):
            # The same once more: where no call has to be taken back, what the first time did to a file stands. (A call
            # that was cut off is compared with what is there now, so of what was brought back it tells nothing.)
            if keep_through != steps.at or move.absolute in own:
                moves.append(move)
        said = _Said(ViewReason.REVERT, keep_through)
        undone = await self._bring_back(thread, said, moves, force=force, dry_run=dry_run, named=named)
        return msgspec.structs.replace(undone, keep_through=keep_through, partial=partial_words(story, calls))

    async def redo(self, thread: Thread, *, whole: bool, force: bool, dry_run: bool = False) -> Undone | None:
        """Take one step back of what was undone since the last turn, or all of them; None when there is none."""
        steps = await self._steps(thread.id)
        if not _redoable(thread, steps, force=force):
            return None
        again = _again(thread, steps, force=force)
        place = END if whole else (steps.at if again else steps.before)
        restores = [*steps.since(place), *(steps.redone if again else ())]
        return await self._forward(thread, place, restores, force=force, dry_run=dry_run)

    async def can_redo(self, thread: Thread, *, force: bool = False) -> bool:
        return _redoable(thread, await self._steps(thread.id), force=force)

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

    async def _forcible(self, thread: Thread, steps: Steps, named: Collection[str] = ()) -> int:
        """How many paths the last undo has left alone that force, or naming them, would bring back."""
        if steps.redone or not steps.back or not _left_alone(steps):
            return 0
        return len((await self.revert(thread, steps.at, force=True, dry_run=True, named=named)).restored)

    async def _steps(self, thread: str) -> Steps:
        last, story = await self._last_turn(thread), story_of(await self._feed.journal.checkpoints(thread=thread))
        return steps_of([r for r in story.restores if r.fact.after_turn == last])

    async def _bring_back(
        self,
        thread: Thread,
        said: _Said,
        moves: Sequence[Move],
        *,
        force: bool,
        dry_run: bool,
        named: Collection[str] = (),
    ) -> Undone:
        plan = await self._restoring.plan(moves, force=force, keep=not dry_run, named=named)
        if not dry_run:
            await self._say(thread.id, said, plan)
            await self._restoring.put(plan)
        return Undone(thread.id, 0, plan.brought(), plan.left_alone(), dry_run=dry_run)

    async def _say(self, thread: str, said: _Said, plan: Plan) -> None:
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

    async def _last_turn(self, thread: str) -> str:
        begun = [t.id for t in await self._feed.journal.turns(thread) if t.started_ms]
        return begun[-1] if begun else ""

    async def _first_items(self, thread: str) -> dict[str, int]:
        """Each turn's first item."""
        first: dict[str, int] = {}
        for turn, ordinal, _ in await self._items(thread):
            first.setdefault(turn, ordinal)
        return first

    async def _items(self, thread: str) -> list[tuple[str, int, str]]:
        """(turn, ordinal, call id or "") of every item."""
        found: list[tuple[str, int, str]] = []
        while page := await self._feed.journal.items(thread, after=found[-1][1] if found else 0, limit=PAGE):
            found += [(i.turn, i.ordinal, i.body.call_id if isinstance(i.body, ToolCall) else "") for i in page]
        return found


def _redoable(thread: Thread, steps: Steps, *, force: bool) -> bool:
    return bool(steps.back) or thread.view.reverted is not None or _again(thread, steps, force=force)


def _again(thread: Thread, steps: Steps, *, force: bool) -> bool:
    """Whether to do the last redo once more: cut off before the view said so, or with what it had left alone."""
    hidden = thread.view.reverted
    cut_off = hidden is not None and (steps.at == END or hidden[0] <= steps.at)
    return bool(steps.redone) and (cut_off or (force and _left_alone(steps)))


def _left_alone(steps: Steps) -> bool:
    return steps.last is not None and bool(steps.last.fact.conflicts)
