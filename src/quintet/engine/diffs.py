"""Diffs of what calls changed: beside a command's result, per turn, per thread. Bounded; says what is not shown."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence

import msgspec

from quintet.domain.checkpoint import FileChange, FileKind, FileState
from quintet.domain.errors import NotFound
from quintet.domain.event import CheckpointSettled
from quintet.domain.ports import FileHistory
from quintet.domain.shown import shown_line
from quintet.domain.tool import ToolOutcome
from quintet.engine.changes import Move, by_path, moves_of_call, moves_of_restore
from quintet.engine.feed import Feed
from quintet.engine.storable import storable
from quintet.engine.stories import Stories, partial_words

LARGEST_FILE = 256 * 1024  # bytes of one side that are still compared
IN_RESULT = 64 * 1024  # characters of all diffs beside a result
IN_THREAD = 1024 * 1024  # and when somebody asks for them
FILES_IN_RESULT = 50
BLOCKS = 20
NAMES = 1_000
SNIFFED = 8_000

Unified = Callable[[str | None, str | None, str], str]  # (before, after, path); None: there is no file


class FileDiff(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str  # absolute
    status: str  # added | changed | removed
    diff: str = ""
    shared: bool = False
    shown: bool = True  # False: no room was left for its diff


class ThreadDiff(msgspec.Struct, frozen=True, omit_defaults=True):
    thread: str
    turn: str = ""
    files: tuple[FileDiff, ...] = ()
    partial: tuple[str, ...] = ()
    cut: int = 0  # files whose diff is not shown


class Diffs:
    def __init__(self, feed: Feed, history: FileHistory, stories: Stories, unified: Unified) -> None:
        self._feed = feed
        self._history = history
        self._stories = stories
        self._unified = unified

    async def beside(self, outcome: ToolOutcome, settled: CheckpointSettled) -> ToolOutcome:
        """The outcome with the files a command changed; a file tool has named its own already."""
        display = list(outcome.display)
        names, text = outcome.changed_files, outcome.diff
        if not settled.exact and settled.changes:
            files = await self._texts([(settled.directory, c) for c in settled.changes], IN_RESULT, FILES_IN_RESULT)
            display += [{"type": "diff", "path": f.path, "diff": f.diff} for f in files[:BLOCKS] if f.shown]
            names = tuple(f.path for f in files[:NAMES])
            text = "".join(f.diff for f in files)
            if rest := sum(not f.shown for f in files):
                text += f"({rest} more changed files are not shown here: see `quintet threads diff`)\n"
        if settled.partial:
            display.append({"type": "note", "text": f"undo is partial: {'; '.join(settled.partial)}"})
        return msgspec.structs.replace(outcome, display=tuple(display), changed_files=names, diff=text)

    async def of(self, thread: str, turn: str = "") -> ThreadDiff:
        """From the earliest content before to the latest after, of one turn or of everything the thread did."""
        story = await self._stories.of(thread)
        calls = [c for c in story.calls if turn in ("", c.turn)]
        if turn and not calls and turn not in {t.id for t in await self._feed.journal.turns(thread)}:
            raise NotFound(f"The thread has no turn {turn}.", next_step="`quintet threads show --json` names them.")
        moves = [m for c in calls for m in moves_of_call(c)]
        if not turn:
            moves += [m for r in story.restores for m in moves_of_restore(r)]
        changes = [_joined(path) for path in by_path(moves).values()]
        real = [(d, c) for d, c in changes if not c.before.same_as(c.after)]
        files = await self._texts(sorted(real, key=lambda dc: os.path.join(dc[0], dc[1].path)), IN_THREAD, None)
        return ThreadDiff(thread, turn, tuple(files), partial_words(story, calls), sum(not f.shown for f in files))

    async def _texts(self, changes: Sequence[tuple[str, FileChange]], room: int, most: int | None) -> list[FileDiff]:
        out: list[FileDiff] = []
        for place, (directory, change) in enumerate(changes):
            path, status = os.path.join(directory, change.path), _status(change)
            text, shown = "", room > 0 and (most is None or place < most)
            if shown:
                text = self._feed.mask(storable(await self._text(directory, change)))
                shown = len(text) <= room
            room -= len(text)
            out.append(FileDiff(path, status, text if shown else "", change.shared, shown))
        return out

    async def _text(self, directory: str, change: FileChange) -> str:
        before, after = change.before, change.after
        if before.kind is after.kind and before.digest == after.digest:
            return _words(change, f"mode {before.mode:o} -> {after.mode:o}")
        if FileKind.OTHER in (before.kind, after.kind):
            return _words(change, f"{before.kind} -> {after.kind}")
        if max(before.size, after.size) > LARGEST_FILE:
            return _words(change, f"too large to compare: {before.size} -> {after.size} bytes")
        sides: list[str | None] = []
        for state in (before, after):
            content = await self._content(directory, state)
            if content is None and state.kind is not FileKind.ABSENT:
                return _words(change, "changed, but its contents are no longer kept")
            text = None if content is None else _decoded(content)
            if text is None and content is not None:
                return _words(change, f"binary: {before.size} -> {after.size} bytes")
            sides.append(text)
        made = await asyncio.to_thread(self._unified, sides[0], sides[1], change.path)
        return made or _words(change, f"{before.kind} {before.mode:o} -> {after.kind} {after.mode:o}")

    async def _content(self, directory: str, state: FileState) -> bytes | None:
        if state.kind is FileKind.ABSENT:
            return None
        return await self._history.content(directory, state)


def _joined(moves: list[Move]) -> tuple[str, FileChange]:
    """One change from all moves of a path, which come newest first."""
    newest, oldest = moves[0], moves[-1]
    shared = any(m.shared or not m.known for m in moves)
    return newest.directory, FileChange(newest.path, oldest.before, newest.after, shared)


def _status(change: FileChange) -> str:
    if change.before.kind is FileKind.ABSENT:
        return "added"
    return "removed" if change.after.kind is FileKind.ABSENT else "changed"


def _words(change: FileChange, words: str) -> str:
    name = shown_line(change.path)
    old = "/dev/null" if change.before.kind is FileKind.ABSENT else f"a/{name}"
    new = "/dev/null" if change.after.kind is FileKind.ABSENT else f"b/{name}"
    return f"--- {old}\n+++ {new}\n({words})\n"


def _decoded(content: bytes) -> str | None:
    if b"\0" in content[:SNIFFED]:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
