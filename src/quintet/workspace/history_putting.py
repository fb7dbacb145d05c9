"""Putting: makes a path what a state says, but only while it still is what was expected there. Blocking.

Somebody may save a file in the very moment it is brought back. So the old and the new one change places in one move,
and only then the old one is looked at: when it is not what was expected, they change back and nothing is lost.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator

from quintet.domain.checkpoint import FileKind, FileState
from quintet.domain.errors import Drifted, Invalid
from quintet.workspace.handles import open_below
from quintet.workspace.history_modes import make_directories
from quintet.workspace.kernel import exchange, rename_new
from quintet.workspace.tree import Tree

StateOf = Callable[[str], FileState]
_FILES = (FileKind.FILE, FileKind.LINK)


class Putting:
    """One path below a directory."""

    def __init__(self, directory: str, path: str, state_of: StateOf) -> None:
        self._directory = directory
        self._path = path
        self._room, _, self._name = path.rpartition("/")
        self._state_of = state_of

    def put(self, state: FileState, data: bytes, expected: FileState | None) -> None:
        """`data` is the content of the state. Without an expectation, or over what is no file, no look is taken."""
        make_directories(self._directory, self._path, state.above)
        with Tree(self._directory) as tree:
            if expected is None or expected.kind is FileKind.OTHER:
                self._place(tree, self._path, state, data)
            elif state.kind is FileKind.ABSENT:
                self._remove(tree, state, expected)
            elif not self._is_content(tree, state, data):
                self._replace(tree, state, data, expected)
            else:
                tree.set_mode(self._path, state.mode)  # the file itself stays, with its other names

    def _place(self, tree: Tree, path: str, state: FileState, data: bytes) -> None:
        if state.kind is FileKind.ABSENT:
            tree.remove(path, directories=state.bare)
        elif state.kind is FileKind.LINK:
            tree.place_link(path, data)
        elif self._is_content(tree, state, data):
            tree.set_mode(path, state.mode)
        else:
            tree.place_file(path, data, state.mode)

    def _is_content(self, tree: Tree, state: FileState, data: bytes) -> bool:
        found = tree.look(self._path)
        is_file = found is not None and stat.S_ISREG(found.st_mode) and state.kind is FileKind.FILE
        return is_file and tree.read(self._path, len(data))[0] == data

    def _replace(self, tree: Tree, state: FileState, data: bytes, expected: FileState) -> None:
        aside = self._passing()
        self._place_aside(tree, self._beside(aside), state, data)
        with self._handle() as handle:
            mine = os.stat(aside, dir_fd=handle, follow_symlinks=False).st_ino
            try:
                if expected.kind is FileKind.ABSENT:
                    self._into_nothing(handle, aside)
                else:
                    self._swap(handle, aside, expected)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    if os.stat(aside, dir_fd=handle, follow_symlinks=False).st_ino != mine:
                        raise self._twice(aside) from None
                    os.unlink(aside, dir_fd=handle)
                raise

    def _place_aside(self, tree: Tree, beside: str, state: FileState, data: bytes) -> None:
        try:
            if state.kind is FileKind.LINK:
                tree.place_link(beside, data)
            else:
                tree.place_file(beside, data, state.mode)
        except Invalid as error:
            raise Invalid(error.message.replace(beside, self._path)) from error

    def _into_nothing(self, handle: int, aside: str) -> None:
        with contextlib.suppress(OSError):
            os.rmdir(self._name, dir_fd=handle)  # an empty directory holds nothing
        try:
            if rename_new(handle, aside, self._name):
                return
            os.link(aside, self._name, src_dir_fd=handle, dst_dir_fd=handle, follow_symlinks=False)
            os.unlink(aside, dir_fd=handle)
        except FileExistsError as error:
            raise self._drifted() from error

    def _swap(self, handle: int, aside: str, expected: FileState) -> None:
        try:
            swapped = exchange(handle, aside, self._name)
        except FileNotFoundError as error:
            raise self._drifted() from error
        if not _meets(self._state_of(self._beside(aside) if swapped else self._path), expected):
            if swapped:
                exchange(handle, aside, self._name)
            raise self._drifted()
        if swapped:
            os.unlink(aside, dir_fd=handle)
        else:  # a system that cannot: the look came right before the move
            os.rename(aside, self._name, src_dir_fd=handle, dst_dir_fd=handle)

    def _remove(self, tree: Tree, state: FileState, expected: FileState) -> None:
        if expected.kind is FileKind.ABSENT:
            if self._state_of(self._path).kind is not FileKind.ABSENT:
                raise self._drifted()
            return
        aside = self._passing()
        with self._handle() as handle:
            try:
                moved = rename_new(handle, self._name, aside)
            except FileNotFoundError as error:
                raise self._drifted() from error
            if not _meets(self._state_of(self._beside(aside) if moved else self._path), expected):
                if moved:
                    self._back(handle, aside)
                raise self._drifted()
            os.unlink(aside if moved else self._name, dir_fd=handle)
        # What the directories above are left for is a name nobody has: nothing that came meanwhile is taken.
        tree.remove(self._beside(aside), directories=state.bare)

    def _back(self, handle: int, aside: str) -> None:
        try:
            rename_new(handle, aside, self._name)
        except FileExistsError as error:
            raise self._twice(aside) from error

    def _twice(self, aside: str) -> Drifted:
        words = f"{self._path} was changed in this moment, twice; one of the files is beside it, as {aside}."
        return Drifted(words, next_step="Look at both files.")

    def _drifted(self) -> Drifted:
        words = f"{self._path} was changed in this moment and was left as it is."
        return Drifted(words, next_step="Run it again when nobody else writes there.")

    @contextlib.contextmanager
    def _handle(self) -> Iterator[int]:
        try:
            handle = open_below(self._directory, self._room.split("/") if self._room else ())
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise self._drifted() from error
            raise
        try:
            yield handle
        finally:
            os.close(handle)

    def _passing(self) -> str:
        return f".quintet-{os.urandom(6).hex()}.tmp"

    def _beside(self, name: str) -> str:
        return f"{self._room}/{name}" if self._room else name


def _meets(found: FileState, expected: FileState) -> bool:
    if not expected.digest and expected.kind in _FILES:  # too large to be read: nothing better is known of it
        return (found.kind, found.mode, found.size) == (expected.kind, expected.mode, expected.size)
    return found.same_as(expected)
