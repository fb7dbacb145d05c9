"""The path guard: every path from outside goes through here, is resolved with its symlinks and contained by component.
It answers with a Place; how a Place is opened is the business of files.py. Knows no tool and no protocol.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from quintet.domain.errors import Invalid, OutOfBounds
from quintet.workspace.project_root import worktree_root
from quintet.workspace.protected import fold, is_protected, may_be_added

PATH_LIMIT = 4_096
NAME_LIMIT = 255  # bytes of one name, on every file system that matters here


class Place(msgspec.Struct, frozen=True):
    """A path that was found to lie in the workspace."""

    path: str  # absolute, without symlinks
    shown: str  # as people and models read it: relative to the working directory where that is shorter
    root: str  # the workspace it is contained in

    @property
    def names(self) -> tuple[str, ...]:
        """The way from the root, name by name; empty for the root itself."""
        inner = os.path.relpath(self.path, self.root)
        return () if inner == os.curdir else tuple(inner.split(os.sep))


class PathGuard:
    """Contains paths in the workspace of a working directory. `home`, where Quintet keeps its things, is never part,
    nor are the `hidden` places, where the person keeps secrets: the same ones that no command sees."""

    def __init__(self, home: str = "", hidden: Iterable[str] = ()) -> None:
        self._home = fold(os.path.realpath(home)) if home else ""
        self._hidden = {fold(place): None for given in hidden for place in (given, os.path.realpath(given))}

    def workspace(self, cwd: str) -> str:
        """The directory that contains everything a thread working in `cwd` may touch."""
        here = os.path.realpath(cwd)
        top = worktree_root(here)
        # A whole user directory kept in git, or a repository at /, is no workspace: it would contain every project.
        return here if top in ("/", os.path.realpath(os.path.expanduser("~"))) else top

    def reading(self, path: str, cwd: str, root: str = "", *, added: Iterable[str] = ()) -> Place:
        """The place of a path given by whoever works in `cwd`; Invalid when it is not theirs. With a root (one that a
        server is configured with) that contains it, else the workspace or one of the directories added to it."""
        _spelled(path)
        with _resolving(path):
            here = os.path.realpath(cwd)
            resolved = os.path.realpath(os.path.join(here, path))
            around = os.path.realpath(root) if root else self.workspace(here)
            if not root and not contains(around, resolved):
                around = next((place for place in self.standing(added, here) if contains(place, resolved)), around)
            return self._open_place(path, resolved, here, around)

    def writing(self, path: str, cwd: str, *, added: Iterable[str] = ()) -> Place:
        """Stricter than reading: what git, shells, editors and agents run by themselves is the person's to write."""
        return _unprotected(self.reading(path, cwd, added=added))

    def adding(self, path: str, cwd: str, added: Sequence[str] = ()) -> tuple[str, ...]:
        """The directories beside the workspace when this one is added; as before where it is part of them already.
        Invalid where it cannot be one, OutOfBounds where it may not."""
        _spelled(path)
        with _resolving(path):
            here = os.path.realpath(cwd)
            place = os.path.realpath(os.path.join(here, path))
            if not os.path.isdir(place):
                raise Invalid(f"{_quoted(path)} is no directory.", next_step="Name one that is there.")
            workspace = self.workspace(here)
            if any(contains(known, place) for known in (workspace, *added)):
                return tuple(added)
            if contains(place, workspace):
                raise Invalid(
                    f"{_quoted(path)} holds the working directory itself.", next_step="Start in that directory instead."
                )
            if self.hides(place) or (self._home and contains(fold(place), self._home)) or not may_be_added(place):
                raise OutOfBounds(
                    f"{_quoted(path)} cannot be added: the machine, a person or Quintet keeps things there.",
                    next_step="Name a directory further down.",
                )
        # Of one inside the other the outer one is enough; nothing may move the way to what is a root itself.
        return (*(known for known in added if not contains(place, known)), place)

    def standing(self, added: Iterable[str], cwd: str) -> tuple[str, ...]:
        """Those that still are what they were when they were added: one that is gone, or a link by now, is none; nor is
        one that holds the workspace, since the thread is gone on with elsewhere."""
        found = [place for place in added if os.path.isdir(place) and os.path.realpath(place) == place]
        if not found:
            return ()
        workspace = self.workspace(cwd)
        return tuple(place for place in found if not self.hides(place) and not contains(place, workspace))

    def exporting(self, path: str, cwd: str, root: str = "") -> Place:
        """Where a file goes that is made for somebody outside. Links on the way are followed and judged by where they
        lead; the last name is the file itself, never where a link of that name leads. With a root (a client's
        workspace) it is judged as any writing there. Without one it is the word of the person at their own shell, who
        may write anywhere but into Quintet's own files."""
        _spelled(path)
        above, name = os.path.split(path)
        if name in ("", os.curdir, os.pardir):
            raise Invalid(f"{_quoted(path)} names a directory.", next_step="Name a file in it.")
        with _resolving(path):
            here = os.path.realpath(cwd)
            resolved = os.path.join(os.path.realpath(os.path.join(here, above)), name)
            place = self._open_place(path, resolved, here, os.path.realpath(root or os.sep))
        return _unprotected(place) if root else place

    def _open_place(self, path: str, resolved: str, here: str, root: str) -> Place:
        """The place that a path was resolved to, unless it is closed."""
        if len(resolved.encode()) >= PATH_LIMIT:
            raise OutOfBounds(f"{_quoted(path)} leads to a path that is too long.")
        if not contains(root, resolved):
            raise OutOfBounds(
                f"{_quoted(path)} lies outside the workspace.",
                next_step="Use a path inside the workspace; links that lead out of it are not followed.",
            )
        if self._in_home(resolved):
            raise OutOfBounds(f"{_quoted(path)} belongs to Quintet's own files, which stay closed.")
        if self._is_secret(resolved, root):
            raise OutOfBounds(f"{_quoted(path)} is where the person keeps secrets, which stay closed.")
        shown = os.path.relpath(resolved, here)
        return Place(resolved, resolved if shown.startswith(os.pardir + os.sep) else shown, root)

    def hides(self, path: str) -> bool:
        """Whether an absolute path lies in Quintet's own home or in a hidden place, or leads there."""
        if not self._home and not self._hidden:
            return False
        try:
            places = (path, os.path.realpath(path))
            return any(self._in_home(place) or self._is_secret(place, "/") for place in places)
        except OSError:
            return True  # a link that changes while it is being followed is nothing to be shown

    def _is_secret(self, resolved: str, root: str) -> bool:
        """In a hidden place below the root. A workspace that itself lies in one is what the person works on."""
        folded, above = fold(resolved), fold(root)
        return any(contains(place, folded) and not contains(place, above) for place in self._hidden)

    def _in_home(self, resolved: str) -> bool:
        """In any spelling that a file system may fold."""
        return bool(self._home) and contains(self._home, fold(resolved))


