"""The programs of others that Quintet works better with: git and ripgrep. Blocking, each within a moment."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from quintet.domain.checkup import Row, ok, warn
from quintet.workspace.environment import find_program
from quintet.workspace.sandbox.diagnosis import Facts, facts, install_line

WITHIN_S = 5.0
_WITHOUT = {
    "git": "not found: files are kept and brought back without it, but no history is read",
    "rg": "not found: searching works, slower, with a searcher of our own",
}
_TITLES = {"git": ("git", "git"), "rg": ("ripgrep", "ripgrep")}


def look_at_programs(environment: Mapping[str, str], known: Facts | None = None) -> list[Row]:
    return [_look(program, environment, known or facts()) for program in _TITLES]


def _look(program: str, environment: Mapping[str, str], known: Facts) -> Row:
    title, package = _TITLES[program]
    install = install_line(known, package)
    path = find_program(program, environment)
    if path is None:
        return warn(title, _WITHOUT[program], install)
    try:
        said = subprocess.run([path, "--version"], capture_output=True, timeout=WITHIN_S, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return warn(title, f"{path} does not run: {type(error).__name__}", install)
    lines = said.stdout.decode("utf-8", "replace").splitlines()
    if said.returncode or not lines:
        return warn(title, f"{path} does not say its version (exit {said.returncode})", install)
    return ok(title, f"{lines[0][:60]} ({path})")
