"""Probe: what works here, found by running the real thing. Knows the program and what its answers mean; what exactly is
run is given to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

import msgspec

from quintet.domain.errors import QuintetError
from quintet.workspace.environment import find_program
from quintet.workspace.sandbox.bubblewrap import Tool, version_in
from quintet.workspace.sandbox.diagnosis import diagnosed, facts, install_line
from quintet.workspace.sandbox.profile import State

WITHIN_S = 20.0  # it takes a tenth of a second; a machine that is busy with other things takes longer
SYSTEM_PLACES = "/usr/bin:/bin:/usr/local/bin"  # what distributions' own rules allow lies here
Words = Callable[[Tool, str], Sequence[str]]  # a whole command in a workspace, that lists what must not be seen


class Probed(msgspec.Struct, frozen=True):
    state: State
    tool: Tool | None = None
    filters: bool = False  # system calls, inside
    final: bool = True  # False: another try may tell something else


def found_tool(environment: Mapping[str, str]) -> Tool | None:
    """The system's own program before one from PATH."""
    path = find_program("bwrap", {"PATH": SYSTEM_PLACES}) or find_program("bwrap", environment)
    if path is None:
        return None
    said = subprocess.run([path, "--version"], capture_output=True, timeout=WITHIN_S, check=False)
    return Tool(path, version_in(said.stdout.decode("utf-8", "replace")))


def probed(environment: Mapping[str, str], words: Words) -> Probed:
    if sys.platform != "linux":
        return Probed(State(False, why=f"There is no sandbox for {sys.platform}.", fix="Run Quintet on Linux."))
    tool = None
    try:
        tool = found_tool(environment)
        if tool is None:
            return Probed(State(False, why="bubblewrap is not installed.", fix=install_line(facts())))
        said = _tried(tool, words)
        if "userns" in said and not said.startswith("landlock="):
            # Installed with the setuid bit it cannot; the filter of system calls refuses namespaces anyway.
            tool = Tool(tool.path, (0, 7))
            said = _tried(tool, words)
    except subprocess.TimeoutExpired:
        why = f"Trying it took longer than {WITHIN_S:.0f} s."
        fix = "It is tried again with the next command; see what keeps this machine busy."
        return Probed(State(False, why=why, fix=fix), tool, final=False)
    except (OSError, subprocess.SubprocessError, QuintetError) as error:
        why = f"It could not be tried: {error}."
        return Probed(State(False, why=why, fix="Look at the home's modes and free space."), tool)
    if not said.startswith("landlock="):
        return Probed(State(False, "none", *diagnosed(said, tool.path, facts())), tool)
    told = dict(word.split("=") for word in said.split())
    return Probed(State(True, "bubblewrap", landlock=int(told["landlock"])), tool, told["filter"] == "1")


def _tried(tool: Tool, words: Words) -> str:
    """What the launcher told, or what went wrong."""
    import tempfile  # dear, and not needed before the first command

    with tempfile.TemporaryDirectory(prefix="quintet-probe-") as place:
        tried = subprocess.run(words(tool, os.path.realpath(place)), capture_output=True, timeout=WITHIN_S, check=False)
    if tried.returncode or not tried.stdout:
        return tried.stderr.decode("utf-8", "replace").strip()
    told, _, seen = tried.stdout.decode("utf-8", "replace").partition("\n")
    return "Quintet's own directory can be seen inside." if seen else told
