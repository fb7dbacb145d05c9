"""Searching: what the grep tool adds to ripgrep run by itself, spawning included, over a tree of 4,000 files."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from pathlib import Path
from random import Random

from bench.measure import Row, fresh_home, median
from quintet.domain.tool import CallScope
from quintet.tools.grep import GrepTool
from quintet.workspace.ignore import Ignored
from quintet.workspace.paths import PathGuard
from quintet.workspace.search_ripgrep import NEUTRAL

FILES = 4_000
ROUNDS = 25
PATTERN = r"needle\w+ = [0-9]+"
WORDS = (
    "import",
    "class",
    "def",
    "return",
    "self.value",
    "number",
    "name",
    "text",
    "dict",
    "error",
    "path",
    "None",
    "for",
)


def plant(root: Path) -> None:
    """Source-like files of some 6 kB in 200 directories; every tenth has a few matches."""
    random = Random(1)
    lines = [" ".join(random.choices(WORDS, k=random.randint(3, 10))) for _ in range(2_000)]
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("*.pyc\n__pycache__/\n/build/\n.venv\n*.log\n!kept.log\ndocs/_build/\n")
    for number in range(FILES):
        place = root / f"package{number % 20}" / f"part{number // 20 % 10}" / f"module{number}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        own = random.choices(lines, k=120)
        if number % 10 == 0:
            own[random.randrange(120)] = f"needle_{number} = {number}"
        place.write_text("\n".join(own) + "\n")


class Context:
    """All that the grep tool asks of its surroundings."""

    directories: tuple[str, ...] = ()


def alone_s(root: Path) -> float:
    program = shutil.which("rg")
    assert program is not None, "this bench needs ripgrep"
    began = time.perf_counter()
    argv = [program, *NEUTRAL, "--json", "--context=0", "--case-sensitive", "-e", PATTERN, "--", "."]
    done = subprocess.run(argv, cwd=root, capture_output=True, check=True)
    took = time.perf_counter() - began
    assert done.stdout.count(b'{"type":"match"') == FILES // 10
    return took


async def tool_s(tool: GrepTool, root: Path) -> float:
    began = time.perf_counter()
    prepared = await tool.prepare({"pattern": PATTERN}, CallScope(str(root)))
    done = await tool.run(prepared, Context())  # type: ignore[arg-type]
    took = time.perf_counter() - began
    assert done.message == f"{FILES // 10} matches in {FILES // 10} files", done
    return took


async def measured(root: Path) -> tuple[list[float], list[float]]:
    tool = GrepTool(PathGuard(), os.environ)
    alone, through = [], []
    for number in range(ROUNDS + 3):  # alternating, so that a slow moment of the machine hits both
        one, other = alone_s(root), await tool_s(tool, root)
        if number >= 3:  # the first ones read the disk and import
            alone.append(one)
            through.append(other)
    return alone, through


def walk_s(root: Path) -> float:
    began = time.perf_counter()
    assert sum(1 for _ in Ignored(str(root)).walk()) == FILES + 1
    return time.perf_counter() - began


def run() -> list[Row]:
    with fresh_home() as home:
        root = home / "tree"
        root.mkdir()
        plant(root)
        alone, through = asyncio.run(measured(root))
        walks = [walk_s(root) for _ in range(5)]
    ratios = [other / one for one, other in zip(alone, through, strict=True)]
    beside = f"ripgrep {median(alone) * 1000:.0f} ms"
    return [
        Row("grep over 4,000 files, times ripgrep alone", median(ratios), "x", 1.3, beside),
        Row("walk by the ignore rules, per 1,000 files", median(walks) / FILES * 1e6, "ms", 20),
    ]
