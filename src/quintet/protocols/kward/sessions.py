"""sessions/*: create, resume, list, rename, close, delete, transcript. (Copies, compaction and exports: beside.)"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress

from quintet.domain.errors import QuintetError
from quintet.domain.thread import Thread, ThreadSettings
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client, Opened, thread_of
from quintet.protocols.kward.errors import Failed
from quintet.protocols.kward.house import ME, House
from quintet.protocols.kward.places import Place, new_place
from quintet.protocols.kward.session_files import titled
from quintet.protocols.kward.session_list import limit_of, listed, resolved
from quintet.protocols.kward.times import iso
from quintet.protocols.kward.transcript import live, normalized
from quintet.protocols.kward.workspace import root_of
from quintet.rpc.call import Call, Reply
from quintet.rpc.connection import Connection
from quintet.rpc.rows import Family

SESSIONS = Family("sessions", form="either")


@SESSIONS.method(
    "sessions/create",
    params=wire.CreateParams,
    result=wire.Session,
    summary="Begin a session in a workspace; others of this process that were never used go.",
)
async def create(call: Call[Client], params: wire.CreateParams) -> Reply[wire.Session]:
    house = call.state.house
    root = await root_of(house, params.workspace_root)
    place = fresh_place(house, root)
    name = (params.name or "").strip()
    thread = await house.threads.create(ThreadSettings(root), title=name, title_final=bool(name), handle=place.handle())
    await house.feed.mirror(thread.id)
    return await opened(call.connection, thread, place, own=True)


@SESSIONS.method(
    "sessions/resume",
    params=wire.ResumeParams,
    result=wire.Session,
    summary="Open a session by the path of its file, also one that Kward or another protocol began.",
)
async def resume(call: Call[Client], params: wire.ResumeParams) -> Reply[wire.Session]:
    house = call.state.house
    base = await root_of(house, params.workspace_root)
    path = resolved(params.path, base)
    try:
        thread, place = await house.files.open(path, base)
    except (OSError, TimeoutError) as error:
        raise Failed(f"Session file cannot be opened: {path} ({error})") from None
    await house.recall(thread)
    return await opened(call.connection, thread, place, own=False)


@SESSIONS.method(
    "sessions/list",
    params=wire.ListParams,
    result=wire.SessionList,
    summary="The newest sessions of a workspace as a tree, whichever protocol began them.",
)
async def list_sessions(call: Call[Client], params: wire.ListParams) -> wire.SessionList:
    house = call.state.house
    root = await root_of(house, params.workspace_root)
    return wire.SessionList(await listed(house, root, limit_of(params.limit)))


@SESSIONS.method(
    "sessions/rename",
    params=wire.RenameParams,
    result=wire.Session,
    summary="Name a session; blanks take its name away.",
)
async def rename(call: Call[Client], params: wire.RenameParams) -> wire.Session:
    house = call.state.house
    async with call.state.in_order(params.session_id) as session:
        name = (params.name or "").strip()
        if name:
            await house.threads.rename(session.thread, name)
        else:
            await house.threads.configure(session.thread, titled(""))
        return await describe(house, session)


@SESSIONS.method(
    "sessions/close",
    params=wire.SessionParams,
    result=wire.Closed,
    summary="Let go of a session; one that was never used or named goes with its file.",
)
async def close(call: Call[Client], params: wire.SessionParams) -> wire.Closed:
    async with call.state.in_order(params.session_id) as session:
        await stop(session)
        await forget_unused(call.state, session)
        call.state.forget(session.id)
    return wire.Closed()


@SESSIONS.method(
    "sessions/delete",
    params=wire.SessionParams,
    result=wire.Deleted,
    summary="Erase a session with its file, and close it.",
)
async def delete(call: Call[Client], params: wire.SessionParams) -> wire.Deleted:
    client = call.state
    async with client.in_order(params.session_id) as session:
        await stop(session)
        await client.house.threads.delete(session.thread, ME)
        await client.house.files.erase(session.place)  # also where somebody else has written behind it
        for other in [s.id for s in client.sessions.values() if s.thread == session.thread]:
            client.forget(other)
    return wire.Deleted(True, session.place.path)


@SESSIONS.method(
    "sessions/transcript",
    params=wire.SessionParams,
    result=wire.Transcript,
    summary="The conversation in one form, whoever wrote it; after a compaction its summary comes first.",
)
async def transcript(call: Call[Client], params: wire.SessionParams) -> wire.Transcript:
    house = call.state.house
    async with call.state.in_order(params.session_id) as session:
        thread = await thread_of(house, session)
        told = live(thread, await house.threads.items(thread.id))
        return wire.Transcript(await describe(house, session), [normalized(message) for message in told])


# --- for these and the methods beside ---------------------------------------------------------------------------------
def fresh_place(house: House, cwd: str) -> Place:
    return new_place(house.config_dir, cwd, house.feed.clock.now_ms(), str(uuid.uuid4()))


async def opened(connection: Connection[Client], thread: Thread, place: Place, *, own: bool) -> Reply[wire.Session]:
    """A new id for it; `own`: it was begun here, so it goes again if nobody uses it."""
    client = connection.state
    session = Opened(str(uuid.uuid4()), thread.id, place, own=own)
    client.sessions[session.id] = session
    await tidy(client, session)

    async def follow() -> None:
        from quintet.protocols.kward.others import Others  # the reply need not wait for it

        if client.sessions.get(session.id) is session:
            session.others = Others(connection, session)
            await session.others.follow()

    return Reply(await describe(client.house, session), then=follow)


async def describe(house: House, session: Opened) -> wire.Session:
    thread = await thread_of(house, session)
    above = await house.files.ancestry(session.place, thread)
    modified = await house.disk.modified_ms(session.place.path)
    return wire.Session(
        session.id,
        session.place.id,
        session.place.path,
        thread.settings.cwd,
        thread.settings.cwd,
        name_of(thread),
        iso(thread.created_ms),
        iso(thread.updated_ms if modified is None else modified),
        above.parent_id or None,
        above.parent_path or None,
    )


def name_of(thread: Thread) -> str | None:
    """What a person called it; a title made of its first words is none."""
    return thread.title if thread.title_final and thread.title else None


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
            client.forget(session.id)


async def stop(session: Opened) -> None:
    """Whatever it began, last first, so that none of those begins when the running one ends. Others' turns go on."""
    for turn in [turn for turn in reversed(session.turns) if turn.own]:
        await turn.cancel()
        await turn.stop()


async def close_all(client: Client) -> None:
    """The client has left."""
    running = [turn for session in client.sessions.values() for turn in reversed(session.turns) if turn.own]
    await asyncio.gather(*(turn.stop() for turn in running), return_exceptions=True)
    await tidy(client)
