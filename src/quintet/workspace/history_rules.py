"""Ignore files, as far as a comparison must know them: whether a new or changed one may show what was hidden before.

Whoever is not sure says that it may: a file that only came to sight must never be taken for a command's own.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable

from quintet.workspace.ignore import FILE_LIMIT, KINDS
from quintet.workspace.tree import Tree

_MARK = b"\xef\xbb\xbf"  # a text may begin with it


def is_rules(path: str) -> bool:
    return path.rpartition("/")[2] in KINDS


def loosens(old: bytes | None, new: bytes | None) -> bool:
    """Whether rules may show what the old ones hid. Lines added at the end hide more, never less. None: not known."""
    if old is None or new is None or not new.startswith(old):
        return True
    added = new[len(old) :]
    if old and not old.endswith(b"\n") and not added.startswith((b"\n", b"\r\n")):
        return True  # the last line became another one
    return any(line.startswith(b"!") for line in added.removeprefix(_MARK).split(b"\n"))


def any_loosens(directory: str, made: Iterable[str]) -> bool:
    """The same of ignore files that were not there before. What cannot be read may say anything. Blocking."""
    with Tree(directory) as tree:
        return any(loosens(b"", _text(tree, path)) for path in made)


def _text(tree: Tree, path: str) -> bytes | None:
    found = tree.look(path)
    if found is None or not stat.S_ISREG(found.st_mode):
        return None
    try:
        return tree.read(path, FILE_LIMIT)[0]
    except OSError:
        return None
