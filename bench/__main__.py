"""`python -m bench`: run every bench, print the table, write docs/performance.md and bench/results/latest.json.

Exits 1 if a bar is missed. Names on the command line choose: `python -m bench deltas starting`.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import time
from pathlib import Path

import apsw

from bench.measure import Row

ALL = (
    "deltas",
    "model_stream",
    "appends",
    "reading",
    "starting",
    "growing",
    "sandbox",
    "checkpoints",
    "search",
    "large_store",
    "wire",
    "kward",
    "fanout",
    "serve",
)
ROOT = Path(__file__).parents[1]


def main() -> int:
    chosen = [name for name in ALL if not sys.argv[1:] or name in sys.argv[1:]]
    rows: list[Row] = []
    for name in chosen:
        print(f"{name} …", file=sys.stderr, flush=True)
        began = time.perf_counter()
        rows += importlib.import_module(f"bench.{name}").run()
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    print(table(rows))
    if chosen == list(ALL):
        publish(rows)
    return 0 if all(row.met for row in rows) else 1


def table(rows: list[Row]) -> str:
    lines = ["| what | figure | bar | beside it | |", "|---|---|---|---|---|"]
    for row in rows:
        bound = "at least" if row.at_least else "at most"
        verdict = "met" if row.met else "**missed**"
        lines.append(
            f"| {row.name} | {row.value:.2f} {row.unit} | {bound} {row.bar:g} {row.unit} | {row.beside} | {verdict} |"
        )
    return "\n".join(lines)


def publish(rows: list[Row]) -> None:
    where = f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {os.cpu_count()} cores"
    page = [
        "# Performance",
        "Written by `make bench`. Figures of one run on one machine, taken side by side with what they are",
        "compared to; the ratios carry over, the absolute times do not.",
        f"Measured with {where}.",
        table(rows),
    ]
    (ROOT / "docs" / "performance.md").write_text("\n\n".join([page[0], "\n".join(page[1:3]), *page[3:]]) + "\n")
    (ROOT / "bench" / "results").mkdir(exist_ok=True)
    (ROOT / "bench" / "results" / "latest.json").write_text(json.dumps([row._asdict() for row in rows], indent=1))


if __name__ == "__main__":
    sys.exit(main())
