"""What dead processes left in the home and nobody needs: where a server was, files without a name. Blocking."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from quintet.domain.checkup import Row, warn
from quintet.workspace.server_lock import server_runs

_DRAFTS = (("", re.compile(r"\.server\.json\.\d+")), ("", re.compile(r"\.doctor-[0-9a-f]{12}")))
_PASSING = ("credentials", re.compile(r"\.[0-9a-f]{12}\.tmp"))


def leftovers(home: str) -> list[str]:
    """Names in the home, of files that can go."""
    found = []
    if os.path.exists(os.path.join(home, "server.json")) and not server_runs(Path(home)):
        found.append("server.json")
    if not server_runs(Path(home)):  # a server that starts just now has such a file for a moment
        for directory, form in (*_DRAFTS, _PASSING):
            found += [os.path.join(directory, n) for n in _listed(os.path.join(home, directory)) if form.fullmatch(n)]
    return found


def look_at_leftovers(home: str) -> list[Row]:
    names = leftovers(home)
    if not names:
        return []
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    words = f"{', '.join(names[:3])}{more}: left by a process that died"
    return [warn("leftovers", words, "quintet doctor --fix")]


def clear_leftovers(home: str) -> list[str]:
    """Remove them; the names that are gone."""
    gone = []
    for name in leftovers(home):
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(home, name))
            gone.append(name)
    return gone


def _listed(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
