"""The path guard: every path a tool is given goes through here, is resolved with its symlinks and contained by
component. It answers with a Place; how a Place is opened is the business of files.py.
"""

from __future__ import annotations

import os

import msgspec

from quintet.domain.errors import Invalid
from quintet.workspace.project_root import worktree_root

PATH_LIMIT = 4_096


class Place(msgspec.Struct, frozen=True):
    """A path that was found to lie in the workspace."""

    path: str  # absolute, without symlinks
    shown: str  # as people and models read it: relative to the working directory where that is shorter
    root: str  # the workspace it is contained in


class PathGuard:
    """Contains paths in the workspace of a working directory; `home`, where Quintet keeps its things, is never part."""

    def __init__(self, home: str = "") -> None:
        self._home = os.path.realpath(home) if home else ""

    def workspace(self, cwd: str) -> str:
        """The directory that contains everything a thread working in `cwd` may touch."""
        here = os.path.realpath(cwd)
        top = worktree_root(here)
        # A whole user directory kept in git, or a repository at /, is no workspace: it would contain every project.
        return here if top in ("/", os.path.realpath(os.path.expanduser("~"))) else top

    def reading(self, path: str, cwd: str) -> Place:
        return self._place(path, cwd)

    def writing(self, path: str, cwd: str) -> Place:
        """Stricter than reading: git's own files decide what git runs, so nothing may be written among them."""
        place = self._place(path, cwd)
        inner = os.path.relpath(place.path, place.root).split(os.sep)
        if any(part.casefold() == ".git" for part in inner):
            raise Invalid(f"{place.shown} belongs to git itself; file tools do not write there.")
        return place

    def hides(self, path: str) -> bool:
        """Whether an absolute path lies in Quintet's own home."""
        return bool(self._home) and contains(self._home, os.path.realpath(path))

    def _place(self, path: str, cwd: str) -> Place:
        if not path or len(path) > PATH_LIMIT:
            raise Invalid("A path needs between 1 and 4096 characters.")
        if "\0" in path:
            raise Invalid("A path cannot hold a NUL byte.")
        try:
            here = os.path.realpath(cwd)
            resolved = os.path.realpath(os.path.join(here, path))
        except (OSError, ValueError) as error:
            raise Invalid(f"{path[:200]!r} is not a path this system can resolve.") from error
        root = self.workspace(here)
        if not contains(root, resolved):
            raise Invalid(
                f"{path[:200]!r} lies outside the workspace.",
                next_step="Use a path inside the workspace; links that lead out of it are not followed.",
            )
        if self.hides(resolved):
            raise Invalid(f"{path[:200]!r} belongs to Quintet's own files, which tools never touch.")
        shown = os.path.relpath(resolved, here)
        return Place(resolved, resolved if shown.startswith(os.pardir + os.sep) else shown, root)


def contains(directory: str, path: str) -> bool:
    """Whether path is directory or lies under it, both absolute and resolved: by whole names, never by prefix."""
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)
