"""Stop: how a cancel reaches work that runs in a thread. The work looks at it between its steps and breaks off."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from quintet.workspace.files import on_disk

P = ParamSpec("P")
T = TypeVar("T")


class Stopped(Exception):
    """Nobody waits for the answer any more."""


class Stop:
    def __init__(self) -> None:
        self._told = threading.Event()

    def tell(self) -> None:
        self._told.set()

    def look(self) -> None:
        if self._told.is_set():
            raise Stopped


async def stoppable(function: Callable[Concatenate[Stop, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """As on_disk, for work that takes long: a cancel waits only until the function looks up."""
    stop = Stop()
    task = asyncio.ensure_future(on_disk(function, stop, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.tell()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it as lost
        raise
