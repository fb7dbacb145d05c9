"""Approvals that still wait while no prompt is under way: a client that greets again is asked again."""

from __future__ import annotations

from quintet.domain.interaction import Approval
from quintet.protocols.wire.asked import asked_of
from quintet.protocols.wire.client import Client
from quintet.protocols.wire.requests import Requests
from quintet.rpc.connection import Connection


async def ask_again(connection: Connection[Client]) -> None:
    """Only what this process itself waits for: another's turns are its own clients' business."""
    house = connection.state.house
    thread = await house.thread()
    requests = Requests(connection, house)
    for asked in await house.interactions.pending(thread.root):
        turn = await house.feed.journal.turn(asked.turn)
        if isinstance(asked.request, Approval) and turn.runner == house.feed.journal.owner:
            task = turn.thread if turn.background else ""
            await requests.ask(asked_of(asked, house.names, task, task=task))
