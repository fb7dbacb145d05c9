"""Project: a workspace root and its name. Profile: an assistant's home, a directory outside the journal."""

from __future__ import annotations

import re

import msgspec

from quintet.domain.hook import Hook
from quintet.domain.turn import Mode


class Project(msgspec.Struct, frozen=True):
    id: str
    root: str  # realpath of the git top level of the main worktree, else of the directory itself; `@name`: see below
    name: str  # unique, usable as a namespace

    @property
    def is_name(self) -> bool:
        """It has no directory of its own: threads and rules are kept under this name, over some other's directory."""
        return self.root.startswith(NAME_ALONE)


class ProjectConfig(msgspec.Struct, frozen=True):
    """What a project's own configuration file says, reduced to what a project may say."""

    path: str = ""
    mode: Mode | None = None
    rules: dict[str, str] = {}  # as written; ask and deny only
    hooks: tuple[Hook, ...] = ()
    instructions: str = ""
    warnings: tuple[str, ...] = ()  # what was in it besides


class Profile(msgspec.Struct, frozen=True):
    name: str
    directory: str
    form: str = "kward"  # how its memory is kept: kward | markdown
    settings: str = "config.json"  # the file in its directory that holds its settings


DEFAULT = "default"  # whichever project a server was started for answers to it, so none is called so
NAME_ALONE = "@"  # never the beginning of a directory, which is absolute


def root_of_name(name: str) -> str:
    return NAME_ALONE + name


def slug(text: str) -> str:
    """Lower-case letters, digits and single dashes; never empty."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:48].strip("-") or "project"
