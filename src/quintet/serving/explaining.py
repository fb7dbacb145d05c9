"""What policy would say, asked without anything being done: by a home's own policy, rules, grants and tools."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from quintet.app import App
from quintet.late import LateCommandParser
from quintet.workspace.project_root import project_root

if TYPE_CHECKING:
    from quintet.engine.explaining import Explained


async def explained(app: App, tool: str, words: str, *, cwd: str, protocol: str) -> Explained:
    """What policy would say to this call in a new thread in this directory."""
    from quintet.engine.explaining import Explaining

    root = await asyncio.to_thread(project_root, cwd)
    known = {project.root: project.id for project in await app.projects.all()}
    return await Explaining(app.policy, LateCommandParser(), app.tools).explain(
        tool,
        words,
        cwd=cwd,
        protocol=protocol,
        project=known.get(root, ""),
        project_policy=await asyncio.to_thread(app.project_policy, cwd),
        grants=await app.journal.grants(),
        now_ms=app.clock.now_ms(),
    )
