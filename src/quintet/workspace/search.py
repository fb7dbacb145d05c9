"""Searching the files of a workspace: lines that fit an expression, files that fit a glob. Two engines give the same
answers, ripgrep and a Python program of ours; both follow the ignore rules and no symlink, and both can be killed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from quintet.domain.errors import Invalid
from quintet.workspace.environment import find_program
from quintet.workspace.globs import Glob
from quintet.workspace.handles import open_below
from quintet.workspace.ignore import KINDS
from quintet.workspace.paths import Place, contains

if TYPE_CHECKING:
    from quintet.workspace.search_python import Python

TIMEOUT_S = 30.0


class Query(msgspec.Struct, frozen=True):
    pattern: str
    ignore_case: bool = False
    before: int = 0  # lines of context
    after: int = 0
    glob: str = ""
    rows: int = 0  # matching lines to tell; all are counted
    multiline: bool = False  # an expression may go over several lines, and `.` means their ends, too
    ignored: bool = False  # search what the ignore rules leave out, too
    occurrences: bool = False  # count each match in a line; only where no rows are told
    prefix: str = ""  # what a path from the start needs in front to be read from elsewhere; set by Search

    def wants(self, path: str, glob: Glob) -> bool:
        """A glob may be meant from where the search starts or from the working directory."""
        return glob.covers(path) or glob.covers(self.prefix + path)


class Line(NamedTuple):
    number: int
    matches: bool  # else it is context
    text: str
    column: int = 0  # of the first match in it, counted from 1; 0: it is context


class Hits(NamedTuple):
    path: str  # as people read it: from the working directory where that is possible
    lines: int  # that match; or matches, where occurrences are counted
    rows: tuple[Line, ...] = ()


class Findings(NamedTuple):
    files: list[Hits]  # by path; the first of them with their rows
    notes: tuple[str, ...] = ()  # what is missing, and why

    @property
    def lines(self) -> int:
        return sum(hits.lines for hits in self.files)


class Site(NamedTuple):
    """Where a search happens, held by a handle: what was checked is what is searched."""

    handle: int
    root: str
    start: str  # from the root, a directory
    name: str  # the one file in it that is meant, if one is

    @property
    def path(self) -> str:
        return os.path.join(self.root, self.start) if self.start else self.root


class Engine(Protocol):
    """Paths in what it finds are from the start."""

    async def lines(self, query: Query) -> Findings: ...

    async def files(self, glob: Glob, *, ignored: bool) -> Findings: ...


class Search:
    """`hidden` are places that are not there for anybody, such as Quintet's home, unless one works in them."""

    def __init__(self, environment: Mapping[str, str], hidden: tuple[str, ...] = ()) -> None:
        self._environment = {name: environment[name] for name in ("PATH", "TMPDIR") if name in environment}
        self._environment["LC_ALL"] = "C.UTF-8"
        self._hidden = tuple(os.path.realpath(path) for path in hidden if path)

    async def lines(self, place: Place, query: Query) -> Findings:
        """Lines that fit. Invalid for an expression nobody can read, OSError for a place that is not there."""
        with _site(place) as site:
            base = os.path.dirname(place.shown) if site.name else place.shown
            prefix = "" if base in ("", os.curdir) else base.rstrip("/") + "/"
            query = msgspec.structs.replace(query, prefix=prefix)
            return _shown(prefix, await self._engine(site).lines(query))

    async def files(self, place: Place, glob: Glob, *, directories: bool = False, ignored: bool = False) -> Findings:
        """Files whose path from the place, which is a directory, fits; `directories`: and directories, which have a
        slash behind them. `ignored`: also what the ignore rules leave out."""
        with _site(place) as site:
            if site.name:
                raise Invalid(f"{place.shown} is not a directory.", next_step="Give the directory it lies in.")
            prefix = "" if place.shown == os.curdir else place.shown.rstrip("/") + "/"
            if directories:
                return _shown(prefix, await self._own_engine(site).entries(glob, ignored=ignored))
            return _shown(prefix, await self._engine(site).files(glob, ignored=ignored))

    def _own_engine(self, site: Site) -> Python:
        from quintet.workspace.search_python import Python

        return Python(self._environment, site, self._unseen(site))

    def _unseen(self, site: Site) -> list[str]:
        return [place for place in self._hidden if not contains(place, site.root)]

    def _engine(self, site: Site) -> Engine:
        """Imported when needed: most turns search nothing."""
        parents = self._rules_of_parents(site)
        ripgrep = find_program("rg", self._environment)
        if ripgrep and parents is not None:
            from quintet.workspace.search_ripgrep import Ripgrep

            return Ripgrep(ripgrep, self._environment, site, self._unseen(site), parents=parents)
        return self._own_engine(site)

    def _rules_of_parents(self, site: Site) -> bool | None:
        """Whether ripgrep may look for rules above the start. It knows no root and would go up to `/`, while rules
        above the workspace do not count here. None: it cannot be told what counts, and the other engine has to do it.
        """
        if not is_utf_8("".join((site.name, site.path, *self._hidden))):
            return None  # ripgrep's globs, which it needs for a single file and for what is hidden, are UTF-8
        if not _any_above(site.root):
            return True
        places = []
        inner = site.start
        while inner:
            inner = os.path.dirname(inner)
            places.append(os.path.join(site.root, inner) if inner else site.root)
        return None if any(_speaks(path, (*KINDS, ".git/info/exclude", ".git")) for path in places) else False


def _shown(prefix: str, findings: Findings) -> Findings:
    if not prefix:
        return findings
    return Findings([hits._replace(path=prefix + hits.path) for hits in findings.files], findings.notes)


@contextmanager
def _site(place: Place) -> Iterator[Site]:
    names, name = place.names, ""
    try:
        handle = open_below(place.root, names, readable=True)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP) or not names:
            raise
        names, name = names[:-1], names[-1]
        handle = open_below(place.root, names, readable=True)
    try:
        if name and not stat.S_ISREG(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
            raise Invalid(f"{place.shown} is neither a directory nor a regular file.")
        yield Site(handle, place.root, os.sep.join(names), name)
    finally:
        os.close(handle)


def unread_note(places: Sequence[str]) -> tuple[str, ...]:
    if not places:
        return ()
    count = "one place" if len(places) == 1 else f"{len(places)} places, such as"
    return (f"could not be read: {count} {places[0]}",)


def is_utf_8(path: str) -> bool:
    return path.isprintable() or not any("\ud800" <= char <= "\udfff" for char in path)


def _any_above(root: str) -> bool:
    """Whether a rule of somewhere above the root would reach into it. In a repository those of git do not."""
    kinds = KINDS[:2] if os.path.exists(os.path.join(root, ".git")) else (*KINDS, ".git")
    above = os.path.dirname(root)
    while True:
        if _speaks(above, kinds):
            return True
        if above == os.path.dirname(above):
            return False
        above = os.path.dirname(above)


def _speaks(directory: str, names: tuple[str, ...]) -> bool:
    return any(os.path.lexists(os.path.join(directory, name)) for name in names)
