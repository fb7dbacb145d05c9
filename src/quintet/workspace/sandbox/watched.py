"""Names nothing can be laid over (links, and what would stop git): remembered before a command, put back after it.

Second best, and said so: while the command runs such a name can be changed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

Before = dict[str, str | None]  # name: what the link says, None = nothing was there


def remember(places: Iterable[str]) -> Before:
    return {place: _link(place) for place in places}


def put_back(before: Before) -> list[str]:
    """The names that had to be put back."""
    changed = []
    for place, link in before.items():
        if _link(place) == link and (link is not None or not os.path.lexists(place)):
            continue
        changed.append(place)
        _remove(place)
        if link is not None:
            with contextlib.suppress(OSError):
                os.symlink(link, place)
    return changed


def _link(place: str) -> str | None:
    try:
        return os.readlink(place)
    except OSError:
        return None


def _remove(place: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(place)
    if os.path.isdir(place) and not os.path.islink(place):
        import shutil  # dear, and hardly ever needed

        shutil.rmtree(place, ignore_errors=True)
