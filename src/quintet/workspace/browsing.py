"""Browsing: a workspace as clients look at it, through the path guard and with its ignore rules. Reads, never writes.

Plays domain.ports.WorkspaceFiles. What is refused is told without the path: who asks may not be who should know it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from quintet.domain.errors import Invalid, NotFound
from quintet.domain.ports import Content, Entry, Match
from quintet.workspace.files import on_disk, open_directory, open_regular
from quintet.workspace.globs import Glob
from quintet.workspace.ignore import Ignored
from quintet.workspace.paths import PathGuard, Place, is_path
from quintet.workspace.search import Query, Search

OUTSIDE = "This path does not lie in the project, or cannot be read there."
MISSING = "There is nothing at this path."
PATTERN_LENGTH = 2_000
TEXT_LENGTH = 2_000  # characters of a line that matches


class Browsing:
    def __init__(self, guard: PathGuard, environment: Mapping[str, str], hidden: tuple[str, ...]) -> None:
        self._guard = guard
        self._search = Search(environment, hidden)

    async def entries(self, root: str, path: str) -> list[Entry]:
        def listed() -> list[Entry]:
            place = self._place(root, path)
            directory = open_directory(place)
            try:
                ignored = Ignored(place.root)
                with os.scandir(directory) as found:
                    seen = [entry for entry in found if not self._guard.hides(os.path.join(place.path, entry.name))]
                    made = [self._entry(place, entry, ignored) for entry in seen]
            finally:
                os.close(directory)
            return sorted(made, key=lambda entry: (not entry.directory, entry.path))

        with _plainly("This is no directory."):
            return await on_disk(listed)

    def _entry(self, place: Place, entry: os.DirEntry[str], ignored: Ignored) -> Entry:
        path = "/".join((*place.names, entry.name))
        is_dir = self._leads_to_directory(place, entry)
        return Entry(_readable(path), is_dir, ignored.ignores(path, is_dir=is_dir), is_path(path))

    def _leads_to_directory(self, place: Place, entry: os.DirEntry[str]) -> bool:
        """A link to a directory is one, as long as it stays in the workspace."""
        if not entry.is_symlink():
            return entry.is_dir(follow_symlinks=False)
        try:
            inside = self._guard.reading("/".join((*place.names, entry.name)), place.root)
        except Invalid:
            return False
        return os.path.isdir(inside.path)

    async def content(self, root: str, path: str, limit: int) -> Content:
        def read() -> Content:
            place = self._place(root, path)
            with os.fdopen(open_regular(place), "rb") as file:
                data = file.read(limit + 1)
            kept = data[:limit]
            return Content("/".join(place.names), kept, len(data) > limit, _is_text(kept, cut=len(data) > limit))

        with _plainly("This is no file."):
            return await on_disk(read)

    async def find(self, root: str, words: str, *, directories: bool, files: bool, limit: int) -> list[Entry]:
        """Whatever has these words in its path, the closest first: in the name, then anywhere."""

        def walked() -> list[Entry]:
            wanted = words.casefold()
            ignored = Ignored(self._place(root, "/").root, self._guard.hides)
            found = [
                Entry(_readable(found.path), directory=False, readable=is_path(found.path)) for found in ignored.walk()
            ]
            found = found if files else []
            if directories:
                found += [Entry(_readable(path), directory=True, readable=is_path(path)) for path in ignored.entered]
            fitting = [entry for entry in found if wanted in entry.path.casefold()]
            return sorted(fitting, key=lambda entry: _closeness(entry.path, wanted))[:limit]

        with _plainly(MISSING):
            return await on_disk(walked)

    async def grep(self, root: str, pattern: str, glob: str, limit: int) -> tuple[list[Match], bool]:
        if not pattern or len(pattern) > PATTERN_LENGTH or any(c in pattern + glob for c in "\0\n"):
            raise Invalid(f"A pattern is one line of 1 to {PATTERN_LENGTH} characters.")
        Glob(glob)
        with _plainly(MISSING):
            place = await on_disk(self._place, root, "/")
            found = await self._search.lines(place, Query(pattern, glob=glob, rows=limit))
        matches = [
            Match(_readable(hits.path), row.number, row.column, row.text.rstrip("\r")[:TEXT_LENGTH])
            for hits in found.files
            for row in hits.rows
            if row.matches
        ]
        return matches[:limit], found.lines > limit or bool(found.notes)

    def _place(self, root: str, path: str) -> Place:
        inner = path.lstrip("/")
        try:
            return self._guard.reading(inner or os.curdir, root)
        except Invalid:
            raise Invalid(OUTSIDE, next_step="Paths begin at the project's root.") from None


@contextmanager
def _plainly(otherwise: str) -> Iterator[None]:
    """What the system says about a path, without the path."""
    try:
        yield
    except (FileNotFoundError, ProcessLookupError):
        raise NotFound(MISSING, next_step="List what is there.") from None
    except (NotADirectoryError, IsADirectoryError):
        raise Invalid(otherwise) from None
    except Invalid as error:
        kind = error.message.rpartition(" is ")[2]
        if kind in ("a directory.", "not a regular file."):
            raise Invalid(otherwise) from None
        raise
    except OSError:
        raise Invalid(OUTSIDE) from None


def _readable(path: str) -> str:
    """A name that is no UTF-8 can be shown, if not asked for."""
    return os.fsencode(path).decode("utf-8", "replace")


def _is_text(data: bytes, *, cut: bool) -> bool:
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return cut and error.start >= len(data) - 3  # the last character was cut in two
    return True


def _closeness(path: str, wanted: str) -> tuple[bool, bool, int, str]:
    name = path.rpartition("/")[2].casefold()
    return wanted != name, wanted not in name, len(path), path
