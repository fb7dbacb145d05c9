"""Where a repository keeps its parts: found by reading `.git`, never by running git. Does not look into them."""

from __future__ import annotations

import hashlib
import os

import msgspec

_POINTER_LIMIT = 4_096
_RULES_LIMIT = 1024 * 1024


class Layout(msgspec.Struct, frozen=True):
    """The parts of a repository that has its work tree at `top`."""

    top: str
    admin: str  # of this work tree: HEAD, index
    common: str  # of all its work trees: objects, config, info

    @property
    def index(self) -> str:
        return os.path.join(self.admin, "index")

    @property
    def objects(self) -> str:
        return os.path.join(self.common, "objects")

    @property
    def config(self) -> str:
        return os.path.join(self.common, "config")

    @property
    def exclude(self) -> str:
        return os.path.join(self.common, "info", "exclude")

    @property
    def attributes(self) -> str:
        return os.path.join(self.common, "info", "attributes")

    def exclude_digest(self) -> str:
        """Of the ignore rules among git's own files: other rules let other files appear."""
        return hashlib.sha256(_text(self.exclude, _RULES_LIMIT).encode("utf-8", "surrogateescape")).hexdigest()

    def borrowed_from(self) -> list[str]:
        """Other object stores this one leans on."""
        text = _text(os.path.join(self.objects, "info", "alternates"))
        return [line for line in text.split("\n") if line.strip() and not line.startswith("#")]


def layout_of(directory: str) -> Layout | None:
    """Of the repository whose work tree begins in this very directory; None when there is none."""
    place = os.path.join(directory, ".git")
    admin = os.path.realpath(place) if os.path.isdir(place) else _pointed_to(place)
    if not admin or not os.path.isfile(os.path.join(admin, "HEAD")):
        return None
    common = _text(os.path.join(admin, "commondir")).split("\n", 1)[0].strip()
    shared = os.path.realpath(os.path.join(admin, common)) if common else admin
    return Layout(directory, admin, shared) if os.path.isdir(os.path.join(shared, "objects")) else None


def _pointed_to(path: str) -> str:
    """The directory that a `.git` file names."""
    line = _text(path).split("\n", 1)[0]
    if not line.startswith("gitdir:"):
        return ""
    return os.path.realpath(os.path.join(os.path.dirname(path), line[len("gitdir:") :].strip()))


def _text(path: str, limit: int = _POINTER_LIMIT) -> str:
    """The beginning of a small file; nothing when it cannot be read. O_NONBLOCK: it may be a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            text = os.read(handle, limit).decode("utf-8", "surrogateescape")
        finally:
            os.close(handle)
    except OSError:
        return ""
    return "" if "\0" in text else text
