"""Variables a line may set without becoming a riddle: a short list, since most names steer some program. Pure."""

from __future__ import annotations

import re

_FOR_A_COMMAND_TEXT = """
CI COLUMNS DEBUG FORCE_COLOR LANG LANGUAGE LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_NUMERIC LC_TIME LINES NODE_ENV
NO_COLOR PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUNBUFFERED RUST_BACKTRACE RUST_LOG SOURCE_DATE_EPOCH TZ
DEBIAN_FRONTEND CLICOLOR CARGO_TERM_COLOR PYTHONUTF8 PYTHONIOENCODING
"""
_FOR_A_COMMAND = frozenset(_FOR_A_COMMAND_TEXT.split())
_OWN = re.compile(r"[a-z][a-z0-9]{0,30}")
# Lower-case names that some shell gives a meaning.
_TAKEN = frozenset({"histchars", "path", "fpath", "cdpath", "manpath", "mailpath", "prompt", "watch", "argv", "status"})


def harmless_for_command(name: str) -> bool:
    """Whether a program given this variable still does what its words say."""
    return name in _FOR_A_COMMAND


def harmless_in_shell(name: str) -> bool:
    """Whether a script may set this as a variable of its own: a short plain word that no program listens to."""
    return name in _FOR_A_COMMAND or (_OWN.fullmatch(name) is not None and name not in _TAKEN)