def contains(directory: str, path: str) -> bool:
    """Whether path is directory or lies under it, both absolute and resolved: by whole names, never by prefix."""
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


@contextmanager
def _resolving(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        # Not UTF-8, or links that changed while they were being followed.
        raise OutOfBounds(f"{_quoted(path)} is not a path this system can resolve.") from error


def _unprotected(place: Place) -> Place:
    try:
        protected = is_protected(place.root, place.path)
    except OSError:
        protected = True  # a link among the protected names changed while it was being followed
    if protected:
        raise Invalid(
            f"{place.shown} is protected: it decides what runs on this machine, so only the person writes it.",
            next_step="Say what should stand in it, and let the person put it there.",
        )
    return place


def _spelled(path: str) -> None:
    """Refuse what cannot be a path, or could not be shown to a person as the path it is."""
    if not path or len(path) > PATH_LIMIT:
        raise Invalid("A path needs between 1 and 4096 characters.")
    if "\0" in path:
        raise Invalid("A path cannot hold a NUL byte.")
    if any(c < " " or "\x7f" <= c <= "\x9f" for c in path):
        raise Invalid(f"{_quoted(path)} holds a control character.")
    try:
        names = path.encode().split(b"/")
    except UnicodeEncodeError as error:
        raise Invalid(f"{_quoted(path)} holds half of a surrogate pair, which no path does.") from error
    if any(len(name) > NAME_LIMIT for name in names):
        raise Invalid(f"A name in {_quoted(path)} is longer than {NAME_LIMIT} bytes.")


def is_path(path: str) -> bool:
    try:
        _spelled(path)
    except Invalid:
        return False
    return True


def _quoted(path: str) -> str:
    return repr(path[:200]) if path.isprintable() else ascii(path[:50])
