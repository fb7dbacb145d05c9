"""WorkspaceHistory: puts a workspace's files aside before a call, tells afterwards what the call changed, brings files
back. Knows files, blobs and git; nothing of threads, calls or who may do what.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection, Mapping, Sequence

import msgspec

from quintet.domain.checkpoint import Compared, FileKind, FileState, Secured
from quintet.domain.errors import Invalid, StorageDamaged
from quintet.domain.ports import Clock
from quintet.workspace.blobs import YOUNG_S, Blobs, digest_of
from quintet.workspace.files import on_disk
from quintet.workspace.git import Git, GitFailed, Index, read_index
from quintet.workspace.git_layout import Layout, layout_of
from quintet.workspace.history_age import now_ns
from quintet.workspace.history_compare import Comparison
from quintet.workspace.history_git import PASSED_LIMIT, look, together
from quintet.workspace.history_keeping import Keeper
from quintet.workspace.history_manifest import NAMED_LIMIT, Budget, Manifest, unpack
from quintet.workspace.history_modes import file_modes, make_directories, modes_above, room_modes
from quintet.workspace.history_objects import read_objects
from quintet.workspace.history_walk import walk
from quintet.workspace.paths import contains
from quintet.workspace.protected import is_protected
from quintet.workspace.tree import Tree, inner_path


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
        self._better: dict[str, tuple[str, int]] = {}  # digest of a stale index -> blob and time of the refreshed one

    async def secure(self, directory: str, paths: Sequence[str] | None = None) -> Secured:
        directory = await on_disk(os.path.realpath, directory)
        notes: list[str] = []
        if paths is not None:
            budget = Budget(NAMED_LIMIT)
            inner = sorted({inner_path(directory, path) for path in paths})
            entries = await on_disk(self._keeper.before, directory, inner, budget)
            manifest = Manifest("paths", now_ns(), tuple(entries))
        else:
            budget = Budget()
            manifest = await self._everything(directory, budget, notes)
        notes += budget.words()
        digest = await on_disk(self._blobs.put, manifest.pack())
        return Secured(directory, digest, budget.files, budget.bytes, tuple(notes))

    async def compare(self, secured: Secured) -> Compared:
        manifest = await on_disk(self._manifest, secured.manifest) if secured.manifest else None
        if manifest is None:
            return Compared(partial=("what was put aside before the call is gone, so its changes cannot be told",))
        comparison = Comparison(secured.directory, manifest, self._keeper, self._blobs, self._hides)
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

    async def put(self, directory: str, path: str, state: FileState) -> None:
        directory = await on_disk(os.path.realpath, directory)
        path = inner_path(directory, path)
        if self._hides(os.path.join(directory, path)) or await on_disk(is_protected, directory, path):
            raise Invalid(f"{path} is protected and was left as it is.", next_step="Change it by hand if you mean to.")
        if state.kind is FileKind.OTHER:
            raise Invalid(f"What stood at {path} was no file that could be kept.")
        data = b"" if state.kind is FileKind.ABSENT else await self.content(directory, state)
        if data is None:
            raise Invalid(
                f"The content of {path} was not kept, so it cannot be brought back.",
                next_step="The checkpoint says why it is partial.",
            )
        await on_disk(_put, directory, path, state, data)

    async def content(self, directory: str, state: FileState) -> bytes | None:
        if not state.digest:
            return None
        data = await on_disk(self._blobs.get, state.digest)
        if data is not None or not state.git:
            return data
        layout = await on_disk(layout_of, await on_disk(os.path.realpath, directory))
        if layout is None:
            return None
        try:
            async with self._git.opened(layout, None) as repository:
                found = (await read_objects(repository, [state.git])).get(state.git)
        except GitFailed:
            return None
        return found if found is not None and digest_of(found) == state.digest else None

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
        walked = await on_disk(walk, directory, self._hides)
        notes += walked.notes()
        entries = await on_disk(self._keeper.before, directory, [*walked.files, *walked.rules], budget)
        rooms = await on_disk(room_modes, directory, walked.files, walked.directories)
        return Manifest("walk", now_ns(), tuple(entries), rooms=rooms, cut=walked.cut, directories=walked.directories)

    async def _dirty(self, layout: Layout, budget: Budget, notes: list[str]) -> Manifest:
        """In git: what is not as in the index. The index itself is kept, to ask again with it afterwards."""
        index = await on_disk(self._index, layout)
        async with self._git.opened(layout, index) as repository:
            keeping = on_disk(self._keep_index, index)
            (found, better), digest = await together(look(repository, settle=True), keeping)
        if better is not None and index is not None:
            stale, digest = digest, await on_disk(self._keep_index, better)
            self._better = {stale: (digest, better.mtime_ns)}  # the last one: there is mostly one such tree
            index = Index(better.data, better.mtime_ns, index.mode)
        paths = sorted({*(file.path for file in found.changed), *found.others, *found.rules})
        if len(found.passed) <= PASSED_LIMIT:
            paths += await on_disk(_standing, layout.top, sorted({*found.passed} - {*paths}))
        mine = [path for path in paths if not self._hides(os.path.join(layout.top, path))]
        entries = await on_disk(self._keeper.before, layout.top, mine, budget)
        notes += await on_disk(found.notes, layout)
        plain = index.mode & 0o666 if index else 0o644
        clean = sorted({*found.tracked} - {*paths})
        return Manifest(
            "git",
            now_ns(),
            tuple(entries),
            index=digest,
            index_ns=index.mtime_ns if index else 0,
            plain_mode=plain,
            modes=await on_disk(file_modes, layout.top, clean, plain) if found.tracked else None,
            rooms=await on_disk(room_modes, layout.top, [*clean, *mine], found.directories),
            exclude=await on_disk(layout.exclude_digest),
            directories=found.directories,
        )

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


def _put(directory: str, path: str, state: FileState, data: bytes) -> None:
    make_directories(directory, path, state.above)
    with Tree(directory) as tree:
        if state.kind is FileKind.ABSENT:
            tree.remove(path, directories=state.bare)
            return
        if state.kind is FileKind.LINK:
            tree.place_link(path, data)
            return
        found = tree.look(path)
        if found is not None and stat.S_ISREG(found.st_mode) and tree.read(path, len(data))[0] == data:
            tree.set_mode(path, state.mode)  # the file itself stays, with its other names
        else:
            tree.place_file(path, data, state.mode)
