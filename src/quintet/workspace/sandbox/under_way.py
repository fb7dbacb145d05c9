"""What git has under way where commands work: a rebase or the like that stopped, with a list of steps that may name
commands.

One that somebody else began is read-only for commands. One that a command began may be gone on with by the next one,
as long as this process lives, and is told: whoever goes on with it runs what its list says.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from quintet.workspace.project_root import admin_directory
from quintet.workspace.protected import UNDER_WAY

_Mark = tuple[int, int, bytes]  # which one it is: a later one at the same place is another
_SAYS = ("orig-head", "head")  # where the branch was when it began
_LIMIT = 256


class UnderWay:
    def __init__(self) -> None:
        self._begun: dict[str, _Mark] = {}  # by commands of this process

    def theirs(self, trees: Sequence[str]) -> set[str]:
        """Those that commands may go on with."""
        return {place for place, mark in _there(trees).items() if self._begun.get(place) == mark}

    def there(self, trees: Sequence[str]) -> set[str]:
        return set(_there(trees))

    def left(self, trees: Sequence[str], before: set[str]) -> list[str]:
        """Those that a command began and did not end; `before` it there were others."""
        now = _there(trees)
        for place in self._begun.keys() & set(_places(trees)) - now.keys():
            del self._begun[place]
        new = sorted(now.keys() - before)
        self._begun |= {place: now[place] for place in new}
        return new


def _places(trees: Sequence[str]) -> list[str]:
    found = (admin_directory(os.path.join(tree, ".git")) for tree in trees)
    return [os.path.join(admin, name) for admin in found if admin for name in UNDER_WAY]


def _there(trees: Sequence[str]) -> dict[str, _Mark]:
    return {place: _mark(place) for place in _places(trees) if os.path.lexists(place)}


def _mark(place: str) -> _Mark:
    facts = os.lstat(place)
    for name in _SAYS:
        try:
            handle = os.open(os.path.join(place, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            return facts.st_dev, facts.st_ino, os.read(handle, _LIMIT)
        finally:
            os.close(handle)
    return facts.st_dev, facts.st_ino, b""
