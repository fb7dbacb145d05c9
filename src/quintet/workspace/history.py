"""WorkspaceHistory: puts a workspace's files aside before a call, tells afterwards what the call changed, brings files
back. Knows files, blobs and git; nothing of threads, calls or who may do what.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from quintet.domain.checkpoint import Compared, FileChange, FileKind, FileState, Secured
from quintet.domain.errors import STORAGE_ERRORS, Invalid, QuintetError, StorageDamaged
from quintet.domain.ports import Clock
from quintet.workspace.blobs import YOUNG_S, Blobs, digest_of
from quintet.workspace.files import on_disk, together
from quintet.workspace.git import Git, GitFailed, Index, read_index
from quintet.workspace.git_layout import Layout, layout_of
from quintet.workspace.history_age import later_ones, now_ns, pass_by
from quintet.workspace.history_compare import Comparison
from quintet.workspace.history_git import PASSED_LIMIT, look
from quintet.workspace.history_keeping import Keeper
from quintet.workspace.history_manifest import NAMED_LIMIT, Budget, Manifest, unpack
from quintet.workspace.history_modes import file_modes, modes_above, room_modes
from quintet.workspace.history_objects import read_objects
from quintet.workspace.history_others import OthersMemory
from quintet.workspace.history_putting import Putting
from quintet.workspace.history_stop import stoppable
from quintet.workspace.history_walk import walk
from quintet.workspace.paths import contains
from quintet.workspace.protected import is_protected
from quintet.workspace.tree import Tree, inner_path

_HELD_BYTES, _HELD_FILES = 32 * 1024 * 1024, 500  # contents held in memory on their way back


class WorkspaceHistory:
    """Plays domain.ports.FileHistory. `home` is Quintet's own directory: the blobs are there, and it is never part of
    what is put aside."""

    def __init__(self, home: str, environment: Mapping[str, str], clock: Clock) -> None:
        self._home = os.path.realpath(home)
        self._clock = clock
        self._scratch = os.path.join(self._home, "blobs", ".scratch")
        self._blobs = Blobs(self._home, clock)
        self._git = Git(environment, self._scratch)
        self._keeper = Keeper(self._blobs)
        self._memory = OthersMemory()
        self._better: dict[str, tuple[str, int]] = {}  # digest of a stale index -> blob and time of the refreshed one

    async def secure(self, directory: str, paths: Sequence[str] | None = None) -> Secured:
        directory = await on_disk(os.path.realpath, directory)
        notes: list[str] = []
        if paths is not None:
            budget = Budget(NAMED_LIMIT)
            inner = sorted({inner_path(directory, path) for path in paths})
            entries = await stoppable(self._keeper.before, directory, inner, budget)
            manifest = Manifest("paths", now_ns(), tuple(entries))
        else:
            budget = Budget()
            manifest = await self._everything(directory, budget, notes)
        notes += budget.words()
        digest = await on_disk(self._seal, manifest)
        return Secured(directory, digest, budget.files, budget.bytes, tuple(notes))

    def _seal(self, manifest: Manifest) -> str:
        digest = self._blobs.put(manifest.pack())
        pass_by(manifest.at_ns)  # last: the disk takes most of that time
        return digest

    async def still_runs(self, secured: Secured) -> None:
        # The manifest belongs to this one call and nobody else touches it: its age is the time of the last such word.
        if secured.manifest:
            await on_disk(self._blobs.refresh, secured.manifest)

    async def compare(self, secured: Secured, *, cut_off: bool = False) -> Compared:
        compared = await self._compare(secured)
        if not cut_off or not compared.changes:
            return compared
        ran_ns = await on_disk(self._blobs.refreshed_ns, secured.manifest)
        late = await on_disk(later_ones, secured.directory, compared.changes, ran_ns)
        return msgspec.structs.replace(compared, late=tuple(late))

    async def _compare(self, secured: Secured) -> Compared:
        manifest = await on_disk(self._manifest, secured.manifest) if secured.manifest else None
        if manifest is None:
            return Compared(partial=("what was put aside before the call is gone, so its changes cannot be told",))
        comparison = Comparison(secured.directory, manifest, self._keeper, self._blobs, self._hides, self._memory)
        if manifest.way == "paths":
            return await comparison.of_paths()
        if manifest.way == "walk":
            return await comparison.of_walk()
        try:
            layout = await on_disk(layout_of, secured.directory)
            data = await on_disk(self._blobs.get, manifest.index) if manifest.index else None
            if layout is None or (data is None and manifest.index):
                raise GitFailed("the repository, or the copy of its index, is gone")
            index = None if data is None else Index(data, manifest.index_ns)
            async with self._git.opened(layout, index) as repository:
                return await comparison.of_git(repository)
        except (GitFailed, StorageDamaged) as error:
            why = f"git could not be asked ({error}): changes to files that were clean before are not told"
            return await comparison.of_paths(why)

    async def states(self, directory: str, paths: Sequence[str], *, keep: bool = False) -> list[FileState]:
        directory = await on_disk(os.path.realpath, directory)
        inner = [inner_path(directory, path) for path in paths]
        budget = Budget(NAMED_LIMIT) if keep else None
        entries = await on_disk(self._keeper.after, directory, inner, budget)
        if not keep:
            return [entry.state for entry in entries]
        rooms = await on_disk(room_modes, directory, inner, ())
        return [msgspec.structs.replace(e.state, above=modes_above(e.path, rooms)) for e in entries]

    async def put(self, directory: str, path: str, state: FileState, expected: FileState | None = None) -> None:
        directory = await on_disk(os.path.realpath, directory)
        path = inner_path(directory, path)
        (data,) = await self._contents(directory, [state])
        await on_disk(self._put, directory, path, state, data, expected)

    async def put_all(self, directory: str, changes: Sequence[FileChange]) -> list[QuintetError | OSError | None]:
        directory = await on_disk(os.path.realpath, directory)
        failed: list[QuintetError | OSError | None] = []
        for batch in _batches(changes):
            contents = await self._contents(directory, [change.after for change in batch])
            failed += await on_disk(self._put_batch, directory, batch, contents)
        return failed

    def _put_batch(
        self, directory: str, changes: Sequence[FileChange], contents: Sequence[bytes | QuintetError | None]
    ) -> list[QuintetError | OSError | None]:
        failed: list[QuintetError | OSError | None] = []
        for change, data in zip(changes, contents, strict=True):
            try:
                path = inner_path(directory, change.path)
                self._put(directory, path, change.after, data, change.before)
            except STORAGE_ERRORS as error:
                if isinstance(data, QuintetError):  # of this one content
                    failed.append(error)
                    continue
                raise
            except (QuintetError, OSError) as error:
                failed.append(error)
            else:
                failed.append(None)
        return failed

    def _put(
        self,
        directory: str,
        path: str,
        state: FileState,
        data: bytes | QuintetError | None,
        expected: FileState | None,
    ) -> None:
        if self._hides(os.path.join(directory, path)) or is_protected(directory, path):
            raise Invalid(f"{path} is protected and was left as it is.", next_step="Change it by hand if you mean to.")
        if state.kind is FileKind.OTHER:
            raise Invalid(f"What stood at {path} was no file that could be kept.")
        if isinstance(data, QuintetError):
            raise data
        if data is None and state.kind is not FileKind.ABSENT:
            raise Invalid(
                f"The content of {path} was not kept, so it cannot be brought back.",
                next_step="The checkpoint says why it is partial.",
            )

        def state_of(inner: str) -> FileState:
            return self._keeper.after(directory, [inner], None)[0].state

        Putting(directory, path, state_of).put(state, data or b"", expected)

    async def content(self, directory: str, state: FileState) -> bytes | None:
        (data,) = await self._contents(await on_disk(os.path.realpath, directory), [state])
        if isinstance(data, QuintetError):
            raise data
        return data

    async def _contents(self, directory: str, states: Sequence[FileState]) -> list[bytes | QuintetError | None]:
        """From the blob store, the others from git in one go; what is damaged is told in its place."""
        found = await on_disk(self._blobs_of, states)
        missing = {s.git for s, data in zip(states, found, strict=True) if data is None and s.git}
        layout = await on_disk(layout_of, directory) if missing else None
        if layout is None:
            return found
        try:
            async with self._git.opened(layout, None) as repository:
                objects = await read_objects(repository, sorted(missing))
        except GitFailed:
            return found
        for place, state in enumerate(states):
            data = objects.get(state.git) if found[place] is None else None
            if data is not None and digest_of(data) == state.digest:
                found[place] = data
        return found

    def _blobs_of(self, states: Sequence[FileState]) -> list[bytes | QuintetError | None]:
        found: list[bytes | QuintetError | None] = []
        for state in states:
            try:
                found.append(self._blobs.get(state.digest) if state.digest else None)
            except StorageDamaged as error:
                found.append(error)
        return found

    async def sweep(self, keep: Collection[str], manifests: Collection[str]) -> tuple[int, int]:
        return await on_disk(self._sweep, keep, manifests)

    def _sweep(self, keep: Collection[str], manifests: Collection[str]) -> tuple[int, int]:
        wanted = {*keep, *manifests}
        for digest in manifests:
            manifest = self._manifest(digest)
            wanted |= manifest.blobs() if manifest is not None else set()
        if os.path.isdir(self._scratch):
            for entry in os.scandir(self._scratch):  # left by processes that died
                if entry.stat(follow_symlinks=False).st_mtime < self._clock.now_ms() / 1000 - YOUNG_S:
                    shutil.rmtree(entry.path, ignore_errors=True)
        return self._blobs.sweep(wanted)

    def _manifest(self, digest: str) -> Manifest | None:
        try:
            data = self._blobs.get(digest)
        except StorageDamaged:
            return None
        return None if data is None else unpack(data)

    def _hides(self, path: str) -> bool:
        return contains(self._home, path)

    async def _everything(self, directory: str, budget: Budget, notes: list[str]) -> Manifest:
        layout = await on_disk(layout_of, directory)
        if layout is not None:
            try:
                return await self._dirty(layout, budget, notes)
            except GitFailed as error:
                notes.append(f"git could not be asked ({error}), so every file was looked at instead")
        walked = await stoppable(walk, directory, self._hides)
        notes += walked.notes()
        entries = await stoppable(self._keeper.before, directory, [*walked.files, *walked.rules], budget)
        rooms = await on_disk(room_modes, directory, walked.files, walked.directories)
        return Manifest("walk", now_ns(), tuple(entries), rooms=rooms, cut=walked.cut, directories=walked.directories)

    async def _dirty(self, layout: Layout, budget: Budget, notes: list[str]) -> Manifest:
        """In git: what is not as in the index. The index itself is kept, to ask again with it afterwards."""
        index = await on_disk(self._index, layout)
        async with self._git.opened(layout, index) as repository:
            keeping = on_disk(self._keep_index, index)
            (found, better), digest = await together(look(repository, self._memory, settle=True), keeping)
        if better is not None and index is not None:
            stale, digest = digest, await on_disk(self._keep_index, better)
            self._better = {stale: (digest, better.mtime_ns)}  # the last one: there is mostly one such tree
            index = Index(better.data, better.mtime_ns, index.mode)
        paths = sorted({*(file.path for file in found.changed), *found.others, *found.rules})
        if 0 < len(found.passed) <= PASSED_LIMIT:
            paths += await on_disk(_standing, layout.top, sorted({*found.passed} - {*paths}))
        mine = [path for path in paths if not self._hides(os.path.join(layout.top, path))]
        entries = await stoppable(self._keeper.before, layout.top, mine, budget)
        moment = now_ns()
        clean = sorted({*found.tracked} - {*paths})

        def manifest() -> Manifest:
            notes.extend(found.notes(layout))
            plain = index.mode & 0o666 if index else 0o644
            return Manifest(
                "git",
                moment,
                tuple(entries),
                index=digest,
                index_ns=index.mtime_ns if index else 0,
                plain_mode=plain,
                modes=file_modes(layout.top, clean, plain) if found.tracked else None,
                rooms=room_modes(layout.top, [*clean, *mine], found.directories),
                exclude=layout.exclude_digest(),
                directories=found.directories,
            )

        return await on_disk(manifest)

    def _index(self, layout: Layout) -> Index | None:
        index = read_index(layout)
        if index is None or not self._better:
            return index
        digest, mtime_ns = self._better.get(digest_of(index.data), ("", 0))
        data = self._blobs.get(digest) if digest else None
        return index if data is None else Index(data, mtime_ns, index.mode)

    def _keep_index(self, index: Index | None) -> str:
        return "" if index is None else self._blobs.put(index.data, packed=False)


def _standing(directory: str, paths: Sequence[str]) -> list[str]:
    with Tree(directory) as tree:
        return [path for path in paths if tree.look(path) is not None]


def _batches(changes: Sequence[FileChange]) -> Iterator[list[FileChange]]:
    """As many as can be held at once."""
    batch: list[FileChange] = []
    held = 0
    for change in changes:
        if batch and (held + change.after.size > _HELD_BYTES or len(batch) >= _HELD_FILES):
            yield batch
            batch, held = [], 0
        batch.append(change)
        held += change.after.size
    if batch:
        yield batch
