"""Project: a workspace root and its name. Profile: an assistant's home, a directory outside the journal."""

from __future__ import annotations

import re

import msgspec


class Project(msgspec.Struct, frozen=True):
    id: str
    root: str  # realpath of the git top level of the main worktree, else of the directory itself
    name: str  # unique, usable as a namespace


class Profile(msgspec.Struct, frozen=True):
    name: str
    directory: str
    form: str = "kward"  # how its memory is kept: kward | markdown


def slug(text: str) -> str:
    """Lower-case letters, digits and single dashes; never empty."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:48].strip("-") or "project"
