"""The bare interpreter, for what Quintet runs of its own behind the wall. An environment's may lie where the wall shows
nothing, and a project may have made it.
"""

from __future__ import annotations

import os
import sys


def bare_interpreter() -> str:
    """It needs, and has, nothing but the standard library."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def its_places() -> tuple[str, ...]:
    """What must be visible for it to run."""
    return tuple(
        {os.path.realpath(place): None for place in (sys.base_prefix, sys.base_exec_prefix, bare_interpreter())}
    )
