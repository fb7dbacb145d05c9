"""Comparison: a manifest held against what stands in the directory now. One call, one comparison.

The danger here is to take something for the call's doing that was the person's: a file that only became visible because
the call changed the ignore rules is never told as made by it, since undoing that would delete it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from quintet.domain.checkpoint import Compared, FileChange, FileKind, FileState
from quintet.workspace.blobs import Blobs, digest_of
from quintet.workspace.files import on_disk
from quintet.workspace.git import Repository
from quintet.workspace.history_git import Tracked, look, tracked_directories
from quintet.workspace.history_keeping import Keeper
from quintet.workspace.history_manifest import FILE_LIMIT, NAMED_LIMIT, Budget, Manifest, counted, some
from quintet.workspace.history_objects import LINK, Blob, contents
from quintet.workspace.history_walk import walk
from quintet.workspace.ignore import KINDS
from quintet.workspace.tree import Tree

CHANGES_LIMIT = 10_000
_TICK_NS = 50_000_000  # by this much the time of a file may lie before the moment it was made


class Comparison:
    def __init__(
        self, directory: str, manifest: Manifest, keeper: Keeper, blobs: Blobs, hides: Callable[[str], bool]
    ) -> None:
        self._directory = directory
        self._manifest = manifest
        self._keeper = keeper
        self._blobs = blobs
        self._hides = hides
        self._budget = Budget(NAMED_LIMIT if manifest.way == "paths" else FILE_LIMIT)
        self._changes: dict[str, FileChange] = {}
        self._notes: list[str] = []
        self._left = 0  # touched files that are too many to be told
        self._known = {entry.path for entry in manifest.entries}
        self._looser = manifest.cut  # files may come to sight that were there before

    async def of_paths(self, *notes: str) -> Compared:
        """Only what the manifest lists."""
        self._notes += notes
        await self._listed()
        return self._compared()

    async def of_walk(self) -> Compared:
        await self._listed()
        walked = await on_disk(walk, self._directory, self._hides)
        self._notes += walked.notes()
        await self._made([path for path in walked.files if path not in self._known], set())
        return self._compared()

    async def of_git(self, repository: Repository) -> Compared:
        found, _ = await look(repository)
        self._notes += await on_disk(found.notes, repository.layout)
        self._looser |= await on_disk(repository.layout.exclude_digest) != self._manifest.exclude
        await self._listed()
        clean = [file for file in found.changed if file.path not in self._known and not self._is_hidden(file.path)]
        await self._from_git(repository, clean)
        made = [path for path in found.others if path not in self._known and not self._is_hidden(path)]
        above = sorted({above for path in made for above in _above(path)})
        await self._made(made, await tracked_directories(repository, above) if above else set())
        return self._compared()

    async def _listed(self) -> None:
        touched = await on_disk(self._keeper.touched, self._directory, self._manifest.entries)
        await self._add({entry.path: entry.state for entry in touched})

    async def _from_git(self, repository: Repository, files: Sequence[Tracked]) -> None:
        """Files that were clean: their bytes are in git's objects, if nothing had converted them on the way out."""
        lost: list[str] = []
        async for batch in contents(repository, files):
            before = {blob.tracked.path: await self._state(blob) for blob in batch}
            lost += [path for path, state in before.items() if not state.digest]
            rules = {blob.tracked.path: blob.data for blob in batch if blob.data and _is_rules(blob.tracked.path)}
            await self._add(before, rules)
        if lost:
            self._notes.append(
                f"{some(lost)}: git does not hold the bytes as they stood there (converted, or not there)"
            )

    async def _state(self, blob: Blob) -> FileState:
        is_link = blob.tracked.mode == LINK
        kind = FileKind.LINK if is_link else FileKind.FILE
        plain = self._manifest.plain_mode
        mode = 0 if is_link else plain | (plain & 0o444) >> 2 if blob.tracked.mode & 0o100 else plain
        if blob.data is None:
            return FileState(kind, mode)
        state = FileState(kind, mode, len(blob.data), digest_of(blob.data), git=blob.tracked.object)
        if blob.plain:
            return state
        await on_disk(self._blobs.put, blob.data)
        return FileState(kind, mode, state.size, state.digest, kept=True)

    async def _made(self, paths: Sequence[str], tracked: set[str]) -> None:
        if self._looser:
            paths, unsure = await on_disk(self._split, paths)
            if unsure:
                self._notes.append(
                    f"{some(unsure)}: came to sight when the ignore rules changed, so whether the call made them is"
                    " not known"
                )
                await self._add({path: FileState(FileKind.OTHER) for path in unsure})
        there = {*tracked, *self._manifest.directories}
        there |= {above for path in self._manifest.directories for above in _above(path)}
        for entry in self._manifest.entries:
            if entry.state.kind is not FileKind.ABSENT:
                there.update(_above(entry.path))
        await self._add({path: FileState(bare=sum(above not in there for above in _above(path))) for path in paths})

    def _split(self, paths: Iterable[str]) -> tuple[list[str], list[str]]:
        """Where ignored files may have come to sight: none is surely new, and those older than the call are not its."""
        with Tree(self._directory) as tree:
            looks = {path: tree.look(path) for path in paths}
        since = self._manifest.at_ns - _TICK_NS
        return [], [path for path, found in looks.items() if found is not None and found.st_ctime_ns >= since]

    async def _add(self, before: dict[str, FileState], rules: dict[str, bytes] | None = None) -> None:
        """Take down what is not what it was."""
        room = CHANGES_LIMIT - len(self._changes)
        self._left += max(0, len(before) - room)
        paths = list(before)[: max(0, room)]
        for entry in await on_disk(self._keeper.after, self._directory, paths, self._budget):
            change = FileChange(entry.path, before[entry.path], entry.state)
            no_file = entry.directory and change.before.kind is FileKind.ABSENT
            if no_file or change.before.same_as(change.after):
                continue
            self._changes[entry.path] = change
            if _is_rules(entry.path):
                self._looser |= await on_disk(self._loosens, change, (rules or {}).get(entry.path))

    def _loosens(self, change: FileChange, old: bytes | None) -> bool:
        """Whether a changed ignore file may show what the old one hid. Lines added at the end hide more, never less."""
        if old is None and change.before.kept:
            old = self._blobs.get(change.before.digest)
        new = self._blobs.get(change.after.digest) if change.after.kept else b""
        if change.before.kind is FileKind.ABSENT:
            old = b""
        if old is None or new is None or not new.startswith(old):
            return True
        if old and not old.endswith(b"\n") and not new[len(old) :].startswith((b"\n", b"\r\n")):
            return True  # the last line became another one
        return any(line.startswith(b"!") for line in new[len(old) :].split(b"\n"))

    def _is_hidden(self, path: str) -> bool:
        return self._hides(f"{self._directory}/{path}")

    def _compared(self) -> Compared:
        notes = [*self._notes, *(f"after the call: {words}" for words in self._budget.words())]
        if self._left:
            notes.append(
                f"{counted(self._left)} more were touched: beyond the limit of {CHANGES_LIMIT:,} and not listed"
            )
        changes = tuple(self._changes[path] for path in sorted(self._changes))
        return Compared(changes, tuple(dict.fromkeys(notes)))


def _is_rules(path: str) -> bool:
    return path.rpartition("/")[2] in KINDS


def _above(path: str) -> Iterable[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
