"""Restoring: what would be done to each path to take it back, and doing it, one by one, each in one move.

Touches files through the history alone; knows neither threads nor the journal.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import msgspec

from quintet.domain.checkpoint import FileChange, FileKind, FileState
from quintet.domain.errors import QuintetError
from quintet.domain.ports import FileHistory
from quintet.engine.changes import CHANGED, LATE, Move, by_path, inside, wind_back

OTHER = "what stood there was no file, and cannot be made again"
GONE = "what stood there was not kept"
NOT_THERE = "nothing that would be undone was done to it"
UNKEPT = "what stands there now cannot be kept, so it is not replaced; move it away first"


class Brought(msgspec.Struct, frozen=True, omit_defaults=True):
    """A path that is what it was again; one that was not there is removed."""

    path: str  # absolute
    removed: bool = False


class Conflict(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str  # absolute
    why: str
    forcible: bool = False  # force would bring it back
    by_name: bool = False  # force would not, but naming it would


class Plan(msgspec.Struct):
    changes: list[tuple[str, FileChange]] = []  # (directory, from what is there now to what shall be)
    conflicts: list[Conflict] = []

    def brought(self) -> tuple[Brought, ...]:
        back = [Brought(_absolute(d, c), c.after.kind is FileKind.ABSENT) for d, c in self.changes]
        return tuple(sorted(back, key=lambda b: b.path))

    def left_alone(self) -> tuple[Conflict, ...]:
        return tuple(sorted(self.conflicts, key=lambda c: c.path))


class Restoring:
    def __init__(self, history: FileHistory) -> None:
        self._history = history

    async def plan(self, moves: Sequence[Move], *, force: bool, keep: bool, named: Collection[str] = ()) -> Plan:
        """What would be done to each path. What is to be replaced is put aside on the way. What is named, itself or
        with its directory, is brought back whatever happened to it."""
        plan, found = Plan([], []), by_path(moves)
        by_name = {path for path in found if any(inside(name, path) for name in named)}
        plan.conflicts += [Conflict(name, NOT_THERE) for name in named if not any(inside(name, p) for p in by_name)]
        wanted: dict[str, list[tuple[str, FileState]]] = {}
        for directory, paths in _grouped(found).items():
            states = await self._history.states(directory, [found[p][0].path for p in paths])
            for absolute, now in zip(paths, states, strict=True):
                target, why = wind_back(found[absolute], now, force=force, named=absolute in by_name)
                if not target.same_as(now) and (cannot := _unmakeable(target)):
                    target, why = now, cannot
                if why:
                    plan.conflicts.append(_conflict(found[absolute], now, why, force=force))
                if not target.same_as(now):
                    wanted.setdefault(directory, []).append((absolute, target))
        for directory, targets in wanted.items():
            paths = [found[absolute][0].path for absolute, _ in targets]
            states = await self._history.states(directory, paths, keep=keep)
            for (absolute, target), path, now in zip(targets, paths, states, strict=True):
                again, _ = wind_back(found[absolute], now, force=force, named=absolute in by_name)
                if not again.same_as(target):
                    plan.conflicts.append(Conflict(absolute, CHANGED, not force))  # in this very moment
                elif keep and _unmakeable(now) and not (force and _left_by_us(found[absolute], now)):
                    # What somebody else put there would be lost for good; what the thread made may go by force.
                    forcible = not force and _left_by_us(found[absolute], now)
                    plan.conflicts.append(Conflict(absolute, UNKEPT, forcible))
                else:
                    plan.changes.append((directory, FileChange(path, now, target)))
        return plan

    async def put(self, plan: Plan) -> None:
        """What cannot be brought back after all is a conflict too; the others are."""
        absent_first = sorted(
            plan.changes, key=lambda dc: (dc[1].after.kind is not FileKind.ABSENT, -dc[1].path.count("/"))
        )
        for absent in (True, False):
            wanted = [dc for dc in absent_first if (dc[1].after.kind is FileKind.ABSENT) is absent]
            for directory in dict.fromkeys(d for d, _ in wanted):
                await self._put_in(directory, [change for own, change in wanted if own == directory], plan)

    async def _put_in(self, directory: str, changes: Sequence[FileChange], plan: Plan) -> None:
        for change, error in zip(changes, await self._history.put_all(directory, changes), strict=True):
            if error is not None:
                words = error.message if isinstance(error, QuintetError) else (error.strerror or "it failed")
                plan.conflicts.append(Conflict(_absolute(directory, change), words))
                plan.changes.remove((directory, change))


def _absolute(directory: str, change: FileChange) -> str:
    return os.path.join(directory, change.path)


def _unmakeable(state: FileState) -> str:
    """Why nobody can make this state again, or nothing."""
    if state.kind is FileKind.OTHER:
        return OTHER
    return GONE if state.kind is not FileKind.ABSENT and not (state.kept or state.git) else ""


def _left_by_us(moves: Sequence[Move], now: FileState) -> bool:
    newest = moves[0]
    return newest.known and now.kind is FileKind.FILE and now.same_as(newest.after)


def _conflict(moves: Sequence[Move], now: FileState, why: str, *, force: bool) -> Conflict:
    if why == LATE:
        return Conflict(moves[0].absolute, why, by_name=_helps(moves, now, named=True))
    return Conflict(moves[0].absolute, why, not force and _helps(moves, now))


def _helps(moves: Sequence[Move], now: FileState, *, named: bool = False) -> bool:
    """Whether force, or the path's name, would make it something else than it is."""
    forced, _ = wind_back(moves, now, force=True, named=named)
    return not forced.same_as(now) and not _unmakeable(forced) and now.kind is not FileKind.OTHER


def _grouped(found: dict[str, list[Move]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for absolute, moves in found.items():
        groups.setdefault(moves[0].directory, []).append(absolute)
    return groups
