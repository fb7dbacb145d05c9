"""Waits with an end: a test that waits for what never comes fails instead of hanging."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

LIMIT_S = 10.0
T = TypeVar("T")


async def soon(what: Awaitable[T]) -> T:
    return await asyncio.wait_for(what, LIMIT_S)


async def until(holds: Callable[[], bool]) -> None:
    """Give the loop its turns until something holds. For what has no event to wait for."""
    async with asyncio.timeout(LIMIT_S):
        while not holds():
            await asyncio.sleep(0.001)
