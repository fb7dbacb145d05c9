"""Ignore rules in a tree, as ripgrep applies them: `.gitignore`, `.ignore`, `.rgignore` at every level from the root
down and `.git/info/exclude`, with or without git. Walks by directory handles and follows no symlink.

Rules above the root do not count: a `*` in somebody's home directory must not empty every project in it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import NamedTuple

from quintet.workspace.handles import open_below
from quintet.workspace.ignore_rules import Rules

FILE_LIMIT = 1024 * 1024  # bytes of one ignore file; what is beyond is not read
DEPTH_LIMIT = 400  # directories inside each other: each costs a handle while it is walked
KINDS = (".rgignore", ".ignore", ".gitignore")  # the first that speaks of an entry decides
_REGULAR = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class Found(NamedTuple):
    """Something that is no directory and not ignored."""

    path: str  # from the root
    entry: os.DirEntry[str]  # its `stat(follow_symlinks=False)` is safe
    handle: int  # of the directory it lies in; open only until the walk goes on


class _Scope(NamedTuple):
    """The rules that hold in a directory, by kind, nearest first; each with the length of the path to cut off."""

    custom: tuple[tuple[int, Rules], ...] = ()
    dot: tuple[tuple[int, Rules], ...] = ()
    git: tuple[tuple[int, Rules], ...] = ()
    exclude: tuple[tuple[int, Rules], ...] = ()

    def ignores(self, path: str, name: str, *, is_dir: bool) -> bool:
        if name == ".git":
            return True
        for kind in self:
            for cut, rules in kind:
                verdict = rules.verdict(name, path[cut:], is_dir=is_dir)
                if verdict is not None:
                    return verdict
        return False


class Ignored:
    """What a search, a listing or a checkpoint leaves out under `root`. `hides` names directories that are left out as
    if they were not there (PathGuard.hides)."""

    def __init__(self, root: str, hides: Callable[[str], bool] | None = None, *, rules: bool = True) -> None:
        """Without `rules` only `.git` and what is hidden are left out."""
        self.root = os.path.realpath(root)
        self._rules = rules
        self.entered: list[str] = []  # directories that were walked, from the root
        self.passed: list[str] = []  # directories that the walk did not want to enter, from the root
        self.unread: list[str] = []  # directories that could not be walked, from the root, with the reason
        self._hides = hides
        self._scopes: dict[str, _Scope] = {}

    def ignores(self, path: str, *, is_dir: bool = False) -> bool:
        """Whether an entry, or a directory it lies in, is left out. The path is absolute or from the root."""
        inner = os.path.relpath(os.path.join(self.root, path), self.root)
        if inner == os.curdir:
            return False
        names = inner.split(os.sep)
        if names[0] == os.pardir:
            raise ValueError(f"{path} lies outside {self.root}")
        for last in range(len(names)):
            here, above = os.sep.join(names[: last + 1]), os.sep.join(names[:last])
            inside = is_dir or last < len(names) - 1
            if self._scope(above).ignores(here, names[last], is_dir=inside) or (inside and self._hidden(here)):
                return True
        return False

    def walk(self, start: str = "", enters: Callable[[str], bool] | None = None) -> Iterator[Found]:
        """Everything below `start` (absolute or from the root) that is not ignored, a directory's files before its
        directories, by name. `start` itself and what it lies in are not judged: whoever names a directory means it.
        A directory that cannot be read is told in `unread`, one that `enters` does not want in `passed`; a missing
        start is an OSError."""
        inner = os.path.relpath(os.path.join(self.root, start), self.root)
        inner = "" if inner == os.curdir else inner
        if inner.split(os.sep)[0] == os.pardir:
            raise ValueError(f"{start} lies outside {self.root}")
        handle = _directory(self.root, inner)
        above = os.path.dirname(inner)
        scope = self._scope(above) if inner and self._rules else _Scope()
        with closing(self._below(inner, handle, scope, enters)) as found:
            yield from found

    def _below(
        self, inner: str, handle: int, scope: _Scope, enters: Callable[[str], bool] | None
    ) -> Generator[Found, None, None]:
        """Depth first with a stack of its own: a generator inside a generator costs at every level."""
        waiting: list[tuple[int, str, _Scope, list[str]]] = []
        try:
            files, names, scope = self._listed(inner, handle, scope)
            waiting.append((handle, inner, scope, names))
            yield from files
            while waiting:
                handle, inner, scope, names = waiting[-1]
                if not names:
                    waiting.pop()
                    os.close(handle)
                    continue
                name = names.pop()
                path = f"{inner}/{name}" if inner else name
                if enters is not None and not enters(path):
                    if not self._hidden(path):
                        self.passed.append(path)
                    continue
                below = self._entered(path, name, handle, depth=len(waiting))
                if below < 0:
                    continue
                self.entered.append(path)
                waiting.append((below, path, scope, []))  # from here on it is closed whatever happens
                files, names, scope = self._listed(path, below, scope)
                waiting[-1] = (below, path, scope, names)
                yield from files
        finally:
            for handle, *_ in waiting:
                os.close(handle)

    def _entered(self, path: str, name: str, above: int, *, depth: int) -> int:
        if self._hidden(path):
            return -1
        if depth >= DEPTH_LIMIT:
            self.unread.append(f"{path}: more than {DEPTH_LIMIT} directories deep")
            return -1
        try:
            return open_below(above, (name,), readable=True)
        except OSError as error:
            self.unread.append(f"{path}: {error.strerror}")
            return -1

    def _listed(self, inner: str, handle: int, scope: _Scope) -> tuple[list[Found], list[str], _Scope]:
        """A directory's own entries that are not ignored, its subdirectories last name first, and its scope."""
        try:
            with os.scandir(handle) as listing:
                entries = sorted(listing, key=_name)
        except OSError as error:
            self.unread.append(f"{inner or '.'}: {error.strerror}")
            return [], [], scope
        if self._rules:
            scope = _entered_scope(scope, {e.name for e in entries if e.name.startswith(".")}, inner, handle)
        files, directories = [], []
        for entry in entries:
            path = f"{inner}/{entry.name}" if inner else entry.name
            is_dir = entry.is_dir(follow_symlinks=False)
            if scope.ignores(path, entry.name, is_dir=is_dir):
                continue
            if is_dir:
                directories.append(entry.name)
            else:
                files.append(Found(path, entry, handle))
        directories.reverse()
        return files, directories, scope

    def _hidden(self, path: str) -> bool:
        return self._hides is not None and self._hides(os.path.join(self.root, path))

    def _scope(self, inner: str) -> _Scope:
        """The rules in force for the entries of a directory; kept, since neighbours are asked about one by one."""
        known = self._scopes.get(inner)
        if known is not None:
            return known
        above = self._scope(os.path.dirname(inner)) if inner else _Scope()
        try:
            handle = _directory(self.root, inner)
        except OSError:
            made = above  # nothing there, so nothing said there
        else:
            try:
                made = _entered_scope(above, {*KINDS, ".git"}, inner, handle)
            finally:
                os.close(handle)
        self._scopes[inner] = made
        return made


