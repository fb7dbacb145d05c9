"""What stays unwritable inside a writable tree, there or not, and which other trees a git worktree needs.

Looks at the disk and says what is to be done; makes nothing itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import msgspec

from quintet.workspace.project_root import admin_directory, project_root
from quintet.workspace.protected import UNDER_WAY, free_while_absent, nested_places, protected_places
from quintet.workspace.sandbox.mounts import Kind, Mount, lies_in
from quintet.workspace.sandbox.watched import Watched

# A directory or an empty file by this name would stop git itself, so nothing can be laid over it while it is absent.
_UNCOVERABLE = ("config.worktree", "commondir")
_ADMIN = ("commondir", "gitdir", "config.worktree")  # of a linked worktree: where git reads from


class Guarded(msgspec.Struct, frozen=True):
    mounts: tuple[Mount, ...] = ()
    absent: tuple[str, ...] = ()  # a directory has to be made at each, to be hidden
    watched: tuple[Watched, ...] = ()  # not covered: to be put back as they were, afterwards


def git_trees(workspace: str) -> tuple[str, ...]:
    """Of a linked worktree that its repository knows: the common git directory. Else nothing."""
    git = os.path.join(workspace, ".git")
    main = project_root(workspace)
    if main == workspace or not os.path.isfile(git) or not lies_in(admin_directory(git), os.path.join(main, ".git")):
        return ()
    return (os.path.join(main, ".git"),)


def guarded(root: str, extra: Iterable[str] = (), *, home: bool = False) -> Guarded:
    """Guards of a workspace; `extra` are further places in it, such as credentials, that are hidden. `home`: it is
    somebody's, so what programs read there for a person matters too."""
    return _sorted_out(root, _places(root, home=home), _hidden(root, extra), free_while_absent(root, home=home))


def guarded_extra(root: str, extra: Iterable[str] = (), *, home: bool = False) -> Guarded:
    """Guards of a directory the person gave to commands beside the workspace: nothing is made in it."""
    places, hide = _places(root, home=home), _hidden(root, extra)
    return _sorted_out(root, places, hide, frozenset({*places, *hide}))


def guarded_git(workspace: str, common: str) -> Guarded:
    """Guards of a linked worktree's repository: of it all that the main workspace guards, and other worktrees."""
    main = os.path.dirname(common)
    admin = admin_directory(os.path.join(workspace, ".git"))
    places = [place for place in protected_places(main) if lies_in(place, common) and place != common]
    places += [os.path.join(admin, name) for name in _ADMIN]
    places += [place for name in UNDER_WAY if os.path.lexists(place := os.path.join(admin, name))]
    others = Mount(os.path.dirname(admin), Kind.READ)
    found = _sorted_out(common, places, set(), frozenset())
    return Guarded((others, Mount(admin, Kind.WRITE), *found.mounts), found.absent, found.watched)


def _places(root: str, *, home: bool) -> list[str]:
    return [*protected_places(root, home=home), *nested_places(root)]


def _hidden(root: str, extra: Iterable[str]) -> set[str]:
    return {_first_absent(root, os.path.realpath(place)) for place in extra}


def _sorted_out(root: str, places: Iterable[str], hide: set[str], free: frozenset[str]) -> Guarded:
    """`free`: nothing is made at these while they are absent."""
    mounts: dict[str, Mount] = {}
    absent: list[str] = []
    watched: dict[Watched, None] = {}
    for place in [*hide, *places]:
        link = _first_link(root, place)
        if link:  # nothing can be laid over a link; what it leads to is a place of its own
            watched[Watched(root, link)] = None
            continue
        for parent in _between(root, place):
            # Covered by itself, it cannot be renamed: that would carry the guard away and leave the name free.
            mounts.setdefault(parent, Mount(parent, Kind.WRITE))
        if not os.path.lexists(place):
            if place in free or os.path.basename(place) in _UNCOVERABLE:
                watched[Watched(root, place)] = None
            elif place not in absent:
                absent.append(place)
                mounts[place] = Mount(place, Kind.HIDE)
        elif place in hide:
            mounts[place] = Mount(place, Kind.HIDE if os.path.isdir(place) else Kind.BLANK)
        elif place not in mounts or mounts[place].kind is Kind.WRITE:
            mounts[place] = Mount(place, Kind.READ)
    return Guarded(tuple(mounts.values()), tuple(absent), tuple(watched))


def _between(root: str, place: str) -> Iterator[str]:
    """The directories between the root and a place, without both."""
    parent = os.path.dirname(place)
    while parent != root and lies_in(parent, root):
        yield parent
        parent = os.path.dirname(parent)


def _first_absent(root: str, place: str) -> str:
    """The place itself, or the first directory on the way to it that is not there: nobody could make it either."""
    missing = place
    while not os.path.lexists(place) and place != root:
        missing, place = place, os.path.dirname(place)
    return missing


def _first_link(root: str, place: str) -> str:
    path = root
    for part in os.path.relpath(place, root).split(os.sep):
        path = os.path.join(path, part)
        if os.path.islink(path):
            return path
    return ""
