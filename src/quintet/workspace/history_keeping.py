"""Keeper: reads what stands at paths and puts its bytes into the blob store, each content once. Blocking.

A file that was kept before and has not been touched is not read again.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from quintet.domain.checkpoint import FileKind, FileState
from quintet.workspace.blobs import Blobs, digest_of
from quintet.workspace.history_manifest import Budget, Entry
from quintet.workspace.history_stop import Stop
from quintet.workspace.tree import Seen, Tree

HASH_LIMIT = 256 * 1024 * 1024  # of a file whose bytes are not kept but told apart
_SURE_NS = 50_000_000  # clocks of file systems tick slowly: a file touched twice within a tick looks untouched
_REFRESH_S = 600.0  # far less than the age at which a blob may be swept
_DIRECTORIES, _PATHS = 16, 20_000  # what is remembered
_BATCH_BYTES, _BATCH_FILES = 8 * 1024 * 1024, 1_000  # a cancel waits for one batch at most


class _Known(NamedTuple):
    seen: Seen
    digest: str
    fresh_until: float


class Keeper:
    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._known: dict[str, dict[str, _Known]] = {}
        self._lock = threading.Lock()

    def before(self, stop: Stop, directory: str, paths: Iterable[str], budget: Budget) -> list[Entry]:
        """What stands there, with the bytes put aside as far as the budget goes. Large files are not even hashed. A
        directory is no file: bringing back what stood there means that no file does."""
        with Tree(directory) as tree:
            batches = self._batches(directory, tree, _until(stop, paths), budget)
            entries = [entry for batch in batches for entry in batch]
            return [Entry(e.path, FileState(), e.seen, directory=True) if e.directory else e for e in entries]

    def after(self, directory: str, paths: Iterable[str], budget: Budget | None) -> list[Entry]:
        """The same, and what is not kept is hashed; without a budget nothing is kept."""
        with Tree(directory) as tree:
            none = budget or Budget(file_limit=-1)
            batches = self._batches(directory, tree, paths, none)
            return [_hashed(tree, entry) for batch in batches for entry in batch]

    def touched(self, directory: str, entries: Iterable[Entry]) -> list[Entry]:
        """Those that may not be what they were."""
        with Tree(directory) as tree:
            return [entry for entry in entries if _may_differ(tree, entry)]

    def _batches(self, directory: str, tree: Tree, paths: Iterable[str], budget: Budget) -> Iterator[list[Entry]]:
        """Read on until enough bytes are held, then put them all aside in one go."""
        entries: list[Entry] = []
        waiting: list[tuple[int, bytes]] = []
        held = 0
        for path in paths:
            entry, data = self._entry(directory, tree, path, budget)
            if data is not None:
                waiting.append((len(entries), data))
                held += len(data)
            entries.append(entry)
            if len(waiting) >= _BATCH_FILES or held >= _BATCH_BYTES:
                yield self._put(directory, entries, waiting)
                entries, waiting, held = [], [], 0
        yield self._put(directory, entries, waiting)

    def _entry(self, directory: str, tree: Tree, path: str, budget: Budget) -> tuple[Entry, bytes | None]:
        """What stands at a path, and its bytes where they have yet to be put aside."""
        found = tree.look(path)
        if found is None:
            return Entry(path, FileState(bare=tree.missing_above(path))), None
        seen, mode = Seen.of(found), stat.S_IMODE(found.st_mode)
        try:
            if stat.S_ISLNK(found.st_mode):
                target = tree.link(path)
                kept = budget.takes(path, len(target))
                state = FileState(FileKind.LINK, size=len(target), digest=digest_of(target), kept=kept)
                return Entry(path, state, seen), target if kept else None
            if stat.S_ISDIR(found.st_mode):
                # One that holds nothing is as good as none: there is nothing to put aside, and nothing in the way.
                empty = not os.listdir(os.path.join(directory, path))
                state = FileState(bare=tree.missing_above(path)) if empty else FileState(FileKind.OTHER)
                return Entry(path, state, seen, directory=True), None
            if not stat.S_ISREG(found.st_mode):
                budget.special.append(path)
                return Entry(path, FileState(FileKind.OTHER), seen), None
            sure = found.st_ctime_ns < time.time_ns() - _SURE_NS
            lost = Entry(path, FileState(FileKind.FILE, mode, found.st_size), seen, sure=sure)
            if not budget.takes(path, found.st_size):
                return lost, None
            digest = self._remembered(directory, path, seen) if sure else ""
            if digest:
                return Entry(
                    path, FileState(FileKind.FILE, mode, found.st_size, digest, kept=True), seen, sure=sure
                ), None
            data, then = tree.read(path, budget.file_limit)
            again = tree.look(path)
            if data is None or again is None or Seen.of(again) != seen or Seen.of(then) != seen:
                budget.moving.append(path)
                return lost, None
        except OSError:
            budget.unread.append(path)
            return Entry(path, FileState(FileKind.FILE, mode, found.st_size), seen), None
        return Entry(path, FileState(FileKind.FILE, mode, len(data), digest_of(data), kept=True), seen, sure=sure), data

    def _put(self, directory: str, entries: list[Entry], waiting: Sequence[tuple[int, bytes]]) -> list[Entry]:
        if waiting:
            self._blobs.put_all([data for _, data in waiting])
        for place, _ in waiting:
            entry = entries[place]
            if entry.sure and entry.seen is not None:
                self._remember(directory, entry.path, entry.seen, entry.state.digest)
        return entries

    def _remembered(self, directory: str, path: str, seen: Seen) -> str:
        """The digest of a file that was kept and not touched since, if its blob is still there."""
        with self._lock:
            known = self._known.get(directory, {}).get(path)
        if known is None or known.seen != seen:
            return ""
        if time.monotonic() > known.fresh_until:
            if not self._blobs.refresh(known.digest):
                return ""
            self._remember(directory, path, seen, known.digest)
        return known.digest

    def _remember(self, directory: str, path: str, seen: Seen, digest: str) -> None:
        with self._lock:
            known = self._known.pop(directory, {})
            self._known[directory] = known  # the last used is the last forgotten
            known.pop(path, None)
            known[path] = _Known(seen, digest, time.monotonic() + _REFRESH_S)
            while len(known) > _PATHS:
                del known[next(iter(known))]
            while len(self._known) > _DIRECTORIES:
                del self._known[next(iter(self._known))]


def _until(stop: Stop, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        stop.look()
        yield path


def _hashed(tree: Tree, entry: Entry) -> Entry:
    state = entry.state
    if state.kind is not FileKind.FILE or state.digest:
        return entry
    try:
        digest = tree.hash(entry.path, HASH_LIMIT)
    except OSError:
        return entry
    return Entry(entry.path, FileState(state.kind, state.mode, state.size, digest), entry.seen, sure=entry.sure)


def _may_differ(tree: Tree, entry: Entry) -> bool:
    found = tree.look(entry.path)
    if found is None or entry.seen is None:
        return found is not None or entry.seen is not None
    if Seen.of(found) != entry.seen:
        return True
    return bool(entry.state.digest) and not entry.sure  # without a digest there is nothing better to compare
