"""Comparison: a manifest held against what stands in the directory now. One call, one comparison.

The danger here is to take something for the call's doing that was the person's: a file that only became visible because
the call changed the ignore rules, or that it moved here from where nothing is kept, is never told as made by it, since
undoing that would delete it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from quintet.domain.checkpoint import Compared, FileChange, FileKind, FileState
from quintet.workspace.blobs import Blobs, digest_of
from quintet.workspace.files import on_disk
from quintet.workspace.git import Repository
from quintet.workspace.history_age import old_ones, old_ones_below
from quintet.workspace.history_git import INODES, PASSED_LIMIT, Tracked, index_inodes, look, tracked_directories
from quintet.workspace.history_keeping import Keeper
from quintet.workspace.history_manifest import FILE_LIMIT, NAMED_LIMIT, Budget, Entry, Manifest, counted, some
from quintet.workspace.history_modes import directories_above, modes_above
from quintet.workspace.history_objects import LINK, Blob, contents
from quintet.workspace.history_others import OthersMemory
from quintet.workspace.history_rules import any_loosens, is_rules, loosens
from quintet.workspace.history_stop import stoppable
from quintet.workspace.history_walk import walk
from quintet.workspace.tree import Tree

CHANGES_LIMIT = 10_000


class Comparison:
    def __init__(
        self,
        directory: str,
        manifest: Manifest,
        keeper: Keeper,
        blobs: Blobs,
        hides: Callable[[str], bool],
        memory: OthersMemory,
    ) -> None:
        self._directory = directory
        self._manifest = manifest
        self._keeper = keeper
        self._blobs = blobs
        self._hides = hides
        self._memory = memory
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
        walked = await stoppable(walk, self._directory, self._hides)
        self._notes += walked.notes()
        await self._show(walked.rules)
        made = [path for path in walked.files if path not in self._known]
        await self._show(path for path in made if is_rules(path))
        await self._made(made, set(), None)
        return self._compared()

    async def of_git(self, repository: Repository) -> Compared:
        found, _ = await look(repository, self._memory)
        self._notes += await on_disk(found.notes, repository.layout)
        self._looser |= await on_disk(repository.layout.exclude_digest) != self._manifest.exclude
        await self._listed()
        clean = [file for file in found.changed if file.path not in self._known and not self._is_hidden(file.path)]
        await self._from_git(repository, clean)
        passed = found.passed if len(found.passed) <= PASSED_LIMIT else ()
        made = [p for p in (*found.others, *passed) if p not in self._known and not self._is_hidden(p)]
        await self._show(found.rules)
        await self._show(path for path in made if is_rules(path))
        above = sorted({above for path in made for above in directories_above(path)})
        tracked = await tracked_directories(repository, above) if above else set()
        await self._made(made, tracked, repository)
        return self._compared()

    async def _show(self, rules: Iterable[str]) -> None:
        """Ignore files that were not there before: they count before any file that they may have shown."""
        new = [path for path in rules if path not in self._known]
        self._looser = self._looser or await on_disk(any_loosens, self._directory, new)

    async def _listed(self) -> None:
        touched = await on_disk(self._keeper.touched, self._directory, self._manifest.entries)
        await self._add({entry.path: entry.state for entry in touched})

    async def _from_git(self, repository: Repository, files: Sequence[Tracked]) -> None:
        """Files that were clean: their bytes are in git's objects, if nothing had converted them on the way out."""
        lost: list[str] = []
        async for batch in contents(repository, files):
            before = {blob.tracked.path: await self._state(blob) for blob in batch}
            lost += [path for path, state in before.items() if not state.digest]
            rules = {blob.tracked.path: blob.data for blob in batch if blob.data and is_rules(blob.tracked.path)}
            await self._add(before, rules, guessed=self._manifest.modes is None)
        if lost:
            self._notes.append(
                f"{some(lost)}: git does not hold the bytes as they stood there (converted, or not there)"
            )

    async def _state(self, blob: Blob) -> FileState:
        is_link = blob.tracked.mode == LINK
        kind = FileKind.LINK if is_link else FileKind.FILE
        plain = self._manifest.plain_mode
        mode = 0 if is_link else plain | (plain & 0o444) >> 2 if blob.tracked.mode & 0o100 else plain
        if self._manifest.modes is not None and not is_link:
            mode = self._manifest.modes.get(blob.tracked.path, plain)
        if blob.data is None:
            return FileState(kind, mode)
        state = FileState(kind, mode, len(blob.data), digest_of(blob.data), git=blob.tracked.object)
        if blob.plain:
            return state
        await on_disk(self._blobs.put, blob.data)
        return FileState(kind, mode, state.size, state.digest, kept=True)

    async def _made(self, paths: Sequence[str], tracked: set[str], repository: Repository | None) -> None:
        if self._looser:
            # None is surely new: a hidden file may have been written anew as well. Untouched ones are not told.
            unsure = await on_disk(self._touched_since, paths)
            why = "came to sight when the ignore rules changed, so whether the call made it is not known"
            await self._leave(unsure, why)
            return
        old = await on_disk(old_ones, self._directory, paths, self._manifest.at_ns)
        moved = await self._from_nowhere(old, repository) if old else []
        await self._leave(moved, "older than the call, and came from somewhere that is not kept")
        there = self._there(tracked)
        new = [path for path in paths if path not in set(moved)]
        rooms = {above for path in new for above in directories_above(path) if above not in there}
        await self._add(
            {path: FileState(bare=sum(above in rooms for above in directories_above(path))) for path in new}
        )
        await self._untold(rooms, {*paths, *self._known})

    async def _leave(self, paths: Sequence[str], why: str) -> None:
        """Tell them, but so that nobody ever removes them."""
        if paths:
            self._notes.append(f"{some(list(paths))}: {why}")
            await self._add({path: FileState(FileKind.OTHER) for path in paths})

    async def _from_nowhere(self, old: Mapping[str, int], repository: Repository | None) -> list[str]:
        """Without those whose inode was at a path that can be given back: nothing is lost by removing them."""
        kept = {entry.seen.inode for entry in self._manifest.entries if entry.seen and entry.state.kept}
        tracked: set[int] = set()
        if repository is not None:
            lost = {path for path, change in self._changes.items() if not change.before.digest}
            tracked = await index_inodes(repository, self._known | lost)
        return [path for path, inode in old.items() if inode not in kept and inode % INODES not in tracked]

    async def _untold(self, rooms: Iterable[str], told: Collection[str]) -> None:
        """A directory may have been moved with ignored files in it."""
        top = [room for room in rooms if not any(above in rooms for above in directories_above(room))]
        left = await on_disk(old_ones_below, self._directory, top, told, self._manifest.at_ns)
        if left:
            self._notes.append(f"{some(left)}: ignored, and moved here with its directory: it is not moved back")

    def _there(self, tracked: set[str]) -> set[str]:
        """Directories that were there before."""
        there = {*tracked, *self._manifest.directories}
        there |= {above for path in self._manifest.directories for above in directories_above(path)}
        for entry in self._manifest.entries:
            if entry.state.kind is not FileKind.ABSENT:
                there.update(directories_above(entry.path))
        return there

    def _touched_since(self, paths: Iterable[str]) -> list[str]:
        with Tree(self._directory) as tree:
            looks = {path: tree.look(path) for path in paths}
        return [path for path, seen in looks.items() if seen is not None and seen.st_ctime_ns >= self._manifest.at_ns]

    async def _add(
        self, before: dict[str, FileState], rules: dict[str, bytes] | None = None, *, guessed: bool = False
    ) -> None:
        """Take down what is not what it was. `guessed`: of the permissions before only is known who may run it."""
        room = CHANGES_LIMIT - len(self._changes)
        self._left += max(0, len(before) - room)
        paths = list(before)[: max(0, room)]
        for entry in await on_disk(self._keeper.after, self._directory, paths, self._budget):
            change = FileChange(entry.path, self._fuller(entry, before[entry.path], guessed=guessed), entry.state)
            no_file = entry.directory and change.before.kind is FileKind.ABSENT
            if no_file or change.before.same_as(change.after):
                continue
            self._changes[entry.path] = change
            if is_rules(entry.path):
                self._looser |= await on_disk(self._loosens, change, (rules or {}).get(entry.path))

    def _fuller(self, entry: Entry, before: FileState, *, guessed: bool) -> FileState:
        """What was before, with permissions as far as they are known: those that still stand are not made looser."""
        after = entry.state
        if guessed and before.kind is after.kind is FileKind.FILE and not (before.mode ^ after.mode) & 0o100:
            return msgspec.structs.replace(before, mode=after.mode)
        if before.kind in (FileKind.FILE, FileKind.LINK) and after.kind not in (FileKind.FILE, FileKind.LINK):
            return msgspec.structs.replace(before, above=modes_above(entry.path, self._manifest.rooms))
        return before

    def _loosens(self, change: FileChange, old: bytes | None) -> bool:
        if old is None and change.before.kept:
            old = self._blobs.get(change.before.digest)
        before = b"" if change.before.kind is FileKind.ABSENT else old
        if change.after.kind is FileKind.ABSENT:
            return loosens(before, b"")
        return loosens(before, self._blobs.get(change.after.digest) if change.after.kept else None)

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
