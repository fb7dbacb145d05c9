"""Other repositories inside a workspace, and where a repository says its hooks are. Found by reading, never by git.

The walk is bounded in depth, in directories and in time: what lies beyond is not found, and nobody is told otherwise.
"""

from __future__ import annotations

import os
import re
import time

DEPTH = 4  # directories between the root and a `.git`
DIRECTORIES = 2_000
WITHIN_S = 0.25
KEPT_S = 5.0  # a walk's answer is used again this long
_SKIPPED = frozenset({"node_modules", "venv", "__pycache__"})
_CONFIG_LIMIT = 65_536
_SECTION = re.compile(r"\s*\[\s*(\w+)\s*\]")
_HOOKS_PATH = re.compile(r"(?:\s*\[[^\]]*\])?\s*hookspath\s*=\s*(.*)", re.IGNORECASE)
_walked: dict[str, tuple[float, tuple[str, ...]]] = {}


def nested_gits(root: str) -> tuple[str, ...]:
    """Every `.git`, directory or file, below the root's own. Hidden directories are not looked into."""
    now = time.monotonic()
    known = _walked.get(root)
    if known is not None and now - known[0] < KEPT_S and all(os.path.lexists(git) for git in known[1]):
        return known[1]
    found = _walk(root, now + WITHIN_S)
    if len(_walked) > 100:
        _walked.clear()
    _walked[root] = (now, found)
    return found


def _walk(root: str, until: float) -> tuple[str, ...]:
    found: list[str] = []
    level, looked = [root], 0
    for depth in range(DEPTH + 1):
        below: list[str] = []
        for directory in level:
            looked += 1
            if looked > DIRECTORIES or time.monotonic() > until:
                return tuple(found)
            names = _entries(directory)
            if depth and ".git" in names:
                found.append(os.path.join(directory, ".git"))
            below += [os.path.join(directory, name) for name, inside in names.items() if inside]
        level = below
    return tuple(found)


def _entries(directory: str) -> dict[str, bool]:
    """Names, and whether to look into them; of hidden ones only `.git` counts."""
    try:
        with os.scandir(directory) as entries:
            return {
                entry.name: not entry.name.startswith(".")
                and entry.name not in _SKIPPED
                and entry.is_dir(follow_symlinks=False)
                for entry in entries
                if not entry.name.startswith(".") or (entry.name == ".git" and not entry.is_symlink())
            }
    except OSError:
        return {}


def hooks_directories(root: str, admin: str) -> list[str]:
    """The directories in the workspace that the repository's own settings name as those of its hooks, where there."""
    found: list[str] = []
    for name in ("config", "config.worktree"):
        for given in _hooks_paths(os.path.join(admin, name)):
            place = os.path.normpath(os.path.join(root, given))
            # Husky names a directory of its own making, whose scripts run those in the directory above.
            place = os.path.dirname(place) if os.path.basename(place) == "_" else place
            if place.startswith(root.rstrip(os.sep) + os.sep) and os.path.isdir(place):
                found.append(place)
    return found


def _hooks_paths(config: str) -> list[str]:
    try:
        handle = os.open(config, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            text = os.read(handle, _CONFIG_LIMIT).decode("utf-8", "surrogateescape")
        finally:
            os.close(handle)
    except OSError:
        return []
    found: list[str] = []
    section = ""
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            begun = _SECTION.match(line)
            section = begun[1].lower() if begun else ""
        given = _HOOKS_PATH.match(line)
        if given and section == "core":
            found.append(given[1].strip().strip('"'))
    return [path for path in found if path and "\0" not in path]
