"""Whether what undo would need is there: every content that a checkpoint names, read and compared with its hash."""

from __future__ import annotations

from collections.abc import Callable, Collection

from quintet.domain.checkup import Row, fail, ok
from quintet.domain.errors import StorageDamaged
from quintet.domain.ports import Clock
from quintet.workspace.blobs import Blobs

_EVERY = 50


def look_at_blobs(home: str, clock: Clock, digests: Collection[str], progress: Callable[[str, int, int], None]) -> Row:
    """Blocking, and long where there is much."""
    blobs, missing, damaged = Blobs(home, clock), 0, 0
    for place, digest in enumerate(sorted(digests)):
        try:
            missing += blobs.get(digest) is None
        except (StorageDamaged, OSError, ValueError):
            damaged += 1
        if place % _EVERY == 0:
            progress("checking kept contents", place, len(digests))
    if missing or damaged:
        words = f"of {len(digests)} contents that undo may need, {missing} are missing and {damaged} damaged"
        return fail("kept contents", words, "Undo what depends on them by hand; `quintet threads diff THREAD` shows it")
    return ok("kept contents", f"{len(digests)} contents that undo may need are there and whole")
