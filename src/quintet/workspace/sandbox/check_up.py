"""What a check-up shows of the sandbox, line by line. Pure: it puts into words what was found elsewhere."""

from __future__ import annotations

from collections.abc import Collection

from quintet.workspace.sandbox.bubblewrap import Tool
from quintet.workspace.sandbox.profile import Finding, State


def check_up(state: State, tool: Tool | None, *, filters: bool, held: Collection[str]) -> list[Finding]:
    """`filters`: of system calls; `held`: controllers of the control groups that can be made."""
    version = f"{tool.path} {'.'.join(map(str, tool.version))}" if tool else "not found"
    why = state.why or "made and tried"
    tried = "made and tried" if state.works else why
    level = f"ABI {state.landlock}" if state.landlock else "not there; the mounts hold alone"
    fix = "" if state.landlock >= 6 else "With Linux 6.12 or newer, abstract sockets are closed with network on too."
    calls = "filtered" if filters else "not filtered on this kind of machine; namespaces and mounts hold alone"
    return [
        _program(tool, version, state.fix),
        *(Finding(name, state.works, tried, state.fix) for name in ("user namespaces", "network namespace", "masks")),
        Finding("landlock", state.landlock >= 6, level, fix),
        Finding("system calls", filters, calls if state.works else why),
        _cap("process cap", held="pids" in held),
        _cap("memory cap", held="memory" in held),
    ]


def _program(tool: Tool | None, version: str, fix: str) -> Finding:
    if tool is None or tool.limits_size:
        return Finding("bubblewrap", tool is not None, version, "" if tool else fix)
    old = f"{version}: too old to limit what a command keeps in /dev/shm, /run and /var/tmp, which is memory"
    return Finding("bubblewrap", False, old, "Install bubblewrap 0.7 or newer.")


def _cap(name: str, *, held: bool) -> Finding:
    if held:
        return Finding(name, True, "held by the kernel, in a control group for each command")
    return Finding(
        name,
        False,
        "watched by Quintet, ten times a second; no control group can be made here",
        "Run Quintet as a service with `Delegate=yes` and `DelegateSubgroup=quintet`, and the kernel holds it.",
    )
