"""Globs over relative paths, name by name. Linear in what is matched: a hostile glob costs nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import product

from quintet.domain.errors import Invalid

_MARKS = re.compile(r"\\.|\[[!^]?\]?[^\]]*\]|[{},]", re.DOTALL)
_LIMIT = 64  # globs that one with braces may stand for


class Glob:
    """`*.py` fits a name anywhere; a glob with a slash fits the whole path, `**` standing for any directories. `{a,b}`
    is one or the other."""

    def __init__(self, text: str) -> None:
        made = alternatives(text)
        if not made:
            raise Invalid(
                f"The braces of the glob {text[:200]!r} do not close, lie in each other or stand for too much.",
                next_step="Write {a,b} once or twice, or search several times.",
            )
        self._anywhere = [glob for glob in made if "/" not in glob]
        cleaned = [glob.removeprefix("./").strip("/").split("/") for glob in made if "/" in glob]
        self._whole = [parts for parts in cleaned if parts != [""]]

    def fits(self, path: str) -> bool:
        """Whether the glob means this very file."""
        names = path.split("/")
        if any(fnmatchcase(names[-1], glob) for glob in self._anywhere):
            return True
        return any(_may_end(parts[-1], names[-1]) and len(names) in _reached(parts, names) for parts in self._whole)

    def covers(self, path: str) -> bool:
        """Whether the glob means this file or, with a slash or without any wildcard, a directory it lies in."""
        names = path.split("/")
        if any(fnmatchcase(names[-1], glob) or glob in names for glob in self._anywhere):
            return True
        return any(_reached(parts, names) for parts in self._whole)

    def leads(self, directory: str) -> bool:
        """Whether something below this directory could be meant; a walk need not enter another."""
        names = directory.split("/")
        return bool(self._anywhere) or any(_goes_on(parts, names) for parts in self._whole)

    def endings(self) -> Sequence[str]:
        """The globs again if each is `*.` and a plain ending, so that another program reads them the same way; nothing
        otherwise."""
        plain = [glob for glob in self._anywhere if re.fullmatch(r"\*\.[A-Za-z0-9_.-]+", glob)]
        return plain if len(plain) == len(self._anywhere) and not self._whole else ()


def alternatives(glob: str) -> list[str]:
    """`*.{a,b}` as the globs it stands for. Nothing if braces do not close, lie in each other or stand for too much."""
    if "{" not in glob and "}" not in glob:
        return [glob]
    parts: list[list[str]] = [[""]]
    inside = False
    place = 0
    for mark in _MARKS.finditer(glob):
        parts[-1][-1] += glob[place : mark.start()]
        place = mark.end()
        sign = mark.group()
        if sign == "{" and inside:
            return []
        if sign == "{" or (sign == "}" and inside):
            inside = not inside
            parts.append([""])
        elif sign == "," and inside:
            parts[-1].append("")
        else:
            parts[-1][-1] += sign
    parts[-1][-1] += glob[place:]
    count = 1
    for choices in parts:
        count *= len(choices)
    if inside or count > _LIMIT:
        return []
    return ["".join(pieces) for pieces in product(*parts)]


def _may_end(part: str, name: str) -> bool:
    return part == "**" or fnmatchcase(name, part)


def _goes_on(parts: list[str], names: list[str]) -> bool:
    """Whether the parts can stand for these names with one of them left for what lies below."""
    places = _skipped(parts, {0})
    for name in names:
        stays = {n for n in places if n < len(parts) and parts[n] == "**"}
        goes = {n + 1 for n in places if n < len(parts) and parts[n] != "**" and fnmatchcase(name, parts[n])}
        places = _skipped(parts, stays | goes)
    return any(n < len(parts) for n in places)


def _skipped(parts: list[str], places: set[int]) -> set[int]:
    """`**` may stand for nothing."""
    made = set(places)
    for n in range(len(parts)):
        if n in made and parts[n] == "**":
            made.add(n + 1)
    return made


def _reached(parts: list[str], names: list[str]) -> set[int]:
    """Which numbers of leading names the parts can stand for: a row of a table instead of a recursion."""
    reached = {0}
    for part in parts:
        if not reached:
            break
        if part == "**":
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {n + 1 for n in reached if n < len(names) and fnmatchcase(names[n], part)}
    return reached
