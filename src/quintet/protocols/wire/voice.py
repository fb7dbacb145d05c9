"""What the client of a prompt is told: in order, each turn that was begun also ended, and nothing it does not know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from quintet.domain.event import TurnFinished
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.client import Client
from quintet.protocols.wire.events import Out
from quintet.protocols.wire.models import Message
from quintet.protocols.wire.older import for_client
from quintet.rpc.connection import Connection


class Voice:
    """Of one prompt."""

    def __init__(self, client: Client, connection: Connection[Any], user_input: wire.UserInput) -> None:
        self._client = client
        self._connection = connection
        self._input = user_input
        self._told = False  # something of a turn
        self.open = 0  # turns told and not ended; those of a flow are within one
        self._together: list[Out] = []  # messages, to be sent before anything else is

    async def tell(self, kind: str, payload: Any) -> None:
        if self._count(kind) and self._client.gate.lets(kind):
            await self._connection.notify("event", Message(kind, payload))

    async def text(self, words: str) -> None:
        await self._connection.notify("event", Message("ContentPart", wire.TextPart(words)))

    async def whole(self, inside: Callable[[], Awaitable[None]] | None = None) -> None:
        """What is no turn of the engine's, told as one."""
        await self.tell("TurnBegin", wire.TurnBegin(self._input))
        try:
            if inside is not None:
                await inside()
        finally:
            if self.open:  # else its client has left, and was told
                await self.tell("TurnEnd", wire.Empty())

    async def break_off(self) -> None:
        """The end of what was begun, where nobody will wait for the real one."""
        if not self._told:
            await self.tell("TurnBegin", wire.TurnBegin(self._input))
        await self.end()

    async def end(self) -> None:
        while self.open:
            await self.tell("TurnEnd", wire.Empty())

    # --- a turn of the engine's: what comes together is sent together --------------------------------------------
    def add_pieces(self, told: list[Out]) -> None:
        """Of what the model says, which no client is spared."""
        self._together += told

    def add(self, out: Message, finished: TurnFinished | None, *, cancelled: bool) -> None:
        if not self._count(out.type):
            return
        if finished is not None and out.type == "TurnEnd":
            self._together.append(out)
        elif not self._knows(out.payload):
            self._together += for_client(out, self._client.gate, cancelled=cancelled)

    async def flush(self) -> None:
        together, self._together = self._together, []
        await self._connection.notify_all("event", together)

    def _count(self, kind: str) -> bool:
        """Whether the client can be told so; not all know of a turn within another."""
        if kind not in ("TurnBegin", "TurnEnd"):
            return True
        begins = kind == "TurnBegin"
        within = self.open > (0 if begins else 1)
        self._told = True
        self.open = max(self.open + (1 if begins else -1), 0)
        return not (within and self._client.gate.ends_once())

    def _knows(self, payload: Any) -> bool:
        """Whether it is the client's own change of plan mode, of which the reply to it tells."""
        if isinstance(payload, wire.PlanUpdate) and self._client.own_plan_changes:
            self._client.own_plan_changes -= 1
            return True
        return False
