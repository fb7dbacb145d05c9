"""Threads: list, create, read, change, fork, delete, and their history."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from quintet.domain.errors import Invalid, NotFound
from quintet.domain.ids import has_prefix
from quintet.domain.thread import TITLE_LENGTH, Thread, ThreadQuery, ThreadSettings
from quintet.domain.turn import ClientKey
from quintet.protocols.knp import history
from quintet.protocols.knp import models as knp
from quintet.protocols.knp.given import GivenModel
from quintet.protocols.knp.house import House, principal
from quintet.protocols.knp.namespaces import Namespace
from quintet.protocols.knp.wording import RUNNING, THREAD_STATES, state_of, thread_object
from quintet.rpc.http.call import HttpCall
from quintet.rpc.http.routes import HOLDER, Routes

THREADS = Routes("threads", who=HOLDER, since="0.1")
MOST = 200
PAGE = 200
METADATA_BYTES = 64 * 1024
LONGEST_TIME = 16  # digits of milliseconds, and thousands of years


class OneThread(msgspec.Struct, frozen=True):
    tid: str  # from the path
    namespace: str = ""  # from the query


class ListThreads(msgspec.Struct, frozen=True):
    namespace: str = ""
    agent_id: str = ""
    state: str = ""  # one or several, with commas
    limit: int = 50
    cursor: str = ""


@THREADS.get("/threads", summary="threads, the last active first", params=ListThreads, result=knp.ThreadPage)
async def list_threads(call: HttpCall[House], params: ListThreads, body: None) -> knp.ThreadPage:
    house = call.state
    namespace = await house.namespace(call, params.namespace)
    if params.limit < 1:
        raise Invalid("`limit` is at least 1.")
    limit, before = min(params.limit, MOST), _opened(params.cursor)
    states = _states(params.state)
    # Where nothing is left out, one more than the page says whether there is another.
    size = PAGE if states or params.agent_id else limit + 1
    found: list[knp.Thread] = []
    last: Thread | None = None
    default_model = house.default_model()
    while namespace.project and len(found) <= limit:
        page = await house.threads.page(ThreadQuery(project=namespace.project, before=before, limit=size))
        for thread in page:
            alive = not thread.owner or await house.journal.alive(thread.owner)
            shown = thread_object(thread, namespace.name, default_model, state_of(thread, alive=alive))
            if (not states or shown.state in states) and params.agent_id in ("", shown.agentId):
                found.append(shown)
                if len(found) > limit:
                    break
                last = thread
        if len(page) < size:
            break
        before = (page[-1].updated_ms, page[-1].id)
    more = len(found) > limit and last is not None
    return knp.ThreadPage(found[:limit], _closed(last) if more and last is not None else None)


def _states(text: str) -> frozenset[str]:
    states = frozenset(filter(None, text.split(",")))
    if states - set(THREAD_STATES):
        raise Invalid(f"A state is one of {', '.join(THREAD_STATES)}.")
    return states


def _closed(thread: Thread) -> str:
    """The key of a row: threads that move or join meanwhile shift nothing."""
    return base64.urlsafe_b64encode(f"{thread.updated_ms}:{thread.id}".encode()).decode().rstrip("=")


def _opened(cursor: str) -> tuple[int, str] | None:
    if not cursor:
        return None
    try:
        updated, _, tid = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition(":")
        if updated.isascii() and updated.isdigit() and len(updated) < LONGEST_TIME and has_prefix(tid, "thr"):
            return int(updated), tid
    except (ValueError, binascii.Error):
        pass
    raise Invalid("This is no cursor.", next_step="Send `next` of the page before, as it was.")


async def _shown(house: House, thread: Thread, namespace: str) -> knp.Thread:
    alive = not thread.owner or await house.journal.alive(thread.owner)
    return thread_object(thread, namespace, house.default_model(), state_of(thread, alive=alive))


async def whole(house: House, tid: str, namespace: str) -> knp.Thread:
    return await shown_whole(house, await house.journal.thread(tid), namespace)


async def shown_whole(house: House, thread: Thread, namespace: str) -> knp.Thread:
    """One thread as it was just read; a run that was accepted and has not begun yet counts as running."""
    shown = await _shown(house, thread, namespace)
    if shown.state != RUNNING and await house.journal.turns(thread.id, live=True):
        return msgspec.structs.replace(shown, state=RUNNING)
    return shown


class NewThread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    agentId: str = ""
    namespace: str = ""
    title: str | None = None
    model: GivenModel | None = None
    context: dict[str, Any] = {}
    metadata: dict[str, Any] = {}


class InNamespace(msgspec.Struct, frozen=True):
    namespace: str = ""


@THREADS.post(
    "/threads",
    summary="a new thread",
    params=InNamespace,
    body=NewThread,
    result=knp.Thread,
    optional_body=True,
    keyed=True,
)
async def create(call: HttpCall[House], params: InNamespace, body: NewThread) -> knp.Thread:
    house = call.state
    namespace = await house.namespace(call, params.namespace, body.namespace)
    root = namespace.rooted()
    await check_agent(house, body.agentId, root)
    model = check_model(house, body.model)
    metadata = body.metadata | ({"context": body.context} if body.context else {})
    _check(body.title or "", metadata)
    thread = await house.threads.create(
        ThreadSettings(root, agent=body.agentId, model=model),
        title=body.title or "",
        title_final=bool(body.title),
        project=namespace.project_to_use,
        metadata=metadata,
        key=client_key(call, namespace),
    )
    return await whole(house, thread.id, namespace.name)


def client_key(call: HttpCall[House], namespace: Namespace, tid: str = "") -> ClientKey | None:
    """The same key counts once for whoever sent it, in the thread where there is one."""
    if not call.key:
        return None
    scope = ":".join(filter(None, ("knp", principal(call.caller).name, tid)))
    digest = hashlib.sha256(f"{namespace.name}\0{call.route.name}\0{call.digest}".encode()).hexdigest()
    return ClientKey(scope, call.key, digest)


async def check_agent(house: House, agent: str, cwd: str) -> None:
    if agent:
        try:
            await house.agents.named(agent, cwd)
        except NotFound as error:
            raise Invalid(error.message, next_step=error.step) from None


def check_model(house: House, model: knp.ModelName | None) -> str:
    """Its reference, if it can be used here; raises NotConfigured."""
    return house.check_model(knp.reference(model)) if model is not None else ""


def _check(title: str, metadata: dict[str, Any]) -> None:
    if len(title) > TITLE_LENGTH:
        raise Invalid(f"A title has {TITLE_LENGTH} characters at most.")
    if metadata and len(msgspec.json.encode(metadata)) > METADATA_BYTES:
        raise Invalid(f"Metadata has {METADATA_BYTES} bytes at most.")


class ReadThread(msgspec.Struct, frozen=True):
    tid: str
    namespace: str = ""
    history: str = ""  # true, or {"limit", "after", "kinds"} as JSON


class HistoryWish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: int = history.USUAL
    after: int = 0
    kinds: str | list[str] = ""


@THREADS.get("/threads/{tid}", summary="one thread, with its history if asked", params=ReadThread, result=knp.Thread)
async def read(call: HttpCall[House], params: ReadThread, body: None) -> knp.Thread:
    house = call.state
    page = _wished(params.history)
    thread, namespace = await house.thread(call, params.tid, params.namespace)
    shown = await shown_whole(house, thread, namespace.name)
    if page is None:
        return shown
    found = await history.read(house, thread, page)
    return msgspec.structs.replace(shown, history=found.events[::-1])


def _wished(text: str) -> history.Page | None:
    """The newest ones that are wanted; they are told oldest first."""
    if text in ("", "false"):
        return None
    if text == "true":
        return history.page_of()
    try:
        wish = msgspec.json.decode(text, type=HistoryWish)
    except msgspec.DecodeError:
        raise Invalid('`history` is true or JSON: {"limit", "after", "kinds"}.') from None
    kinds = wish.kinds if isinstance(wish.kinds, str) else ",".join(wish.kinds)
    return history.page_of(after=wish.after, limit=wish.limit, kinds=kinds)


class ThreadPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET  # merged; a key set to null goes


@THREADS.patch(
    "/threads/{tid}",
    summary="another title, or metadata merged in",
    params=OneThread,
    body=ThreadPatch,
    result=knp.Thread,
)
async def change(call: HttpCall[House], params: OneThread, body: ThreadPatch) -> knp.Thread:
    house = call.state
    thread, namespace = await house.thread(call, params.tid, params.namespace)
    title = None if body.title is UNSET else body.title
    metadata = None if body.metadata is UNSET else body.metadata
    _check(title or "", thread.metadata | (metadata or {}))
    await house.threads.amend(thread.id, title=title, metadata=metadata)
    return await whole(house, thread.id, namespace.name)


@THREADS.delete("/threads/{tid}", summary="end its run and erase it", params=OneThread, result=knp.Deleted)
async def delete(call: HttpCall[House], params: OneThread, body: None) -> knp.Deleted:
    house = call.state
    thread, _ = await house.thread(call, params.tid, params.namespace)
    await house.threads.delete(thread.id, principal(call.caller))
    return knp.Deleted()


class Fork(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    afterSeq: int | None = None
    title: str = ""


@THREADS.post(
    "/threads/{tid}/fork",
    summary="a new thread with this one's history up to a place",
    params=OneThread,
    body=Fork,
    result=knp.Thread,
    optional_body=True,
)
async def fork(call: HttpCall[House], params: OneThread, body: Fork) -> knp.Thread:
    house = call.state
    _check(body.title, {})
    thread, namespace = await house.thread(call, params.tid, params.namespace)
    made = await house.threads.fork(thread.id, through=body.afterSeq, title=body.title)
    return await whole(house, made.id, namespace.name)


class ReadEvents(msgspec.Struct, frozen=True):
    tid: str
    namespace: str = ""
    after: int = 0
    limit: int = history.USUAL
    order: str = "desc"
    kinds: str = ""


@THREADS.get(
    "/threads/{tid}/events", summary="a thread's history, newest first", params=ReadEvents, result=knp.HistoryPage
)
async def read_events(call: HttpCall[House], params: ReadEvents, body: None) -> knp.HistoryPage:
    house = call.state
    page = history.page_of(after=params.after, limit=params.limit, order=params.order, kinds=params.kinds)
    thread, _ = await house.thread(call, params.tid, params.namespace)
    return await history.read(house, thread, page)
