"""sessions/clone, forkMessages, fork: a session's conversation, or the beginning of it, as a session of its own."""

from __future__ import annotations

import re

from quintet.domain.thread import Thread
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client, Opened, thread_of
from quintet.protocols.kward.errors import BadArgument
from quintet.protocols.kward.house import House
from quintet.protocols.kward.messages import Message
from quintet.protocols.kward.session_list import excerpt
from quintet.protocols.kward.sessions import fresh_place, opened
from quintet.protocols.kward.transcript import counted, whole
from quintet.rpc.call import Call, Reply
from quintet.rpc.connection import Connection
from quintet.rpc.rows import Family

BRANCHING = Family("branching", form="either")
_ENTRY = re.compile(r"message:(\d{1,9})", re.ASCII)


@BRANCHING.method(
    "sessions/clone",
    params=wire.SessionParams,
    result=wire.Session,
    summary="A session of its own with the same conversation; neither changes the other.",
)
async def clone(call: Call[Client], params: wire.SessionParams) -> Reply[wire.Session]:
    async with call.state.in_order(params.session_id) as session:
        return await _copied(call.connection, session, None)


@BRANCHING.method(
    "sessions/forkMessages",
    params=wire.SessionParams,
    result=wire.ForkMessages,
    summary="The messages of the person, each a place where a fork can begin.",
)
async def fork_messages(call: Call[Client], params: wire.SessionParams) -> wire.ForkMessages:
    async with call.state.in_order(params.session_id) as session:
        told = await _told(call.state.house, session)
    users = [(number, message) for number, message in enumerate(told) if message.role == "user"]
    return wire.ForkMessages([wire.ForkMessage(entry(number), excerpt(message.text())) for number, message in users])


@BRANCHING.method(
    "sessions/fork",
    params=wire.ForkParams,
    result=wire.Forked,
    summary="A session with everything before one of those messages, and the message to be said anew.",
)
async def fork(call: Call[Client], params: wire.ForkParams) -> Reply[wire.Forked]:
    async with call.state.in_order(params.session_id) as session:
        chosen = _chosen(await _told(call.state.house, session), params.entry_id)
        made = await _copied(call.connection, session, chosen.first - 1)
        return Reply(wire.Forked(made.result, chosen.text().strip()), then=made.then)


def entry(number: int) -> str:
    return f"message:{number}"


def _chosen(told: list[Message], given: str) -> Message:
    found = _ENTRY.fullmatch(given)
    if found is None:
        raise BadArgument(f"Invalid entryId: {given}")
    if int(found[1]) >= len(told):
        raise BadArgument(f"Unknown fork entryId: {given}")
    message = told[int(found[1])]
    if message.role != "user":
        raise BadArgument(f"Entry is not forkable: {given}")
    return message


async def _told(house: House, session: Opened) -> list[Message]:
    thread = await thread_of(house, session)
    return counted(whole(thread, await house.threads.items(thread.id)))


async def _copied(connection: Connection[Client], session: Opened, through: int | None) -> Reply[wire.Session]:
    house = connection.state.house
    made: Thread = await house.threads.fork(session.thread, through=through)
    place = fresh_place(house, made.settings.cwd)
    house.seen.copy(session.thread, made.id)
    await house.files.name(made, place)
    return await opened(connection, made, place, own=True)
