"""replay: what the thread has seen so far, told again from the journal. Starts nothing and asks no model."""

from __future__ import annotations

from collections.abc import AsyncIterator

from quintet.domain.thread import Thread
from quintet.engine.subscription import facts
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.asked import Asked
from quintet.protocols.wire.client import Client
from quintet.protocols.wire.events import Options
from quintet.protocols.wire.house import House
from quintet.protocols.wire.models import Message
from quintet.protocols.wire.older import for_client
from quintet.protocols.wire.telling import Telling
from quintet.rpc.call import Call
from quintet.rpc.rows import Family, NoParams

REPLAY = Family("replay")


async def retell(house: House, thread: Thread) -> AsyncIterator[Message | Asked]:
    """Every message of every turn, in order."""
    telling = Telling(house.feed.journal, thread, Options(house.names, house.window))
    async for event in facts(house.feed.journal, 0, thread.root):
        for out in await telling.take(event):
            yield out
    for out in telling.end():
        yield out


class Replaying:
    def __init__(self) -> None:
        self.cancelled = False

    async def cancel(self) -> None:
        self.cancelled = True


@REPLAY.method("replay", result=wire.ReplayResult, summary="Tell again everything the thread has seen, in order (1.3).")
async def replay(call: Call[Client], params: NoParams) -> wire.ReplayResult:
    client, replaying = call.state, Replaying()
    events = requests = 0
    with client.busy(replaying):
        thread = await client.house.thread()
        async for out in retell(client.house, thread):
            if replaying.cancelled:
                return wire.ReplayResult("cancelled", events, requests)
            if isinstance(out, Asked):
                await call.connection.post(out.id, "request", out.message)
                requests += 1
            else:
                for message in for_client(out, client.gate):
                    await call.notify("event", message)
                    events += 1
    return wire.ReplayResult("finished", events, requests)
