"""How much of each bar runs: QUINTET_FAULTS = test | pr | long, for every run, for a change, for a release.

QUINTET_SEED gives a printed seed back.
"""

from __future__ import annotations

import os
import random

TIER = os.environ.get("QUINTET_FAULTS", "test")
_COLUMN = {"test": 0, "pr": 1, "long": 2}[TIER]

_FIGURES = {
    "R1": (15, 60, 1000),  # kills, over all parts
    "R2": (1, 3, 25),  # rounds of every failpoint
    "R3": (20, 100, 2000),  # torn or flipped files
    "R4": (40, 200, 5000),  # reconnects
    "R7": (1000, 10_000, 200_000),  # malformed lines a protocol
    "R11": (1, 1, 20),  # seeds of every fault in every wire
    "R13": (3, 20, 200),
    "R14": (10, 100, 1000),
    "R15": (5, 50, 500),
    "R16": (1, 5, 50),
    "L1": (0, 20, 100),  # kills in the long task
}


def figure(bar: str) -> int:
    return _FIGURES[bar][_COLUMN]


def shares(bar: str, parts: int) -> list[tuple[int, int]]:
    """(part, rounds) for so many parametrised tests, so that workers can take them apart."""
    whole, rest = divmod(figure(bar), parts)
    return [(part, whole + (part < rest)) for part in range(parts) if whole + (part < rest)]


def limit_s(test_and_pr: float) -> float:
    """A test's own time limit; the long run has none."""
    return 0 if TIER == "long" else test_and_pr


def seeded(name: str) -> random.Random:
    """A random source whose seed stands in the output of a failing test."""
    seed = os.environ.get("QUINTET_SEED") or f"{name}-{random.SystemRandom().randrange(1 << 32)}"
    print(f"QUINTET_SEED={seed}")
    return random.Random(seed)
