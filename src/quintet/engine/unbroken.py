"""Unbroken: what must not be cut in two by a cancel. A commit under way either has happened or has not; whoever asked
for it learns which, and only then is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """The work's result, also when the caller is cancelled meanwhile; the cancel arrives at the caller's next wait."""
    task = asyncio.ensure_future(work)
    cancels = 0
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            cancels += 1
    caller = asyncio.current_task()
    assert caller is not None
    for _ in range(cancels):
        # Handed on, not added: whoever counts cancels (asyncio.timeout) must find as many as were sent.
        caller.uncancel()
        caller.cancel()
    return task.result()
