"""What is attached at a terminal: paths as the person typed them, read as the files of the thread's workspace.

Also a person's own attachment goes through the guard and is taken from the workspace alone: what is attached leaves the
machine, and a name that leads elsewhere is more often a mistake, or somebody's trick, than a wish.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from quintet.app import App
from quintet.domain.item import Part
from quintet.domain.thread import ThreadSettings


async def attached(
    app: App, paths: Sequence[str], settings: ThreadSettings, *, model: str, here: str
) -> tuple[Part, ...]:
    """The parts these files add to a message of a thread with these settings. Typed paths begin `here`."""
    if not paths:
        return ()
    reference = model or settings.model
    if not reference and settings.agent:
        reference = (await app.agents.named(settings.agent, settings.cwd)).model
    full, _ = app.models.resolve(reference)
    places = [os.path.join(here, path) for path in paths]
    return await app.hands.attachments.parts(places, cwd=settings.cwd, model=app.models.info(full))
