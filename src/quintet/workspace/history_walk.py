"""What stands in a directory that has no git to ask: every file that no ignore rule leaves out. Blocking."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from quintet.workspace.history_manifest import some
from quintet.workspace.history_stop import Stop
from quintet.workspace.ignore import KINDS, Ignored

LOOK_LIMIT = 50_000  # files that are looked at; a larger tree is told as partial


class Walked(NamedTuple):
    files: tuple[str, ...]
    unnamed: tuple[str, ...]  # files whose names are no UTF-8
    unread: tuple[str, ...]  # directories that could not be entered, with the reason
    directories: tuple[str, ...]  # that hold no such file
    rules: tuple[str, ...]  # ignore files that are ignored themselves
    cut: bool  # there is more

    def notes(self) -> list[str]:
        found = [f"the directory {some(list(self.unread))} could not be looked into"] if self.unread else []
        if self.unnamed:
            found.append(f"{some(list(self.unnamed))}: a name that is not UTF-8, not kept")
        if self.cut:
            found.append(f"more than {LOOK_LIMIT:,} files: the rest was not looked at")
        return found


def walk(stop: Stop, directory: str, hides: Callable[[str], bool]) -> Walked:
    ignored = Ignored(directory, hides)
    files: list[str] = []
    unnamed: list[str] = []
    cut = False
    for found in ignored.walk():
        stop.look()
        if len(files) >= LOOK_LIMIT:
            cut = True
            break
        if _speakable(found.path):
            files.append(found.path.replace(os.sep, "/"))
        else:
            unnamed.append(found.path)
    full = {path.rpartition("/")[0] for path in files}
    empty = tuple(path for path in ignored.entered if path not in full and _speakable(path))
    rules = _hidden_rules(ignored.root, ["", *ignored.entered], set(files))
    return Walked(tuple(files), tuple(unnamed), tuple(ignored.unread), empty, tuple(rules), cut)


def _hidden_rules(root: str, entered: Iterable[str], files: Collection[str]) -> list[str]:
    paths = (f"{inner}/{name}" if inner else name for inner in entered for name in KINDS)
    return [p for p in paths if p not in files and _speakable(p) and os.path.lexists(os.path.join(root, p))]


def _speakable(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
