"""Where Quintet keeps everything: one directory, found the same way by every part. Pure: looks at names only."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping


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
