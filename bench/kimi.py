"""The archived server that Wire's clients came from, for comparison: found, or installed once beside the results."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

VERSION = "1.49.0"
OLDEST = (3, 12, 2)  # the release asks for 3.12, and does not start on the first two of it
INSTALL_S = 600.0
PLACE = Path(__file__).parent / "results" / f"kimi-cli-{VERSION}"


class Published:
    """Its figures on a machine of two cores: orders of magnitude, for where it cannot run."""

    start_s = 2.01
    memory_mib = 123.0
    events_per_s = 7570.0


class Reference(NamedTuple):
    program: str


def reference() -> Reference | str:
    """Its program, or why there is none. QUINTET_BENCH_KIMI names one that is there already."""
    if named := os.environ.get("QUINTET_BENCH_KIMI"):
        return Reference(named)
    if (PLACE / "bin" / "kimi").exists():
        return Reference(str(PLACE / "bin" / "kimi"))
    python = next(pythons(), None)
    if python is None:
        return f"no Python from {'.'.join(map(str, OLDEST))} on here"
    return _install(python)


def pythons() -> Iterator[str]:
    """Those on the path and those that pyenv keeps."""
    kept = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin/python3"))
    for candidate in [shutil.which(f"python3.{minor}") for minor in (12, 13, 14)] + [str(path) for path in kept]:
        if candidate and _version(candidate) >= OLDEST:
            yield candidate


def _version(python: str) -> tuple[int, ...]:
    done = subprocess.run([python, "--version"], capture_output=True, text=True, timeout=20)
    found = re.match(r"Python (\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, found.groups())) if found else ()


def _install(python: str) -> Reference | str:
    PLACE.parent.mkdir(exist_ok=True)
    pip = [str(PLACE / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        subprocess.run([python, "-m", "venv", str(PLACE)], check=True, capture_output=True, timeout=INSTALL_S)
        subprocess.run([*pip, f"kimi-cli=={VERSION}"], check=True, capture_output=True, timeout=INSTALL_S)
        # Byte code, as ours has: otherwise an environment that forbids writing it would slow every start.
        subprocess.run([pip[0], "-m", "compileall", "-q", str(PLACE / "lib")], capture_output=True, timeout=INSTALL_S)
    except (subprocess.SubprocessError, OSError) as error:
        shutil.rmtree(PLACE, ignore_errors=True)
        return f"it could not be installed: {error}"
    return Reference(str(PLACE / "bin" / "kimi"))
