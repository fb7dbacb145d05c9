"""Where Quintet keeps everything: one directory, found the same way by every part. Pure: looks at names only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

CONFIG = "config.toml"
# What Quintet keeps in its home, what a person may put there for it, and what file systems put anywhere.
_OURS = frozenset(
    ("reserve", "run", "backups", "cache", "blobs", "results", "credentials", "server.json", "access.log")
)
_THEIRS = frozenset((CONFIG, "profiles", "agents", "skills", "AGENTS.md", "CLAUDE.md", "chat-history"))
_ANYWHERE = frozenset(("lost+found", ".DS_Store", ".gitkeep"))
_PASSING = (".server.json.", ".doctor-", ".making-", ".quintet-")
_ONLY_OURS = ("quintet.db", "quintet.log")  # the names of files that nobody else has begin so


def home_directory(flag: str | None, environment: Mapping[str, str], platform: str = sys.platform) -> str:
    """Where Quintet keeps everything: the flag, QUINTET_HOME, or the platform's place for user data."""
    named = flag or environment.get("QUINTET_HOME", "")
    if named:
        return os.path.abspath(os.path.expanduser(named))
    user = environment.get("HOME") or os.path.expanduser("~")
    if platform == "darwin":
        return os.path.join(user, "Library", "Application Support", "quintet")
    data = environment.get("XDG_DATA_HOME", "")
    # A relative XDG_DATA_HOME counts as not set: that is its specification's own rule.
    return os.path.join(data if os.path.isabs(data) else os.path.join(user, ".local", "share"), "quintet")


def strangers_in(names: Iterable[str]) -> list[str]:
    """Of what a directory holds, what is neither Quintet's nor for it; nothing where the journal or the log shows that
    it is a home already, whatever else lies there."""
    found = sorted(names)
    if any(name.startswith(_ONLY_OURS) for name in found):
        return []
    known = _OURS | _THEIRS | _ANYWHERE
    return [name for name in found if name not in known and not name.startswith(_PASSING)]


def holds_words(names: list[str]) -> str:
    """Some of them by name, for people."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"
