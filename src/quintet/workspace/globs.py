"""Globs over relative paths, name by name. Linear in what is matched: a hostile glob costs nothing."""

from __future__ import annotations

from fnmatch import fnmatchcase


def glob_matches(glob: str, path: str) -> bool:
    """`*.py` fits the last name anywhere; a glob with a slash fits the whole path, `**` standing for any directories;
    a glob that fits a directory fits what is in it."""
    names = path.removeprefix("./").split("/")
    parts = glob.removeprefix("./").strip("/").split("/")
    if len(parts) == 1:
        return any(fnmatchcase(name, parts[0]) for name in names)
    return _fits(parts, names)


def _fits(parts: list[str], names: list[str]) -> bool:
    """Which numbers of leading names the parts so far can stand for: a row of a table instead of a recursion."""
    reached = {0}
    for part in parts:
        if part == "**":
            reached = set(range(min(reached), len(names) + 1)) if reached else set()
        else:
            reached = {n + 1 for n in reached if n < len(names) and fnmatchcase(names[n], part)}
    return bool(reached)
