"""A turn that is a plugin's command: told as a turn, no model asked, nothing of it in the conversation."""

from __future__ import annotations

import asyncio

from quintet.protocols.kward import plugins
from quintet.protocols.kward.client import Client, Opened
from quintet.protocols.kward.commands import cwd_of
from quintet.protocols.kward.plugins import PluginCommand
from quintet.protocols.kward.running import Running
from quintet.rpc.connection import Connection


class PluginTurn(Running):
    def __init__(self, connection: Connection[Client], session: Opened, command: PluginCommand, arguments: str) -> None:
        self._before = list(session.turns)  # which it waits for
        super().__init__(connection, session)
        self._command, self._arguments = command, arguments
        self._work: asyncio.Task[None] | None = None

    async def play(self) -> None:
        if self.ended:
            return  # stopped before it began
        self._work = asyncio.ensure_future(self._play())
        try:
            await self._work
        except asyncio.CancelledError:
            if not self.cancel_requested:
                raise
            await self.emit("turnFinished", {"status": "canceled", "error": None})
        except Exception as error:
            await self.fail(error)
        finally:
            self._leave()

    async def stop(self) -> None:
        if self._work is None:
            await super().stop()
        else:
            self._work.cancel()
            await asyncio.wait({self._work})

    async def _play(self) -> None:
        for turn in self._before:
            await turn.over.wait()
        await self.emit("turnStarted", {"status": "running"})
        cwd = await cwd_of(self._house, self.session)
        output = await plugins.run(self._house, self.session, cwd, self._command, self._arguments)
        text = plugins.text_of(output)
        await self.emit("assistantDelta", {"delta": text})
        await self.emit("answer", {"content": text})
        await self.emit("turnFinished", {"status": "completed", "error": None})
