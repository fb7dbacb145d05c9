"""The story of a thread's files: its calls and restorations as moves of paths, and how far back they can be wound.

Pure: knows states, not contents, neither the disk nor the journal.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from quintet.domain.checkpoint import Compared, FileChange, FileState, Secured
from quintet.domain.event import CheckpointMade, CheckpointSettled, Event, FilesRestored

ENDLESS = 1 << 62


class Call(msgspec.Struct, frozen=True):
    """What one call did to files, as far as it is known."""

    turn: str
    call_id: str
    name: str
    made: int  # the number of its checkpoint.made
    secured: Secured
    settled: int = 0  # of its checkpoint.settled; 0: nobody wrote down how it ended
    changes: tuple[FileChange, ...] = ()
    partial: tuple[str, ...] = ()
    late: frozenset[str] = frozenset()  # of a call that was cut off: what was changed after it was last known to run

    @property
    def directory(self) -> str:
        return self.secured.directory

    def as_found(self, now: Compared) -> Call:
        """A call whose end is unknown, with what differs from before it now."""
        partial = (*self.partial, *now.partial)
        return msgspec.structs.replace(self, changes=now.changes, partial=partial, late=frozenset(now.late))


class Restore(msgspec.Struct, frozen=True):
    seq: int
    fact: FilesRestored


class Story(msgspec.Struct):
    calls: list[Call] = []
    restores: list[Restore] = []
    damaged: int = 0  # records that can no longer be read


def story_of(events: Sequence[Event]) -> Story:
    """From a thread's checkpoint events, oldest first."""
    story, place = Story([], []), {}
    for event in events:
        payload = event.payload
        if isinstance(payload, CheckpointMade):
            place[event.turn, payload.call_id] = len(story.calls)
            secured = payload.secured
            story.calls.append(
                Call(event.turn, payload.call_id, payload.name, event.seq, secured, partial=secured.partial)
            )
        elif isinstance(payload, CheckpointSettled):
            at = place.get((event.turn, payload.call_id))
            if at is None:
                story.damaged += 1
                continue
            partial = tuple(dict.fromkeys((*story.calls[at].partial, *payload.partial)))
            story.calls[at] = msgspec.structs.replace(
                story.calls[at], settled=event.seq, changes=payload.changes, partial=partial
            )
        elif isinstance(payload, FilesRestored):
            story.restores.append(Restore(event.seq, payload))
        else:
            story.damaged += 1
    return story


class Move(msgspec.Struct, frozen=True):
    """A path went from one state to another between two numbers."""

    directory: str
    path: str
    before: FileState
    after: FileState
    begin: int
    end: int
    shared: bool = False
    known: bool = True  # False: the call was cut off, so `after` is only what stood there when somebody looked
    restored: bool = False  # by an undo, not by a call
    late: bool = False  # not known, and `after` came when the call no longer ran, as far as that is known

    @property
    def absolute(self) -> str:
        return os.path.join(self.directory, self.path)


def moves_of_call(call: Call) -> list[Move]:
    known = bool(call.settled)
    end = call.settled or ENDLESS
    return [
        Move(call.directory, c.path, c.before, c.after, call.made, end, c.shared, known, late=c.path in call.late)
        for c in call.changes
    ]


def moves_of_restore(restore: Restore) -> list[Move]:
    fact = restore.fact
    return [
        Move(fact.directory, c.path, c.before, c.after, restore.seq, restore.seq, restored=True) for c in fact.changes
    ]


def by_path(moves: Sequence[Move]) -> dict[str, list[Move]]:
    """Newest first, under the absolute path. What has no known end is placed by its beginning."""
    found: dict[str, list[Move]] = {}
    for move in sorted(moves, key=lambda m: (m.end if m.known else m.begin, m.begin), reverse=True):
        found.setdefault(move.absolute, []).append(move)
    return found


CHANGED = "changed since by somebody else"
SHARED = "another command ran in the same directory meanwhile, so the change may be its"
UNKNOWN = "the call was cut off and nobody knows how far it came"
LATE = "changed after the call was cut off, so it may be yours"


def wind_back(moves: Sequence[Move], now: FileState, *, force: bool, named: bool = False) -> tuple[FileState, str]:
    """From `now` back through the moves of one path, newest first. (the state to restore, why not further). What may
    be somebody's own work is taken back only where the path was named, by force or not."""
    at, newer = now, None
    for move in moves:
        together = newer is not None and move.known and move.end > newer.begin
        if move.restored and at.same_as(move.before) and not at.same_as(move.after):
            continue  # said, but cut off before it was done
        why = _obstacle(move, at, together=together)
        if why and not named and (not force or why == LATE):
            # Whoever has put it back by hand is not told of a conflict.
            return (now, "") if now.same_as(moves[-1].before) else (at, why)
        if not (together and newer is not None and move.begin > newer.begin):
            at = move.before
        newer = move
    return at, ""


def _obstacle(move: Move, at: FileState, *, together: bool) -> str:
    if at.same_as(move.before) and not move.known:
        return ""
    if not move.known:
        return LATE if move.late else UNKNOWN
    if not at.same_as(move.after) and not together:
        return CHANGED
    return SHARED if move.shared else ""


def inside(directory: str, path: str) -> bool:
    """By whole names; both absolute."""
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)
