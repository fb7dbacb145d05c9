"""A client that leaves: its turn is cancelled, and its prompt is answered in any case.

What a turn's end waits for (commands that die slowly, a slow disk, a busy machine) its client need not: whoever leaves
kills soon, and a prompt that never was answered may be waited for without end.
"""

from __future__ import annotations

import asyncio
from typing import Any

from quintet.protocols.wire import models as wire
from quintet.protocols.wire.running import Running
from quintet.rpc.connection import Connection

PATIENCE_S = 0.7  # for the turn to be told to its end; whoever stops us may wait three seconds in all


async def played(running: Running) -> wire.PromptResult:
    """The whole prompt, or as much of it as there was time for."""
    playing, left = asyncio.ensure_future(running.play()), asyncio.ensure_future(running.left.wait())
    try:
        await asyncio.wait({playing, left}, return_when=asyncio.FIRST_COMPLETED)
        if playing.done():
            return playing.result()
        playing.cancel()
        await asyncio.wait({playing}, timeout=PATIENCE_S)
        await running.voice.break_off()
        return wire.PromptResult("cancelled")
    finally:
        left.cancel()
        playing.cancel()
        await asyncio.wait({playing, left}, timeout=PATIENCE_S)


async def leave(connection: Connection[Any]) -> None:
    """Nobody speaks any more. Returned when the turn's end has been told, or is told without waiting any longer."""
    running = connection.state.running
    if not isinstance(running, Running):
        if running is not None:
            await running.cancel()
        return
    connection.background(running.cancel)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await running.over.wait()
    except TimeoutError:
        connection.state.house.log("wire: the client left, and its turn took longer to end than it could be kept")
        running.left.set()
