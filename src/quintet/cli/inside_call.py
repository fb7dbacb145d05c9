"""Whether this very process was started by a call of the agent: then it may not lift what confines it, nor agree to its
own requests. A hint where no sandbox works, since a program can clear its environment; the wall is the sandbox.
"""

from __future__ import annotations

import os

from quintet.domain.errors import Denied
from quintet.workspace.environment import MARKER

ANCESTORS = 200


def refuse_inside_a_call(what: str) -> None:
    """Denied when the agent started us, directly or through other programs."""
    if os.environ.get(MARKER) or _ancestor_marked(os.getppid()):
        raise Denied(
            f"A program that the agent started may not {what}.", next_step="Do it yourself, in a terminal of your own."
        )


def _ancestor_marked(process: int) -> bool:
    mark = f"{MARKER}=".encode()
    for _ in range(ANCESTORS):
        if process <= 1:
            return False
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                if any(entry.startswith(mark) for entry in file.read().split(b"\0")):
                    return True
        except OSError:
            pass  # not ours to read: another user's, so not a call of this one; its parents still count
        process = _parent(process)
    return False


def _parent(process: int) -> int:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
