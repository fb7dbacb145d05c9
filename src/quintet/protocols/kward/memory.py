"""memory/*: what is remembered beyond one session, in the files that Kward's other programs use, too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, Struct, UnsetType, to_builtins

from quintet.domain.errors import Invalid
from quintet.domain.memory import GLOBAL, Layer, Memory, plain, workspace_scope
from quintet.engine.memory import Mind
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client, thread_of
from quintet.protocols.kward.errors import BadArgument
from quintet.protocols.kward.keeping import text_values
from quintet.protocols.kward.workspace import root_of
from quintet.rpc.call import Call
from quintet.rpc.rows import Family, NoParams

MEMORY = Family("memory", form="either")
NOTHING_YET = "No memory retrieval has run yet."
Row = dict[str, Any]


class Paths(Struct, frozen=True):
    core: str
    soft: str
    events: str


class Status(wire.Wire, frozen=True):
    enabled: bool
    auto_summary: bool
    paths: Paths


class Enabled(wire.Wire, frozen=True):
    enabled: bool


class AutoSummary(wire.Wire, frozen=True):
    auto_summary: bool


class ListParams(wire.Wire, frozen=True):
    include_inactive: bool | None = None
    workspace_root: str | None = None


class Listed(Struct, frozen=True):
    """All of them, and once more by where they count: some clients read the one, some the other."""

    core: list[Row]
    soft: list[Row]
    global_core: list[Row]
    workspace_core: list[Row]
    workspace_soft: list[Row]


class AddParams(wire.Wire, frozen=True):
    text: Any = ""
    scope: str | None = None
    tags: Any = None
    workspace_root: str | None = None


class IdParams(wire.Wire, frozen=True):
    id: str


class Added(Struct, frozen=True):
    memory: Row


class Forgotten(Struct, frozen=True):
    forgotten: bool


class Inspected(Struct, frozen=True):
    core: list[Row]
    soft: list[Row]
    enabled: bool
    paths: Paths


class WhyParams(wire.Wire, frozen=True):
    session_id: str | None = None


class Why(Struct, frozen=True):
    enabled: bool
    core: list[Row]
    soft: list[Row]
    reasons: list[Row]
    scopes: list[str] | UnsetType = UNSET
    message: str | UnsetType = UNSET


class Summarized(Struct, frozen=True):
    memories: list[Row]


@MEMORY.method("memory/status", result=Status, summary="Whether it is on, and where it lies.")
async def status(call: Call[Client], params: NoParams) -> Status:
    mind = _mind(call)
    switch = await mind.switch()
    return Status(switch.enabled, switch.auto_summary, _paths(mind))


@MEMORY.method("memory/enable", result=Enabled, summary="Turn it on, and make its files.")
async def enable(call: Call[Client], params: NoParams) -> Enabled:
    await _mind(call).enable(on=True)
    return Enabled(True)


@MEMORY.method("memory/disable", result=Enabled, summary="Turn it off; what is remembered stays.")
async def disable(call: Call[Client], params: NoParams) -> Enabled:
    await _mind(call).enable(on=False)
    return Enabled(False)


@MEMORY.method(
    "memory/autoSummary/enable", result=AutoSummary, summary="Look through each completed turn, where memory is on."
)
async def enable_summary(call: Call[Client], params: NoParams) -> AutoSummary:
    await _mind(call).auto_summary(on=True)
    return AutoSummary(True)


@MEMORY.method("memory/autoSummary/disable", result=AutoSummary, summary="Do not look through turns.")
async def disable_summary(call: Call[Client], params: NoParams) -> AutoSummary:
    await _mind(call).auto_summary(on=False)
    return AutoSummary(False)


@MEMORY.method("memory/list", params=ListParams, result=Listed, summary="Everything that is remembered.")
async def list_all(call: Call[Client], params: ListParams) -> Listed:
    kept = await _mind(call).all()
    here = workspace_scope(await _workspace(call, params.workspace_root))
    soft = [m for m in kept.soft if params.include_inactive or m.usable]
    return Listed(
        _rows(kept.core),
        _rows(soft),
        _rows(m for m in kept.core if m.scope == GLOBAL),
        _rows(m for m in kept.core if m.scope == here),
        _rows(m for m in soft if m.scope == here),
    )


@MEMORY.method("memory/add", params=AddParams, result=Added, summary="Remember a hint.")
async def add(call: Call[Client], params: AddParams) -> Added:
    return await _add(call, params, Layer.SOFT)


@MEMORY.method("memory/addCore", params=AddParams, result=Added, summary="Remember something to always keep in mind.")
async def add_core(call: Call[Client], params: AddParams) -> Added:
    return await _add(call, params, Layer.CORE)


async def _add(call: Call[Client], params: AddParams, layer: Layer) -> Added:
    text = params.text if isinstance(params.text, str) else ""
    tags = text_values(params.tags)
    try:
        here = await _workspace(call, params.workspace_root)
        made = await _mind(call).add(text, layer, scope=params.scope or GLOBAL, tags=tags, workspace=here)
    except Invalid as error:
        raise BadArgument(error.message) from None
    return Added(plain(made))


@MEMORY.method(
    "memory/forget", params=IdParams, result=Forgotten, summary="Erase one: its text is gone from every file."
)
async def forget(call: Call[Client], params: IdParams) -> Forgotten:
    return Forgotten(await _mind(call).forget(params.id))


@MEMORY.method("memory/promote", params=IdParams, result=Added, summary="Make a hint something to always keep in mind.")
async def promote(call: Call[Client], params: IdParams) -> Added:
    try:
        return Added(plain(await _mind(call).promote(params.id)))
    except Invalid as error:
        raise BadArgument(error.message) from None


@MEMORY.method("memory/inspect", result=Inspected, summary="Everything, also what was forgotten, without its text.")
async def inspect(call: Call[Client], params: NoParams) -> Inspected:
    mind = _mind(call)
    kept = await mind.all()
    return Inspected(_rows(kept.core), _rows(kept.soft), (await mind.switch()).enabled, _paths(mind))


@MEMORY.method(
    "memory/why", params=WhyParams, result=Why, summary="What came to mind in a session's last turn, and why."
)
async def why(call: Call[Client], params: WhyParams) -> Why:
    mind, client = _mind(call), call.state
    enabled = (await mind.switch()).enabled
    thread = client.session(params.session_id).thread if params.session_id else ""
    found = await mind.why(client.house.feed.journal, thread)
    if found is None:
        return Why(enabled, [], [], [], message=NOTHING_YET)
    core, soft = (_rows(m for m in found.memories if m.layer is layer) for layer in (Layer.CORE, Layer.SOFT))
    return Why(enabled, core, soft, to_builtins(found.reasons), list(found.scopes))


@MEMORY.method(
    "memory/summarize",
    params=wire.SessionParams,
    result=Summarized,
    summary="Look through what the user said in a session for things worth keeping.",
)
async def summarize(call: Call[Client], params: wire.SessionParams) -> Summarized:
    house, session = call.state.house, call.state.session(params.session_id)
    thread = await thread_of(house, session)
    root = (await asyncio.to_thread(house.keeping.roots, thread.settings.cwd))[0]
    return Summarized(_rows(await _mind(call).summarise_thread(house.feed.journal, thread.id, root)))


async def _workspace(call: Call[Client], named: str | None) -> str:
    """Which one is meant: the one named, else that of the session opened last. Clients may start us anywhere."""
    client = call.state
    if not named and client.sessions:
        newest = list(client.sessions.values())[-1]
        named = (await client.house.feed.journal.thread(newest.thread)).settings.cwd
    return await root_of(client.house, named)


def _mind(call: Call[Client]) -> Mind:
    return call.state.house.keeping.mind


def _rows(memories: Iterable[Memory]) -> list[Row]:
    return [plain(memory) for memory in memories]


def _paths(mind: Mind) -> Paths:
    return Paths(mind.paths.core, mind.paths.soft, mind.paths.events)
