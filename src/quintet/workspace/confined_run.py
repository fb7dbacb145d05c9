"""Running a command in the sandbox, or with the same caps without one: the one way for everything we run for others."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from quintet.domain.errors import Drifted
from quintet.workspace.child import CHANGED, Cause, Child, Ended, Receiver
from quintet.workspace.processes import run_child
from quintet.workspace.sandbox.limits import Caps, limited, rlimits
from quintet.workspace.sandbox.profile import Profile
from quintet.workspace.sandbox.wall import Sandbox
from quintet.workspace.sandbox.warden import guarded

DRIFTED = "A script that this command runs, or its environment, was changed."
WALLS = 3  # built anew when one falls before the command began: what it should hide can vanish while it is built


async def run_confined(
    sandbox: Sandbox,
    child: Child,
    profile: Profile | None,
    caps: Caps,
    receive: Receiver,
    started: Callable[[], None] = lambda: None,
) -> Ended:
    """Inside the wall of this profile; without one, where there is no profile."""
    async with sandbox.group(caps) as group:
        grouped = replace(child, group=group)
        if profile is not None:
            return await _run_walled(sandbox, grouped, profile, caps, receive, started)
        loose = replace(grouped, argv=limited(child.argv, caps, child.timeout_s))
        return await run_child(loose, receive, started)


async def _run_walled(
    sandbox: Sandbox, child: Child, profile: Profile, caps: Caps, receive: Receiver, started: Callable[[], None]
) -> Ended:
    argv, limits = guarded(child.argv), rlimits(caps, child.timeout_s)
    emptied = 0
    for _ in range(WALLS):
        async with sandbox.confined(argv, child.cwd, child.environment, profile, limits, child.scripts) as inside:
            walled = replace(child, argv=inside.argv, environment=inside.environment, walled=True)
            ended = await run_child(walled, receive, started)
        emptied += inside.emptied
        if ended.cause is not Cause.NO_WALL:
            break
        if ended.code == CHANGED:
            raise Drifted(DRIFTED)
    return replace(ended, put_back=tuple(inside.put_back), refused=tuple(inside.refused), emptied=emptied)