def _directory(root: str, inner: str) -> int:
    return open_below(root, inner.split(os.sep) if inner else (), readable=True)


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _entered_scope(scope: _Scope, names: set[str], inner: str, handle: int) -> _Scope:
    """The scope inside a directory, which has these names among its entries."""
    if names.isdisjoint((*KINDS, ".git")):
        return scope
    cut = len(inner) + 1 if inner else 0
    custom, dot, git, exclude = scope
    if ".git" in names and _is_there(".git", handle):
        git, exclude = (), ()  # a repository of its own: rules of git above it do not reach in
        if rules := _read(_exclude_file(handle), handle):
            exclude = ((cut, rules),)
    made = [(cut, rules) if name in names and (rules := _read(name, handle)) else None for name in KINDS]
    custom = (made[0], *custom) if made[0] else custom
    dot = (made[1], *dot) if made[1] else dot
    git = (made[2], *git) if made[2] else git
    return _Scope(custom, dot, git, exclude)


def _is_there(name: str, handle: int) -> bool:
    try:
        os.stat(name, dir_fd=handle)
    except OSError:
        return False
    return True


def _exclude_file(handle: int) -> str:
    """Where `info/exclude` lies: in a linked worktree `.git` is a file that names the place."""
    if stat.S_ISDIR(os.stat(".git", dir_fd=handle).st_mode):
        return ".git/info/exclude"
    pointer = _text(".git", handle).partition("\n")[0]
    admin = pointer.removeprefix("gitdir:").strip() if pointer.startswith("gitdir:") else ""
    if not admin:
        return ""
    common = _text(f"{admin}/commondir", handle).partition("\n")[0].strip()
    return os.path.join(admin, common, "info/exclude")


def _read(path: str, handle: int) -> Rules | None:
    made = Rules(_text(path, handle).split("\n")) if path else None
    return made or None


def _text(path: str, handle: int) -> str:
    """A file's text up to the first line that is no UTF-8, where ripgrep stops reading too; nothing if it cannot be
    read or is no regular file (a pipe must not hold us)."""
    try:
        opened = os.open(path, _REGULAR, dir_fd=handle)
    except (OSError, ValueError):
        return ""
    try:
        regular = stat.S_ISREG(os.fstat(opened).st_mode)
        data = os.read(opened, FILE_LIMIT).removeprefix(b"\xef\xbb\xbf") if regular else b""
    except OSError:
        return ""
    finally:
        os.close(opened)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: data.rfind(b"\n", 0, error.start) + 1].decode()
