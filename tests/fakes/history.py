"""A file history over a real directory that keeps contents in memory: everything in it, nothing ignored, no git."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from quintet.domain.checkpoint import Compared, FileChange, FileKind, FileState, Secured
from quintet.domain.errors import Drifted, Invalid, QuintetError

ABSENT = FileState()


class KeptFiles:
    def __init__(self, *, largest: int = 1 << 20) -> None:
        self.blobs: dict[str, bytes] = {}
        self.largest = largest  # bytes of one file that are still kept
        self.failing: Exception | None = None  # what putting aside fails with
        self.hold: asyncio.Event | None = None  # comparing waits for it
        self.compared = 0
        self.beats: list[str] = []  # the manifests of calls, as often as they were said to run
        self.late: set[str] = set()  # what a call that was cut off is compared to have changed too late

    async def secure(self, directory: str, paths: Sequence[str] | None = None) -> Secured:
        if self.failing is not None:
            raise self.failing
        names = self._all(directory) if paths is None else list(paths)
        found = {name: self._state(directory, name, keep=True) for name in names}
        too_large = [n for n, s in found.items() if s.kind is FileKind.FILE and not s.kept]
        partial = tuple(f"{name} is larger than {self.largest} bytes" for name in too_large)
        manifest = self._keep(msgspec.json.encode([paths is None, found]))
        size = sum(s.size for s in found.values())
        return Secured(directory, manifest, len(found), size, partial)

    async def still_runs(self, secured: Secured) -> None:
        self.beats.append(secured.manifest)

    async def compare(self, secured: Secured, *, cut_off: bool = False) -> Compared:
        self.compared += 1
        if self.hold is not None:
            await self.hold.wait()
        if not secured.manifest:
            return Compared()
        whole, before = msgspec.json.decode(self.blobs[secured.manifest], type=tuple[bool, dict[str, FileState]])
        names = sorted({*before, *(self._all(secured.directory) if whole else ())})
        changes = []
        for name in names:
            old, new = before.get(name, ABSENT), self._state(secured.directory, name, keep=True)
            if not old.same_as(new):
                changes.append(FileChange(name, old, new))
        return Compared(tuple(changes), late=tuple(self.late) if cut_off else ())

    async def states(self, directory: str, paths: Sequence[str], *, keep: bool = False) -> list[FileState]:
        return [self._state(directory, path, keep=keep) for path in paths]

    async def put_all(self, directory: str, changes: Sequence[FileChange]) -> list[QuintetError | OSError | None]:
        failed: list[QuintetError | OSError | None] = []
        for change in changes:
            try:
                await self.put(directory, change.path, change.after, change.before)
            except (QuintetError, OSError) as error:
                failed.append(error)
            else:
                failed.append(None)
        return failed

    async def put(self, directory: str, path: str, state: FileState, expected: FileState | None = None) -> None:
        if expected is not None and not self._state(directory, path, keep=False).same_as(expected):
            raise Drifted(f"{path} was changed in this moment.")
        target = Path(directory, path)
        if state.kind is FileKind.ABSENT:
            target.unlink(missing_ok=True)
            return
        content = await self.content(directory, state)
        if content is None:
            raise Invalid(f"The content of {path} is gone.")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(state.mode)

    async def content(self, directory: str, state: FileState) -> bytes | None:
        return self.blobs.get(state.digest) if state.kept else None

    async def sweep(self, keep: Collection[str], manifests: Collection[str]) -> tuple[int, int]:
        needed = {*keep, *manifests}
        for manifest in manifests:
            _, before = msgspec.json.decode(self.blobs[manifest], type=tuple[bool, dict[str, FileState]])
            needed |= {s.digest for s in before.values()}
        gone = [d for d in self.blobs if d not in needed]
        return len(gone), sum(len(self.blobs.pop(d)) for d in gone)

    def _all(self, directory: str) -> list[str]:
        return [
            os.path.relpath(os.path.join(where, name), directory)
            for where, _, names in os.walk(directory)
            for name in names
        ]

    def _state(self, directory: str, path: str, *, keep: bool) -> FileState:
        target = Path(directory, path)
        try:
            about = target.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        if not stat.S_ISREG(about.st_mode):
            return FileState(FileKind.OTHER)
        content = target.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        kept = len(content) <= self.largest and (keep or digest in self.blobs)
        if kept:
            self._keep(content)
        return FileState(FileKind.FILE, stat.S_IMODE(about.st_mode), len(content), digest, kept)

    def _keep(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[digest] = content
        return digest
