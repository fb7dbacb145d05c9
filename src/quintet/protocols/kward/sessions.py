"""sessions/*: create, resume, list, rename, close, delete, transcript. (Copies, compaction and exports: beside.)"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress

from quintet.domain.errors import NotFound, QuintetError
from quintet.domain.thread import Thread, ThreadSettings
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client, Opened
from quintet.protocols.kward.house import ME, House
from quintet.protocols.kward.places import Place, new_place
from quintet.protocols.kward.times import iso
from quintet.protocols.kward.workspace import root_of
from quintet.rpc.call import Call
from quintet.rpc.rows import Family

SESSIONS = Family("sessions", form="either")


@SESSIONS.method(
    "sessions/create",
    params=wire.CreateParams,
    result=wire.Session,
    summary="Begin a session in a workspace; others of this process that were never used go.",
)
async def create(call: Call[Client], params: wire.CreateParams) -> wire.Session:
    client, house = call.state, call.state.house
    root = await root_of(house, params.workspace_root)
    place = new_place(house.config_dir, root, house.feed.clock.now_ms(), str(uuid.uuid4()))
    name = (params.name or "").strip()
    settings = ThreadSettings(root)
    thread = await house.threads.create(settings, title=name, title_final=bool(name), handle=place.handle())
    await house.feed.mirror(thread.id)
    return await opened(client, thread, place, own=True)


async def opened(client: Client, thread: Thread, place: Place, *, own: bool) -> wire.Session:
    """A new id for it; `own`: it was begun here, so it goes again if nobody uses it."""
    session = Opened(str(uuid.uuid4()), thread.id, place, own=own)
    client.sessions[session.id] = session
    await tidy(client, session)
    return await describe(client.house, session)


async def describe(house: House, session: Opened) -> wire.Session:
    thread = await house.feed.journal.thread(session.thread)
    above = await house.files.ancestry(session.place, thread)
    modified = await house.disk.modified_ms(session.place.path)
    return wire.Session(
        session.id,
        session.place.id,
        session.place.path,
        thread.settings.cwd,
        thread.settings.cwd,
        thread.title if thread.title_final and thread.title else None,
        iso(thread.created_ms),
        iso(thread.updated_ms if modified is None else modified),
        above.parent_id or None,
        above.parent_path or None,
    )


async def tidy(client: Client, but: Opened | None = None) -> None:
    """Those nobody has used or named go with their files, as far as they were begun here and rest."""
    for session in list(client.sessions.values()):
        if session is not but and not session.order.locked():
            await forget_unused(client, session)


async def forget_unused(client: Client, session: Opened) -> None:
    others = [s for s in client.sessions.values() if s.thread == session.thread and s is not session]
    if not session.own or session.busy or others:
        return
    with suppress(QuintetError):
        thread = await client.house.feed.journal.thread(session.thread)
        if thread.last_ordinal == 0 and not thread.title_final and not thread.active_turn:
            await client.house.threads.delete(thread.id, ME)
            client.sessions.pop(session.id, None)


async def close_all(client: Client) -> None:
    """The client has left."""
    running = [turn for session in client.sessions.values() for turn in session.turns]
    await asyncio.gather(*(turn.stop() for turn in running), return_exceptions=True)
    with suppress(NotFound):
        await tidy(client)
